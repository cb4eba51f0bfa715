"""By what an edge multiplies the structure prior, by the kinds of its ends: one rule for all tables.

Averaging equivalent sample sizes out favours edges between discrete columns. Between the kinds a likelihood
that sees directions sees some in noise, from a discrete column to a continuous one. Chosen by measurement:
`docs/laboratory/discrete-noise.md` and `docs/laboratory/mixed-scores.md`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class EdgeFactors(NamedTuple):
    """One factor for each pair of kinds."""

    within_continuous: float = 1.0
    into_discrete: float = 1.0  # from a continuous column
    into_continuous: float = 1.0  # from a discrete column
    within_discrete: float = 1.0

    @property
    def between_kinds(self) -> NDArray[np.float64]:
        """[2, 2], rows are sources; 1 stands for discrete."""
        return np.array(self, np.float64).reshape(2, 2)

    @property
    def told(self) -> str:
        """What the user of a table of both kinds has to know; nothing where the prior is as it is."""
        if set(self) == {1.0}:
            return ""
        if len(set(self)) == 1:
            return f" Each edge multiplies the prior by {self.within_discrete:.3g}."
        return (
            f" Each edge multiplies the prior by {self.within_discrete:.3g} between discrete columns, "
            f"by {self.into_continuous:.3g} from a discrete to a continuous one, "
            f"and by {self.into_discrete:.3g} the other way."
        )

    def of(self, is_discrete: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Of each edge between such columns, bool [d] -> [d, d], rows are sources."""
        kind = is_discrete.astype(int)
        return self.between_kinds[kind[:, None], kind]


BY_KINDS = EdgeFactors(into_discrete=5 / 3, into_continuous=1 / 3, within_discrete=1 / 4)
