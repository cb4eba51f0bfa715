"""Candidate parents of every node, drawn as an auxiliary variable given the graph.

The allowed parents of a node are ranked once and for all. The first few are its *core*, the others its
*outsiders*, of which the better ranked have the larger weights `w`. Given the present parents of a node, with
`e` outsiders `E` among them, a refresh draws

- how many of these are *free*, `u ≤ min(e, r)`, mostly as many as possible, and which; the other `f = e − u`
  are *pinned*: they stay parents until the next refresh, as required parents always do;
- further outsiders until there are `g = min(r, n_out − f)` with the free ones, a set in proportion to `Π w`.

Candidates are the core, the free and the further outsiders; tabulated are all sets `base ∪ S`, with the
pinned and required parents as base and `S` any subset of the candidates. The draw has the probability

    p(u | e) / binom(e, u) · Π_further w / e_{g − u}(w outside E)

with `e_k` the elementary symmetric polynomial. Given what was drawn, a graph weighs its posterior times this,
which depends on the parents of each node alone: a correction of the tables, under which the posterior over
*all* DAGs stays as it is. Pinning makes sets of any size reachable, and no node is ever without a move.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.graph.bits import words_of
from gflowdag.mcmc.bit_graphs import add, holds, pop, size
from gflowdag.mcmc.unrestricted.focus import Focus, make_focus
from gflowdag.mcmc.unrestricted.xoshiro import integer, uniform

PINNING = 0.1  # each outsider more that is pinned without need is that much less likely
_HEAD = 4.0  # the outsider of rank k has the weight 1 / (k + 4)


class Pools(NamedTuple):
    """Where the candidates of every node come from; `c` in the core at most, `r` outsiders at most."""

    core: NDArray[np.int32]  # [d, c]
    core_sizes: NDArray[np.int64]  # [d], how many of them count
    outsiders: NDArray[np.int32]  # [d, d], by rank
    num_outsiders: NDArray[np.int64]  # [d]
    outsider_words: NDArray[np.uint64]  # [d, W], as bits
    weights: NDArray[np.float64]  # [d (node), d (outsider)]
    cumulative: NDArray[np.float64]  # [d, d], of the weights by rank
    power_sums: NDArray[np.float64]  # [d, r + 1], of the weights of all outsiders
    required: NDArray[np.uint64]  # [d, W], as bits
    focus: Focus  # where chains move more often


class CandidateSets(NamedTuple):
    """What one refresh drew."""

    candidates: NDArray[np.int32]  # [d, c + r], the core first
    sizes: NDArray[np.int64]  # [d], how many of them count
    base: NDArray[np.uint64]  # [d, W], pinned and required parents
    correction: NDArray[np.float64]  # [d, 2^r], log probability of the draw, by the outsiders in the set
    position: NDArray[np.int16]  # [d (node), d (parent)], place among the candidates, or −1


def make_pools(
    interest: NDArray[np.float64],
    required: NDArray[np.bool_],
    forbidden: NDArray[np.bool_],
    *,
    core_size: int | NDArray[np.int64],
    num_outsiders: int,
    doubt: NDArray[np.float64] | None = None,
) -> Pools:
    """Pools from what is known of the edges.

    Args:
        interest: [d, d], rows are sources; the larger, the more often an edge is considered.
        required: bool [d, d], rows are sources; they are parents anyway and in no pool.
        forbidden: bool [d, d]; they are in no pool.
        core_size: `c`, or that of each node, [d].
        num_outsiders: `r`, at least 1.
        doubt: [d, d], how uncertain an edge is; by default all are alike.
    """
    d = len(required)
    ranking = np.argsort(-interest, axis=0, kind="stable").T
    open_to = ~(required | forbidden | np.eye(d, dtype=bool))
    wanted = np.broadcast_to(core_size, d)
    core, core_sizes = np.zeros((d, max(wanted.max(), 1)), np.int32), np.zeros(d, np.int64)
    outsiders, numbers = np.zeros((d, d), np.int32), np.zeros(d, np.int64)
    weights, cumulative = np.zeros((d, d)), np.zeros((d, d))
    for node in range(d):
        ranked = ranking[node][open_to[ranking[node], node]]
        inside, outside = ranked[: wanted[node]], ranked[wanted[node] :]
        core_sizes[node], numbers[node] = len(inside), len(outside)
        core[node, : len(inside)], outsiders[node, : len(outside)] = inside, outside
        weights[node, outside] = 1 / (np.arange(len(outside)) + _HEAD)
        cumulative[node, : len(outside)] = weights[node, outside].cumsum()
    power_sums = (weights[:, :, None] ** np.arange(num_outsiders + 1)).sum(axis=1)
    return Pools(
        core,
        core_sizes,
        outsiders,
        numbers,
        words_of(weights > 0),
        weights,
        cumulative,
        power_sums,
        words_of(required.T),
        make_focus(interest, np.zeros((d, d)) if doubt is None else doubt),
    )


def empty_sets(pools: Pools) -> CandidateSets:
    """Room for what `draw_candidates` writes."""
    d, num_words = pools.required.shape
    r = pools.power_sums.shape[1] - 1
    return CandidateSets(
        np.zeros((d, pools.core.shape[1] + r), np.int32),
        np.zeros(d, np.int64),
        np.zeros((d, num_words), np.uint64),
        np.zeros((d, 1 << r)),
        np.full((d, d), -1, np.int16),
    )


@njit(cache=True, nogil=True)
def draw_candidates(parents, pools, random, sets):
    """Candidates and base of every node, given the parents [d, W]; written into `sets`."""
    d = parents.shape[0]
    r = pools.power_sums.shape[1] - 1
    present = np.empty(d, np.int32)
    for node in range(d):
        for k in range(sets.sizes[node]):
            sets.position[node, sets.candidates[node, k]] = -1
        core_size = pools.core_sizes[node]
        candidates = sets.candidates[node]
        candidates[:core_size] = pools.core[node, :core_size]
        sets.base[node] = pools.required[node]

        outside = parents[node] & pools.outsider_words[node]
        left = outside.copy()
        e = size(outside)
        for a in range(e):
            present[a] = pop(left)
        u = _draw_number_free(e, r, random)
        for a in range(u):  # the first u of a random permutation are free
            b = a + integer(random, e - a)
            present[a], present[b] = present[b], present[a]
            candidates[core_size + a] = present[a]
        for a in range(u, e):
            add(sets.base[node], present[a])

        g = min(r, pools.num_outsiders[node] - (e - u))
        _draw_further(pools, node, outside, candidates[core_size + u : core_size + g], random)
        sets.sizes[node] = core_size + g
        for k in range(core_size + g):
            sets.position[node, candidates[k]] = k
        _correct(pools, node, present[u:e], candidates[core_size : core_size + g], sets.correction[node])


@njit(cache=True, nogil=True)
def _draw_number_free(e, r, random):
    """`u` with probability proportional to `PINNING^(min(e, r) − u)`."""
    most = min(e, r)
    left = uniform(random) * _number_free_total(most)
    for u in range(most, 0, -1):
        left -= PINNING ** (most - u)
        if left < 0:
            return u
    return 0


@njit(cache=True, nogil=True)
def _number_free_total(most):
    total = 0.0
    for u in range(most + 1):
        total += PINNING**u
    return total


@njit(cache=True, nogil=True)
def _draw_further(pools, node, taken, out, random):
    """Fill `out` with outsiders that are not `taken`, a set in proportion to the product of its weights."""
    n = pools.num_outsiders[node]
    cumulative = pools.cumulative[node, :n]
    filled = 0
    while filled < len(out):  # one after the other, and all anew where one comes twice
        rank = np.searchsorted(cumulative, uniform(random) * cumulative[n - 1], side="right")
        other = pools.outsiders[node, min(rank, n - 1)]
        if holds(taken, other):
            continue
        twice = False
        for a in range(filled):
            twice |= out[a] == other
        if twice:
            filled = 0
        else:
            out[filled] = other
            filled += 1


@njit(cache=True, nogil=True)
def _correct(pools, node, pinned, candidates, out):
    """Log probability of the draw for every set of the outsiders among the candidates, but for a constant."""
    g, f = len(candidates), len(pinned)
    weights, sums = pools.weights[node], pools.power_sums[node]
    r = len(sums) - 1
    left = np.empty(r + 1)  # power sums of the weights outside E
    symmetric = np.empty(r + 1)
    for subset in range(1 << g):
        left[:] = sums
        for outsider in pinned:
            _take(left, weights[outsider])
        s, log_weights = 0, 0.0
        for k in range(g):
            if subset >> k & 1:
                s += 1
                log_weights += np.log(weights[candidates[k]])
                _take(left, weights[candidates[k]])
        symmetric[0] = 1.0
        for k in range(1, g - s + 1):  # Newton's identities
            total, sign = 0.0, 1.0
            for i in range(1, k + 1):
                total += sign * symmetric[k - i] * left[i]
                sign = -sign
            symmetric[k] = total / k
        most = min(f + s, r)
        value = (most - s) * np.log(PINNING) - np.log(_number_free_total(most))
        for i in range(s):  # binom(f + s, s)
            value -= np.log((f + s - i) / (i + 1))
        out[subset] = value - log_weights - np.log(symmetric[g - s])


@njit(cache=True, nogil=True)
def _take(power_sums, weight):
    power = 1.0
    for k in range(len(power_sums)):
        power_sums[k] -= power
        power *= weight
