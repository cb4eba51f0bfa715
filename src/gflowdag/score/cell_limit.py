"""A limit on the cells of the contingency table of a family, a variable with its parents.

Where nearly every row has a cell of its own, the likelihood of a discrete network pays for no parameter, and
large parent sets look good in pure noise. The limit leaves them out. It belongs to the structure prior: a
family of three or more variables has at most so many cells as rows count for its child. Subsets of what is
allowed are allowed, and members of an equivalence class are allowed alike: reversing a covered edge replaces
families by subsets of the largest of them, which stays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class CellLimit(NamedTuple):
    """Parents of `j` are allowed iff they are at most one, or their configurations at most so many.

    Levels are whole numbers in float64: products are exact up to 2^53, more than any number of rows.
    """

    levels: NDArray[np.float64]  # [d], of each variable
    most: NDArray[np.float64]  # [d], configurations of the parents of each node

    def allows(self, node: int | NDArray[np.int64], parents: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether each parent set is allowed, of one node or of a node each, bool [m, d] -> [m]."""
        with np.errstate(over="ignore"):  # an infinite number of cells is too many, rightly
            configurations = np.where(parents, self.levels, 1.0).prod(axis=1)
        return np.asarray((configurations <= self.most[node]) | (parents.sum(axis=1) <= 1))


def cell_limit(
    levels: NDArray[np.float64], rows: NDArray[np.float64], required: NDArray[np.bool_]
) -> CellLimit:
    """At most so many cells as rows, or as the required parents take.

    Args:
        levels: of each variable, [d].
        rows: that count for each variable, [d]; a part of them, or a multiple, for another limit.
        required: bool [d, d], rows are sources.
    """
    with np.errstate(over="ignore"):
        least = np.where(required, levels[:, None], 1.0).prod(axis=0)
    return CellLimit(levels, np.maximum(np.floor(rows / levels), least))
