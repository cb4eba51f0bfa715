"""Sums over all subsets in the log domain.

Local scores of one table differ by thousands of nats, so that `exp(score − maximum)` underflows for most entries.
Every addition here is a `logaddexp` of its own two terms: no entry is ever scaled by another one.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from gflowdag.progress import Progress, silent
from gflowdag.score.threads import map_threads

_NEGLIGIBLE = -40.0  # exp(−40) is below half an ulp of 1


def log_subset_sums(table: ArrayLike, progress: Progress = silent) -> NDArray[np.float64]:
    """`out[…, U] = log Σ_{P ⊆ U} exp table[…, P]` (zeta transform), for each row of a table.

    On a dense score table this is `log β_j(U)`, in the same compressed index.

    Args:
        table: float64 [..., 2^m], −inf allowed.
        progress: told about the rows done.

    Returns:
        float64 of the same shape, a new array.
    """
    out = np.array(table, np.float64, order="C")
    rows = out.reshape(-1, out.shape[-1])
    map_threads(lambda row: zeta_in_place(rows[row]), range(len(rows)), progress)
    return out


@njit(cache=True, nogil=True, inline="always")
def log_add(a, b):
    """`log(exp a + exp b)`, −inf allowed."""
    if a < b:
        a, b = b, a
    if b == -np.inf or b - a < _NEGLIGIBLE:
        return a
    return a + math.log1p(math.exp(b - a))


@njit(cache=True, nogil=True)
def zeta_in_place(row):
    """Replace each entry of `row` [2^m] by the log-sum over its subsets."""
    step = 1
    while step < row.shape[0]:
        for start in range(0, row.shape[0], 2 * step):
            for low in range(start, start + step):
                row[low + step] = log_add(row[low + step], row[low])
        step *= 2
