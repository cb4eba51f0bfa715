"""Independent DAGs from the exact posterior, layer by layer from the roots.

The first layer are the nodes without parents; after the layers W and then L, the next layer are the nodes
whose parents are all in U = W ∪ L, and not all in W. With H(U) the weight of all ways to add the rest to U,

    P(every node of R has its parents in U) = Π_{j∈R} β_j(U) · H(U∪R) / H(U),

whose Möbius transform over supersets is the law of the set T of *all* such nodes. Given the layer before it,
T weighs in addition Π_{j∈T} (1 − β_j(W)/β_j(U)): none of its nodes may have been ready earlier. The parents
of the nodes of T are then independent. Nothing is rejected and nothing is approximate.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.exact.marginals import Exact, posterior
from gflowdag.exact.scaled import SubsetSums, compress, power_of_two, split, subset_sums
from gflowdag.exact.size import checked_table
from gflowdag.graph.bits import graphs_from_masks
from gflowdag.runtime.threads import map_threads

_NONE = -1  # the set before the first layer: unlike the empty set, it rules out no parents
_ROUNDING = 1e-14  # a probability below it is the rounding of zero
_NEGLIGIBLE = -45.0  # log of it; 2^20 sets of this probability together weigh 1e-14


def sample(
    table: ArrayLike, n: int, rng: np.random.Generator, *, exact: Exact | None = None
) -> NDArray[np.bool_]:
    """Draw independent DAGs from the exact posterior.

    Args:
        table: log scores of all parent sets, float64 [d, 2^(d−1)], compressed index.
        n: number of DAGs.
        rng: source of randomness.
        exact: `posterior(table)` where it is already known; computed otherwise.

    Returns:
        bool [n, d, d], rows are sources.
    """
    table = checked_table(table)
    exact = exact or posterior(table)
    shifted = table - table.max(axis=1, keepdims=True)
    sums = subset_sums(shifted)
    outside, inside = _draw_layers(n, sums, exact.log_completions, rng)
    masks = _draw_parents(shifted, sums.log, outside, inside, rng)
    return graphs_from_masks(masks, len(table))


def _draw_layers(
    n: int, sums: SubsetSums, log_completions: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For every sample and node, the sets W and U: its parents are in U, not all in W; int64 [n, d]."""
    d = len(sums.log)
    completions = split(log_completions)
    outside = np.zeros((n, d), dtype=np.int64)
    inside = np.zeros((n, d), dtype=np.int64)
    previous = np.full(n, _NONE, dtype=np.int64)
    placed = np.zeros(n, dtype=np.int64)
    active = np.arange(n)
    while len(active):
        active = active[np.lexsort((previous[active], placed[active]))]
        now, before = placed[active], previous[active]
        layer = _next_layers(now, before, rng.random(len(active)), sums, completions)
        chosen = (layer[:, None] >> np.arange(d) & 1).astype(bool)
        outside[active] = np.where(chosen, before[:, None], outside[active])
        inside[active] = np.where(chosen, now[:, None], inside[active])
        reached_by_rounding = layer == 0  # no layer can follow: start again
        previous[active] = np.where(reached_by_rounding, _NONE, now)
        placed[active] = np.where(reached_by_rounding, 0, now | layer)
        active = active[placed[active] != (1 << d) - 1]
    return outside, inside


def _next_layers(
    placed: NDArray[np.int64],
    previous: NDArray[np.int64],
    uniform: NDArray[np.float64],
    sums: SubsetSums,
    completions: tuple[NDArray[np.float64], NDArray[np.int32]],
) -> NDArray[np.int64]:
    """The next layer of each sample, int64 masks [n]; sorted by `placed`, then `previous`."""
    layer = np.zeros(len(placed), dtype=np.int64)
    start = np.flatnonzero(np.diff(placed, prepend=_NONE))
    end = np.append(start[1:], len(placed))

    def draw(k: int) -> None:  # those that have placed the same set share the law of what follows
        same = slice(start[k], end[k])
        _draw_layer(placed[start[k]], previous[same], uniform[same], *sums, *completions, layer[same])

    map_threads(draw, range(len(start)))
    return layer


@numba.njit(cache=True, nogil=True)
def _draw_layer(
    placed, previous, uniform, log_sums, mantissa, exponent, whole_mantissa, whole_exponent, layer
):
    """Draw a layer after `placed` for every `previous` [n], which is sorted; zero where there is none."""
    d = log_sums.shape[0]
    size = 1
    for j in range(d):
        size <<= 1 - (placed >> j & 1)
    law, power = np.empty(size), np.empty(size)
    index, nodes = np.empty(size, dtype=np.int64), np.empty(d, dtype=np.int64)
    start_exponent = -float(whole_exponent[placed])
    used = _products(
        placed, 1 / whole_mantissa[placed], start_exponent, mantissa, exponent, law, power, index, nodes
    )
    size = 1 << used
    for r in range(size):
        law[r] *= whole_mantissa[index[r]] * power_of_two(power[r] + whole_exponent[index[r]])
    _exactly(law[:size])
    factor, cumulative = power, np.empty(size)  # `power` has served
    start = 0
    while start < previous.size:
        end = start + 1
        while end < previous.size and previous[end] == previous[start]:
            end += 1
        factor[0] = 1.0
        for k in range(used):
            unready = _probability_outside(nodes[k], placed, previous[start], log_sums)
            for r in range(1 << k):
                factor[(1 << k) + r] = factor[r] * unready
        total = 0.0
        cumulative[0] = 0.0
        for r in range(1, size):
            if law[r] > _ROUNDING:
                total += law[r] * factor[r]
            cumulative[r] = total
        for k in range(start, end):
            r, beyond = 0, size  # the first whose sum is larger; numba's `searchsorted` compiles for a second
            while r < beyond:
                middle = (r + beyond) >> 1
                if cumulative[middle] <= uniform[k] * total:
                    r = middle + 1
                else:
                    beyond = middle
            layer[k] = index[r] ^ placed if r < size else 0
        start = end


@numba.njit(inline="always")
def _products(placed, start, start_exponent, mantissa, exponent, product, power, index, nodes):
    """Products of −β_j(placed) over all sets of unplaced nodes, by doubling.

    Fills `product` · 2^`power` with them, `index` with placed ∪ R, and `nodes` with the nodes
    used. Returns the number of nodes used; those with β = 0 are left out.
    """
    product[0] = start
    power[0] = start_exponent
    index[0] = placed
    used = 0
    for j in range(mantissa.shape[0]):
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


@numba.njit(inline="always")
def _exactly(law):
    """From (−1)^|R| P(R ⊆ T) for all R to P(T) for all T: the Möbius transform over supersets, in place."""
    step = 1
    while step < law.size:
        for start in range(0, law.size, 2 * step):
            for r in range(start, start + step):
                law[r] += law[r + step]
                law[r + step] = -law[r + step]
        step *= 2


@numba.njit(inline="always")
def _probability_outside(j, within, excluded, log_sums):
    """P(the parents of j are not all in `excluded`), given that they are all in `within`."""
    if excluded == _NONE:
        return 1.0
    return -np.expm1(log_sums[j, compress(excluded, j)] - log_sums[j, compress(within, j)])


def _draw_parents(
    table: NDArray[np.float64],
    log_sums: NDArray[np.float64],
    outside: NDArray[np.int64],
    inside: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Parent sets of all nodes, in proportion to their weights, int64 masks [n, d]."""
    n, d = inside.shape
    node = np.broadcast_to(np.arange(d), (n, d)).ravel()
    outside, inside, uniform = outside.ravel(), inside.ravel(), rng.random(n * d)
    order = np.lexsort((uniform, outside, inside, node))  # equal tasks share one walk over the sets
    inside, outside, uniform = inside[order], outside[order], uniform[order]
    drawn, masks = np.zeros((2, n * d), dtype=np.int64)

    def draw(j: int) -> None:
        these = slice(j * n, (j + 1) * n)
        _walk_parent_sets(j, inside[these], outside[these], uniform[these], table[j], log_sums, drawn[these])

    map_threads(draw, range(d))
    masks[order] = drawn
    return masks.reshape(n, d)


@numba.njit(cache=True, nogil=True)
def _walk_parent_sets(j, inside, outside, uniform, scores, log_sums, masks):
    """Draw a parent set of `j` for every task: in `inside`, not all in `outside`."""
    start = 0
    while start < inside.size:
        within, excluded = inside[start], outside[start]
        end = start
        while end < inside.size and inside[end] == within and outside[end] == excluded:
            end += 1
        log_total = log_sums[j, compress(within, j)]
        mass = _probability_outside(j, within, excluded, log_sums)
        reached, last, parents, k = 0.0, np.int64(0), np.int64(0), start
        while k < end:
            if excluded == _NONE or parents & ~excluded:
                log_weight = scores[compress(parents, j)] - log_total
                if log_weight > _NEGLIGIBLE:
                    reached, last = reached + np.exp(log_weight), parents
                    while k < end and uniform[k] * mass < reached:
                        masks[k] = parents
                        k += 1
            if parents == within:
                break
            parents = (parents - within) & within
        masks[k:end] = last  # rounding left the sum a little short
        start = end
    return masks
