"""The two recurrences over all pairs of nested sets, 3^d of them, in blocks that fit the cache.

With β_j(W) the subset sums and C = V∖W,

    F(U) = Σ_{∅≠R⊆U} (−1)^{|R|+1} F(U∖R) Π_{j∈R} β_j(U∖R)      the weight of all DAGs on U
    H(W) = Σ_{∅≠R⊆C} (−1)^{|R|+1} H(W∪R) Π_{j∈R} β_j(W)        the weight of all ways to add C to W

(inclusion–exclusion over the nodes that have all their parents in U∖R, in W). The evidence is F(V) = H(∅).
Restricted to the R that contain j, the second sum is the weight of the ways in which j alone has all its
parents in W, that is, all other nodes of C descend from j: times F(W), it is the weight of all DAGs in which
W is the set of non-descendants of j.

A set is split into high and low bits; sets with the same high bits are a block. Blocks with equally many high
bits do not depend on each other and run in parallel; each is written by one thread in a fixed order, so the
result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
from numpy.typing import NDArray

from gflowdag.exact.scaled import FAR, Potentials, SubsetSums, compress
from gflowdag.runtime.progress import Progress

LOW_BITS = 12  # a block of 4096 sums with their exponents is 64 KiB
_MAGIC = 1023.0 + 1.5 * 2.0**52  # a whole number added to it appears in the lowest bits of the double
_FAST = {"reassoc", "contract", "nsz"}


def weigh_dags(
    sums: SubsetSums, potential: Potentials, threads: int, progress: Progress
) -> NDArray[np.float64]:
    """F(U) / 2^before(U) for every set, [2^d]."""
    weight = np.zeros_like(potential.before)
    weight[0] = 1.0

    def block(high: int, low_bits: int) -> None:
        _weigh_block(high, low_bits, sums.mantissa, sums.exponent, potential.before, weight)

    _run(block, len(sums.log), threads, progress, downwards=False)
    return weight


def weigh_completions(
    sums: SubsetSums, potential: Potentials, threads: int, progress: Progress
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """H(W) / 2^after(W) for every set, [2^d], and its part in which j is the only root, [d, 2^(d−1)]."""
    weight = np.zeros_like(potential.after)
    weight[-1] = 1.0
    only_root = np.zeros_like(sums.log)

    def block(high: int, low_bits: int) -> None:
        _complete_block(high, low_bits, sums.mantissa, sums.exponent, potential.after, weight, only_root)

    _run(block, len(sums.log), threads, progress, downwards=True)
    return weight, only_root


def _run(
    block: Callable[[int, int], None], d: int, threads: int, progress: Progress, *, downwards: bool
) -> None:
    low_bits = min(d, LOW_BITS)
    if d == low_bits:  # one block
        block(0, low_bits)
        progress(1, 1)
        return
    done = 0
    with ThreadPoolExecutor(threads) as pool:
        try:
            for layer in _layers(d - low_bits, downwards):
                for high, _ in zip(layer, pool.map(lambda high: block(high, low_bits), layer), strict=True):
                    partners = high.bit_count() if not downwards else d - low_bits - high.bit_count()
                    done += 2**partners
                    progress(done, 3 ** (d - low_bits))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _layers(high_bits: int, downwards: bool) -> Iterator[list[int]]:
    sizes = range(high_bits, -1, -1) if downwards else range(high_bits + 1)
    for size in sizes:
        yield [high for high in range(1 << high_bits) if high.bit_count() == size]


@numba.njit(inline="always")
def power_of_two(exponent):
    """2^exponent without a table or a branch; 2^−1000 for anything smaller."""
    bits = np.float64(max(exponent, -1000.0) + _MAGIC).view(np.int64)
    return np.int64(bits << 52).view(np.float64)


@numba.njit(inline="always")
def over_high_nodes(placed, high_nodes, low_bits, start, start_exponent, mantissa, exponent):
    """`start` · 2^`start_exponent` times −β_j(placed) of every node of the set of high bits `high_nodes`."""
    for j in range(low_bits, mantissa.shape[0]):
        if high_nodes >> (j - low_bits) & 1:
            position = compress(placed, j)
            start *= -mantissa[j, position]
            start_exponent += exponent[j, position]
    return start, start_exponent


@numba.njit(inline="always")
def products(placed, low_bits, start, start_exponent, mantissa, exponent, product, power, index, nodes):
    """Products of −β_j(placed) over all sets of unplaced low nodes, by doubling.

    Fills `product` · 2^`power` with them, `index` with the low bits of placed ∪ R, and `nodes` with the nodes
    used. Returns the number of nodes used; those with β = 0 are left out.
    """
    product[0] = start
    power[0] = start_exponent
    index[0] = placed & ((1 << low_bits) - 1)
    used = 0
    for j in range(low_bits):
        if placed >> j & 1:
            continue
        position = compress(placed, j)
        factor = mantissa[j, position]
        if factor == 0.0:
            continue
        shift = float(exponent[j, position])
        size = 1 << used
        for r in range(size):
            product[size + r] = -factor * product[r]
            power[size + r] = shift + power[r]
            index[size + r] = index[r] | 1 << j
        nodes[used] = j
        used += 1
    return used


@numba.njit(cache=True, nogil=True, fastmath=_FAST)
def _weigh_block(high, low_bits, mantissa, exponent, before, weight):
    size = 1 << low_bits
    product, power = np.empty(size), np.empty(size)
    index, nodes = np.empty(size, dtype=np.int64), np.empty(low_bits, dtype=np.int64)
    target, target_exponent = weight[high * size :], before[high * size :]
    source = 0
    while True:  # the subsets of `high` in ascending order: its own block comes last
        for placed in range(source * size, (source + 1) * size):
            start, start_exponent = over_high_nodes(
                placed, high ^ source, low_bits, -weight[placed], before[placed], mantissa, exponent
            )
            if start == 0.0:
                continue
            used = products(
                placed, low_bits, start, start_exponent, mantissa, exponent, product, power, index, nodes
            )
            for r in range(1 if source == high else 0, 1 << used):
                u = index[r]
                target[u] += product[r] * power_of_two(power[r] - target_exponent[u])
        if source == high:
            return
        source = (source - high) & high


@numba.njit(cache=True, nogil=True, fastmath=_FAST)
def _complete_block(high, low_bits, mantissa, exponent, after, weight, only_root):
    d = mantissa.shape[0]
    size = 1 << low_bits
    product, power = np.empty(size), np.empty(size)
    index, nodes = np.empty(size, dtype=np.int64), np.empty(low_bits, dtype=np.int64)
    source = (1 << (d - low_bits)) - 1
    while True:  # the supersets of `high` in descending order: its own block comes last
        for placed in range((high + 1) * size - 1, high * size - 1, -1):
            if after[placed] == -FAR:
                continue
            start, start_exponent = over_high_nodes(
                placed, high ^ source, low_bits, -1.0, -after[placed], mantissa, exponent
            )
            if start == 0.0:
                continue
            used = products(
                placed, low_bits, start, start_exponent, mantissa, exponent, product, power, index, nodes
            )
            origin, origin_exponent = weight[source * size :], after[source * size :]
            for r in range(1 << used):
                u = index[r]
                product[r] *= origin[u] * power_of_two(power[r] + origin_exponent[u])
            if source == high:
                product[0] = 0.0
            for k in range(used - 1, -1, -1):  # fold: what is left sums over the nodes that were done
                half = 1 << k
                total = 0.0
                for r in range(half):
                    total += product[half + r]
                    product[r] += product[half + r]
                only_root[nodes[k], compress(placed, nodes[k])] += total
            for j in range(low_bits, d):
                if (high ^ source) >> (j - low_bits) & 1:
                    only_root[j, compress(placed, j)] += product[0]
            weight[placed] += product[0]
        if source == high:
            return
        source = high | ((source & ~high) - 1) & ~high
