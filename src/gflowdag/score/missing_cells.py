"""Draws of missing cells given a graph: what a score has to offer for tables with gaps.

Parameters are drawn from their posterior given the graph and the completed table, or integrated out, and the
missing cells of each row from their distribution given the rest of the row. Alternated with draws of the
graph given the completed table, that is data augmentation (Tanner & Wong 1987). It assumes that gaps are
ignorable given what was observed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gflowdag.errors import ScoreError
from gflowdag.runtime.place import option
from gflowdag.score.local_score import LocalScore
from gflowdag.score.registry import unbound_score

if TYPE_CHECKING:
    from gflowdag.data import Dataset


class CellDraws(Protocol):
    """Draws the missing cells of one table, again and again."""

    def __call__(
        self,
        values: NDArray[np.float64],
        graph: NDArray[np.bool_],
        likelihood: LocalScore,
        rng: np.random.Generator,
        /,
    ) -> NDArray[np.float64]:
        """The table with its missing cells drawn anew.

        Args:
            values: the completed table as it is, float64 [n, d].
            graph: bool [d, d], rows are sources.
            likelihood: the score of that completed table.
            rng: source of randomness.
        """
        ...


@runtime_checkable
class DrawsMissingCells(Protocol):
    """A score that knows how missing cells are drawn."""

    def missing_cells(self, data: Dataset, /) -> CellDraws:
        """Draws for a table whose gaps are NaN."""
        ...


def cell_draws(data: Dataset, score: object) -> CellDraws:
    """How the missing cells of a table are drawn under a score, or a refusal where it does not know."""
    asked = unbound_score(data, score)
    if isinstance(asked, DrawsMissingCells):
        return asked.missing_cells(data)
    raise ScoreError(
        f"The table has missing values, and {asked!r} has no draws of them: leave out the rows that have "
        f"any, {option('missing', 'drop')}, or take a score that has: BGe, BDeu, GeneralizedLinear or "
        "ConditionalGaussian."
    )


def start_at_random(data: Dataset, rng: np.random.Generator) -> NDArray[np.float64]:
    """The table with an observed value of the same column in each gap, float64 [n, d]."""
    values = np.array(data.values)
    for column in values.T:
        gaps = np.isnan(column)
        if gaps.any():
            column[gaps] = rng.choice(column[~gaps], gaps.sum())
    return values
