"""Sums over all subsets in the log domain.

Local scores of one table differ by thousands of nats, so that `exp(score − maximum)` underflows for most
entries. Here every entry has an exponent of its own, and an addition aligns only its own two terms.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.runtime.compiled import compiled
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.threads import map_threads

Number = TypeVar("Number", bound=np.generic)

_LN2 = math.log(2.0)
_LOWEST = -(2**40)  # exponent of zero
_HALVES = 0.5 ** np.arange(128.0)  # the last one stands for nothing: mantissas have 53 bits


def member_sums(weights: NDArray[Number]) -> NDArray[Number]:
    """The sum of the members of every subset of `weights` [k] -> [2^k]; bit `i` stands for `weights[i]`."""
    sums = np.zeros(1, weights.dtype)
    for weight in weights:
        sums = np.concatenate([sums, sums + weight])
    return sums


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


def sums_containing(row: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """`out[k, compress(U, k)] = log Σ_{P ⊆ U} exp row[P ∪ k]`: sums over the sets that contain a member.

    Args:
        row: float64 [2^m], −inf allowed.
        out: float64 [m, 2^(m−1)], filled.
    """
    if len(out) == 1:
        out[0] = row[1:]
    else:
        _sums_containing(*_mantissas(row), 0, len(out), out)


@compiled
def zeta_in_place(row: NDArray[np.float64]) -> None:
    """Replace each entry of `row` [2^m] by the log-sum over its subsets."""
    mantissa, exponent = _mantissas(row)
    step = 1
    while step < row.shape[0]:
        _add_without(mantissa, exponent, step)
        step *= 2
    _logarithms(mantissa, exponent, row)


@compiled
def _sums_containing(
    mantissa: NDArray[np.float64],
    exponent: NDArray[np.int64],
    first: int,
    last: int,
    out: NDArray[np.float64],
) -> None:
    """Sums for the members `first … last − 1`; over all other members the sums have been taken.

    Divide and conquer: one half of the members is summed over for all of the other half at once, `m log m`
    passes over the sets where each member alone would need `m²`. As soon as one member is left, only the sets
    that contain it are carried on.
    """
    if last - first == 1:
        _logarithms(mantissa, exponent, out[first])
        return
    middle = (first + last) // 2
    for half in range(2):
        kept, end = (first, middle) if half == 0 else (middle, last)
        low, high = (middle, last) if half == 0 else (first, middle)
        alone = end - kept == 1
        if alone:
            part, powers = _with_member(mantissa, kept), _with_member(exponent, kept)
        else:
            part, powers = mantissa.copy(), exponent.copy()
        for member in range(low, high):
            _add_without(part, powers, 1 << (member - (alone and member > kept)))
        _sums_containing(part, powers, kept, end, out)


@compiled
def _with_member(values: NDArray[Number], member: int) -> NDArray[Number]:
    """The entries of the sets that contain `member`, whose bit is squeezed out."""
    return values.reshape(-1, 2, 1 << member)[:, 1].copy().reshape(-1)


@compiled
def _mantissas(row: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The exponentials of `row` as `mantissa · 2^exponent`.

    Ten times faster to add than by `logaddexp`, and it rounds less. Mantissas start in [1, 2) and exponents
    only follow the larger term, so that no mantissa exceeds `2^(m + 1)`.
    """
    mantissa = np.empty(row.shape[0])
    exponent = np.empty(row.shape[0], np.int64)
    for entry in range(row.shape[0]):
        if row[entry] == -np.inf:
            mantissa[entry], exponent[entry] = 0.0, _LOWEST
        else:
            exponent[entry] = np.int64(math.floor(row[entry] / _LN2))
            mantissa[entry] = math.exp(row[entry] - exponent[entry] * _LN2)
    return mantissa, exponent


@compiled
def _add_without(mantissa: NDArray[np.float64], exponent: NDArray[np.int64], step: int) -> None:
    """To each set with the member whose bit is `step` add the set without it."""
    for start in range(0, mantissa.shape[0], 2 * step):
        for low in range(start, start + step):
            high = low + step
            common = max(exponent[high], exponent[low])
            mantissa[high] = (
                mantissa[high] * _HALVES[min(common - exponent[high], _HALVES.shape[0] - 1)]
                + mantissa[low] * _HALVES[min(common - exponent[low], _HALVES.shape[0] - 1)]
            )
            exponent[high] = common


@compiled
def _logarithms(mantissa: NDArray[np.float64], exponent: NDArray[np.int64], out: NDArray[np.float64]) -> None:
    for entry in range(out.shape[0]):
        out[entry] = math.log(mantissa[entry]) + exponent[entry] * _LN2 if mantissa[entry] > 0 else -np.inf
