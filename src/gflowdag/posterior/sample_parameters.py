"""The posterior of the parameters that goes with each sampled graph: that of its own table.

Without gaps there is one table. Where cells were imputed, every graph was drawn with a completed table, and a
draw of its parameters is one given that table: together they are draws from the posterior of both.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from gflowdag.errors import ScoreError
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.place import option, typed
from gflowdag.score.conjugate import ParameterPosterior


class SampleParameters:
    """What the tables of a posterior say about the parameters.

    Attributes:
        of_sample: which table each sampled graph goes with, int [n].
    """

    def __init__(self, posterior: Posterior):
        """Refuse a posterior that does not hold them."""
        self._one = posterior.parameters
        self.of_sample: NDArray[np.int64] = np.zeros(posterior.num_samples, np.int64)
        if self._one is None:
            cells, table = posterior.imputed_cells, posterior.incomplete
            if cells is None or cells.of_sample is None or table is None:
                raise no_parameters(posterior)
            self.of_sample, self._cells, self._table = cells.of_sample, cells, table
        self.of = lru_cache(maxsize=256)(self._of)

    @cached_property
    def example(self) -> ParameterPosterior:
        """Those of one table, for what all have in common: kinds and levels."""
        return self.of(int(self.of_sample[0]))

    def _of(self, table: int) -> ParameterPosterior:
        """What a table says, by its number."""
        if self._one is not None:
            return self._one
        completed = self._table.completed(self._cells, table)
        found = self._table.score.bind(completed).parameter_posterior
        if found is None:
            raise ScoreError(
                f"{self._table.score!r} has no posterior of the parameters that can be drawn from: effects "
                f"and experiments need {option('score', 'auto')}."
            )
        return found


def no_parameters(posterior: Posterior) -> ScoreError:
    """What to say where a posterior does not hold what effects need."""
    if posterior.diagnosis.imputation is not None:
        return ScoreError(
            "This posterior does not hold what effects and experiments over imputed cells need: the table, "
            "and which of its completions each graph was drawn with. It was too large to keep, its score is "
            "one of your own, or the fit is of an earlier version. Fit again with a score of the package, or "
            f"the rows without missing cells: {option('missing', 'drop')}."
        )
    kinds = {column.kind for column in posterior.table.columns} if posterior.table is not None else set[str]()
    if len(kinds) > 1:
        return ScoreError(
            "Effects in a table with continuous and discrete columns cannot be computed from the score of "
            "this fit: it assumes the directions between the kinds, or treats levels as numbers. Fit with "
            f"{option('score', 'generalized-linear')}, the default; if you did, the table was too large to "
            "keep: give it, "
            + typed(python="posterior.with_parameters(table).", command_line="gflowdag effect --table TABLE.")
        )
    return ScoreError(
        "This posterior does not hold what effects need, the posterior of the parameters: its score has none "
        "in closed form, its table was too large to keep, or it was made by hand or by an earlier version. "
        "Give it the table: "
        + typed(python="posterior.with_parameters(table).", command_line="gflowdag effect --table TABLE.")
    )
