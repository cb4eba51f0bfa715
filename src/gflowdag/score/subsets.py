"""Sums over all subsets in the log domain.

Local scores of one table differ by thousands of nats, so that `exp(score − maximum)` underflows for most
entries. Here every entry has an exponent of its own, and an addition aligns only its own two terms.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from gflowdag.progress import Progress, silent
from gflowdag.score.threads import map_threads

_LN2 = math.log(2.0)
_LOWEST = -(2**40)  # exponent of zero
_HALVES = 0.5 ** np.arange(128.0)  # the last one stands for nothing: mantissas have 53 bits


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


@njit(cache=True, nogil=True)
def zeta_in_place(row):
    """Replace each entry of `row` [2^m] by the log-sum over its subsets.

    Sums are kept as `mantissa · 2^exponent`: ten times faster than `logaddexp`, and it rounds less. Mantissas
    start in [1, 2) and exponents only follow the larger term, so that no mantissa exceeds `2^(m + 1)`.
    """
    size = row.shape[0]
    mantissa = np.empty(size)
    exponent = np.empty(size, np.int64)
    for entry in range(size):
        if row[entry] == -np.inf:
            mantissa[entry], exponent[entry] = 0.0, _LOWEST
        else:
            exponent[entry] = np.int64(math.floor(row[entry] / _LN2))
            mantissa[entry] = math.exp(row[entry] - exponent[entry] * _LN2)
    step = 1
    while step < size:
        for start in range(0, size, 2 * step):
            for low in range(start, start + step):
                high = low + step
                common = max(exponent[high], exponent[low])
                mantissa[high] = (
                    mantissa[high] * _HALVES[min(common - exponent[high], _HALVES.shape[0] - 1)]
                    + mantissa[low] * _HALVES[min(common - exponent[low], _HALVES.shape[0] - 1)]
                )
                exponent[high] = common
        step *= 2
    for entry in range(size):
        row[entry] = math.log(mantissa[entry]) + exponent[entry] * _LN2 if mantissa[entry] > 0 else -np.inf
