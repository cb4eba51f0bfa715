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
from gflowdag.exact.scaled import compress
from gflowdag.exact.size import checked_table
from gflowdag.graph.bits import graphs_from_masks
from gflowdag.score.subsets import log_subset_sums

_NONE = -1  # the set before the first layer: unlike the empty set, it rules out no parents
_ROUNDING = 1e-14  # probabilities below it are the rounding of zero


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
    log_sums = log_subset_sums(shifted)
    previous, placed = _draw_layers(n, log_sums, exact.log_completions, rng)
    masks = _draw_parents(shifted, log_sums, previous, placed, rng)
    return graphs_from_masks(masks, len(table))


def _draw_layers(
    n: int, log_sums: NDArray[np.float64], log_completions: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For every sample and node, the sets W and U: its parents are in U, not all in W; int64 [n, d]."""
    d = len(log_sums)
    outside = np.zeros((n, d), dtype=np.int64)
    inside = np.zeros((n, d), dtype=np.int64)
    previous = np.full(n, _NONE, dtype=np.int64)
    placed = np.zeros(n, dtype=np.int64)
    active = np.arange(n)
    while len(active):
        active = active[np.lexsort((previous[active], placed[active]))]
        changed = (np.diff(placed[active]) != 0) | (np.diff(previous[active]) != 0)
        law, law_of = np.empty(0), np.int64(_NONE)
        for members in np.split(active, np.flatnonzero(changed) + 1):
            now, before = placed[members[0]], previous[members[0]]
            if now != law_of:  # sorted by the placed set, so that each law is computed once
                law, law_of = _layer_law(now, log_sums, log_completions), now
            cumulative = np.cumsum(_unready_before(law, now, before, log_sums))
            if cumulative[-1] <= 0.0:  # reached by rounding alone: start these samples again
                previous[members], placed[members] = _NONE, 0
                continue
            draws = np.searchsorted(cumulative, rng.random(len(members)) * cumulative[-1], side="right")
            layer = _scatter_bits(draws, ~now & ((1 << d) - 1))
            chosen = (layer[:, None] >> np.arange(d) & 1).astype(bool)
            outside[members] = np.where(chosen, before, outside[members])
            inside[members] = np.where(chosen, now, inside[members])
            previous[members] = now
            placed[members] = now | layer
        active = active[placed[active] != (1 << d) - 1]
    return outside, inside


@numba.njit(cache=True)
def _layer_law(placed, log_sums, log_completions):
    """P(the nodes with all parents in `placed` are exactly T), [2^m] over the sets T of unplaced nodes."""
    d = log_sums.shape[0]
    log_weight = np.zeros(1)
    sets = np.full(1, placed)
    for j in range(d):
        if not placed >> j & 1:
            log_weight = np.concatenate((log_weight, log_weight + log_sums[j, compress(placed, j)]))
            sets = np.concatenate((sets, sets | 1 << j))
    law = np.empty(sets.size)
    for r in range(sets.size):
        law[r] = np.exp(log_weight[r] + log_completions[sets[r]] - log_completions[placed])
    step = 1
    while step < law.size:
        for start in range(0, law.size, 2 * step):
            for r in range(start, start + step):
                law[r] -= law[r + step]
        step *= 2
    law[0] = 0.0  # some node is always ready
    for r in range(law.size):
        if law[r] < _ROUNDING:
            law[r] = 0.0
    return law


@numba.njit(cache=True)
def _unready_before(law, placed, previous, log_sums):
    """The law of the layer, weighed by the probability that none of its nodes was ready at `previous`."""
    d = log_sums.shape[0]
    factor = np.ones(1)
    for j in range(d):
        if not placed >> j & 1:
            ratio = 1.0
            if previous != _NONE:
                earlier, now = log_sums[j, compress(previous, j)], log_sums[j, compress(placed, j)]
                ratio = 0.0 if now == -np.inf else -np.expm1(earlier - now)
            factor = np.concatenate((factor, factor * ratio))
    return law * factor


@numba.njit(cache=True)
def _scatter_bits(indices, mask):
    """Spread the bits of each index over the set bits of `mask`, lowest first."""
    result = np.zeros(indices.size, dtype=np.int64)
    for k in range(indices.size):
        rest, index = mask, indices[k]
        while rest:
            if index & 1:
                result[k] |= rest & -rest
            index >>= 1
            rest &= rest - 1
    return result


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
    masks = np.empty(n * d, dtype=np.int64)
    masks[order] = _walk_parent_sets(
        node[order], inside[order], outside[order], uniform[order], table, log_sums
    )
    return masks.reshape(n, d)


@numba.njit(cache=True)
def _walk_parent_sets(node, inside, outside, uniform, table, log_sums):
    masks = np.zeros(node.size, dtype=np.int64)
    start = 0
    while start < node.size:
        j, within, excluded = node[start], inside[start], outside[start]
        end = start
        while end < node.size and node[end] == j and inside[end] == within and outside[end] == excluded:
            end += 1
        log_total = log_sums[j, compress(within, j)]
        mass = 1.0
        if excluded != _NONE:
            mass = -np.expm1(log_sums[j, compress(excluded, j)] - log_total)
        reached, last, parents, k = 0.0, np.int64(0), np.int64(0), start
        while k < end:
            if excluded == _NONE or parents & ~excluded:
                weight = np.exp(table[j, compress(parents, j)] - log_total)
                if weight > 0.0:
                    reached, last = reached + weight, parents
                    while k < end and uniform[k] * mass < reached:
                        masks[k] = parents
                        k += 1
            if parents == within:
                break
            parents = (parents - within) & within
        masks[k:end] = last  # rounding left the sum a little short
        start = end
    return masks
