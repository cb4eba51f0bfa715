"""Distance between graphs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def shd(first: ArrayLike, second: ArrayLike) -> NDArray[np.int64]:
    """Structural Hamming distance: edges to add, remove or reverse; a reversal counts once.

    Between CPDAGs it counts the pairs of nodes whose connection differs.

    Args:
        first: bool [..., d, d].
        second: bool [..., d, d]; leading dimensions broadcast against those of `first`.

    Returns:
        int64 [...].
    """
    differs = np.asarray(first, dtype=bool) != np.asarray(second, dtype=bool)
    differs = differs | np.swapaxes(differs, -1, -2)
    return np.triu(differs, 1).sum(axis=(-2, -1), dtype=np.int64)
