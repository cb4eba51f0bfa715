"""Positive numbers far beyond the range of a double: a mantissa and a power of two.

The sums of the recurrences run from 1 down to e^−30000 and lower. Each is kept as mantissa × 2^exponent, with
the exponents fixed beforehand from potentials that bound the sums, so that the inner loops need neither
logarithms nor branches.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gflowdag.graph import bits
from gflowdag.score.subsets import log_subset_sums

LOG2 = float(np.log(2.0))
FAR = 1e9  # stands for an infinite exponent
_MAGIC = 1023.0 + 1.5 * 2.0**52  # a whole number added to it appears in the lowest bits of the double

compress = numba.njit(inline="always")(bits.compress)
expand = numba.njit(inline="always")(bits.expand)


@numba.njit(inline="always")
def power_of_two(exponent):
    """2^exponent without a table or a branch; 2^−1000 for anything smaller."""
    bits = np.float64(max(exponent, -1000.0) + _MAGIC).view(np.int64)
    return np.int64(bits << 52).view(np.float64)


class SubsetSums(NamedTuple):
    """β_j(U) = Σ_{P ⊆ U} exp score(j, P), for every node and set, [d, 2^(d−1)] in compressed index."""

    log: NDArray[np.float64]
    mantissa: NDArray[np.float64]
    exponent: NDArray[np.int32]


class Potentials(NamedTuple):
    """log₂ of the weight of the best single order, rounded down to a whole number.

    Where there is no order the sum is zero; the exponent is then such that terms measured with it vanish.
    """

    before: NDArray[np.float64]  # [2^d], orders of U: 2^before ≤ F(U) ≤ 2·|U|!·2^before; FAR if none
    after: NDArray[np.float64]  # [2^d], orders of V∖W placed after W, likewise for H(W); −FAR if none


def subset_sums(table: NDArray[np.float64]) -> SubsetSums:
    """Sum the local scores over all subsets, and split the sums."""
    log = log_subset_sums(table)
    return SubsetSums(log, *split(log))


def split(log: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Mantissas in [1, 2) and exponents of `exp(log)`; 0 and −FAR for zeros."""
    mantissa = np.empty_like(log)
    exponent = np.empty(log.shape, dtype=np.int32)
    _split(log.ravel(), mantissa.ravel(), exponent.ravel())
    return mantissa, exponent


def unite(mantissa: NDArray[np.float64], exponent: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithm of mantissa · 2^exponent; −inf for zeros."""
    with np.errstate(divide="ignore"):
        return np.log(mantissa) + np.where(mantissa > 0, exponent, 0.0) * LOG2


def potentials(log_sums: NDArray[np.float64]) -> Potentials:
    """The weight of the best order up to, and from, every set.

    Adding nodes to a set never lowers β, so placing R after W node by node weighs at least Π_{j∈R} β_j(W):
    no term of the recurrences exceeds the potential of its target.
    """
    before, after = _best_orders(log_sums)
    return Potentials(_exponents(before, FAR), _exponents(after, -FAR))


def _exponents(log_values: NDArray[np.float64], none: float) -> NDArray[np.float64]:
    return np.where(np.isneginf(log_values), none, np.floor(log_values / LOG2))


@numba.njit(cache=True, nogil=True)
def _split(log, mantissa, exponent):
    for i in range(log.size):
        if log[i] == -np.inf:
            mantissa[i] = 0.0
            exponent[i] = -FAR
        else:
            power = np.floor(log[i] / LOG2)
            mantissa[i] = np.exp(log[i] - power * LOG2)
            exponent[i] = np.int32(power)


@numba.njit(cache=True, nogil=True)
def _best_orders(log_sums):
    d = log_sums.shape[0]
    full = (1 << d) - 1
    before = np.full(full + 1, -np.inf)
    before[0] = 0.0
    for placed in range(1, full + 1):
        best = -np.inf
        for j in range(d):
            if placed >> j & 1:
                rest = placed ^ (1 << j)
                best = max(best, before[rest] + log_sums[j, compress(rest, j)])
        before[placed] = best
    after = np.full(full + 1, -np.inf)
    after[full] = 0.0
    for placed in range(full - 1, -1, -1):
        best = -np.inf
        for j in range(d):
            if not placed >> j & 1:
                best = max(best, after[placed | 1 << j] + log_sums[j, compress(placed, j)])
        after[placed] = best
    return before, after
