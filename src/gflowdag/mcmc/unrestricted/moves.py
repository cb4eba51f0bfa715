"""Moves of a graph inside the tables of one refresh: whole parent sets, and edge reversals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.mcmc.bit_graphs import add, holds, pop, set_parents
from gflowdag.mcmc.unrestricted.xoshiro import uniform

_TINY = 1e-280  # a sum of weights below this has lost digits, and is taken in logarithms


class Weights(NamedTuple):
    """What every set `base ∪ S` of a node weighs; bit `k` of an index stands for candidate `k`."""

    log: NDArray[np.float64]  # [d, 2^K], the largest of a node is 0
    linear: NDArray[np.float64]  # [d, 2^K], their exponentials


class Scratch(NamedTuple):
    """Room for the moves of one chain."""

    index: NDArray[np.int64]  # [d], the present subset of the candidates
    mutual: NDArray[np.uint64]  # [d, W], candidates that have the node as candidate
    pairs: NDArray[np.float64]  # [d, d], how often the edge between two nodes is to be reversed; symmetric
    eligible: NDArray[np.float64]  # [d], that of all incoming edges that may be reversed
    words: NDArray[np.uint64]  # [4, W]


def make_scratch(pairs: NDArray[np.float64]) -> Scratch:
    """Room for the moves of a chain that reverses edges as often as `pairs` [d, d] says."""
    d = len(pairs)
    num_words = (d + 63) // 64
    return Scratch(
        np.zeros(d, np.int64),
        np.zeros((d, num_words), np.uint64),
        pairs,
        np.zeros(d),
        np.zeros((4, num_words), np.uint64),
    )


@njit(cache=True, nogil=True)
def edge_probabilities(graph, sets, weights, scratch, counted, certain, out):
    """Add the probability of every edge given all other parent sets to `out`, float64 [d, d].

    Only the first `counted` [d] candidates of a node, and the parents `certain` [d, W], which it has.
    """
    d = graph.parents.shape[0]
    inside = np.empty(sets.candidates.shape[1])
    for node in range(d):
        allowed = _allowed(graph, sets, scratch, node)
        log_total, total = _log_sum(weights, node, allowed, 0)
        inside[:] = 0.0
        subset = allowed
        while True:
            if total > 0:
                share = weights.linear[node, subset] / total
            else:
                share = np.exp(weights.log[node, subset] - log_total)
            left, k = subset, 0
            while left:
                if left & 1:
                    inside[k] += share
                left >>= 1
                k += 1
            if subset == 0:
                break
            subset = (subset - 1) & allowed
        for k in range(counted[node]):
            out[sets.candidates[node, k], node] += inside[k]
        left = scratch.words[0]
        left[:] = certain[node]
        parent = pop(left)
        while parent >= 0:
            out[parent, node] += 1.0
            parent = pop(left)


@njit(cache=True, nogil=True)
def prepare(graph, sets, scratch):
    """Write what the moves need to know of a graph under new tables."""
    d = graph.parents.shape[0]
    for node in range(d):
        scratch.mutual[node, :] = 0
        index = 0
        for k in range(sets.sizes[node]):
            candidate = sets.candidates[node, k]
            index |= int(holds(graph.parents[node], candidate)) << k
            if sets.position[candidate, node] >= 0:
                add(scratch.mutual[node], candidate)
        scratch.index[node] = index
        _weigh_incoming(graph, scratch, node)


@njit(cache=True, nogil=True)
def reach(children, node, reached, pending):
    """Write the node and all that it reaches; `pending` is scratch."""
    pending[:] = children[node]
    reached[:] = pending
    add(reached, node)
    reaching = pop(pending)
    while reaching >= 0:
        for w in range(len(reached)):
            new = children[reaching, w] & ~reached[w]
            reached[w] |= new
            pending[w] |= new
        reaching = pop(pending)


@njit(cache=True, nogil=True)
def _allowed(graph, sets, scratch, node):
    """Index of all candidates that the node does not reach; −1 where it reaches a parent of its base."""
    reached = scratch.words[0]
    reach(graph.children, node, reached, scratch.words[1])
    for w in range(len(reached)):
        if reached[w] & sets.base[node, w] != 0:
            return -1
    allowed = 0
    for k in range(sets.sizes[node]):
        allowed |= int(not holds(reached, sets.candidates[node, k])) << k
    return allowed


@njit(cache=True, nogil=True)
def _log_sum(weights, node, allowed, must):
    """Log-sum over the subsets of `allowed` that contain `must`, and the sum, or −1 where that is tiny."""
    if allowed < 0:
        return -np.inf, -1.0
    rest = allowed & ~must
    linear = weights.linear[node]
    total = 0.0
    subset = rest
    while True:
        total += linear[subset | must]
        if subset == 0:
            break
        subset = (subset - 1) & rest
    if total > _TINY:
        return np.log(total), total
    log = weights.log[node]
    largest = -np.inf
    subset = rest
    while True:
        largest = max(largest, log[subset | must])
        if subset == 0:
            break
        subset = (subset - 1) & rest
    if largest == -np.inf:
        return -np.inf, -1.0
    total = 0.0
    subset = rest
    while True:
        total += np.exp(log[subset | must] - largest)
        if subset == 0:
            break
        subset = (subset - 1) & rest
    return largest + np.log(total), -1.0


@njit(cache=True, nogil=True)
def _draw(weights, node, allowed, must, log_total, total, random):
    """One of these subsets, by its weight."""
    rest = allowed & ~must
    left = uniform(random)
    if total > 0:
        left *= total
    subset = rest
    chosen = -1
    while True:
        if total > 0:
            weight = weights.linear[node, subset | must]
        else:
            weight = np.exp(weights.log[node, subset | must] - log_total)
        if weight > 0:
            chosen = subset | must
            left -= weight
            if left < 0:
                break
        if subset == 0:
            break
        subset = (subset - 1) & rest
    return chosen


@njit(cache=True, nogil=True)
def assign(graph, sets, scratch, node, index):
    """Give the node the parents `base ∪ index`."""
    words = scratch.words[3]
    words[:] = sets.base[node]
    k = 0
    left = index
    while left:
        if left & 1:
            add(words, sets.candidates[node, k])
        left >>= 1
        k += 1
    set_parents(graph, node, words)
    scratch.index[node] = index
    _weigh_incoming(graph, scratch, node)


@njit(cache=True, nogil=True)
def _weigh_incoming(graph, scratch, node):
    """Write how often an incoming edge of the node is to be reversed."""
    sources = scratch.words[2]
    sources[:] = graph.parents[node] & scratch.mutual[node]
    total = 0.0
    source = pop(sources)
    while source >= 0:
        total += scratch.pairs[source, node]
        source = pop(sources)
    scratch.eligible[node] = total


@njit(cache=True, nogil=True)
def redraw(graph, sets, weights, scratch, node, random):
    """Draw the whole parent set of a node, given all others."""
    allowed = _allowed(graph, sets, scratch, node)
    log_total, total = _log_sum(weights, node, allowed, 0)
    index = _draw(weights, node, allowed, 0, log_total, total, random)
    if index != scratch.index[node]:
        assign(graph, sets, scratch, node, index)


@njit(cache=True, nogil=True)
def clear(graph, scratch, node):
    """Take all parents from the node."""
    words = scratch.words[3]
    words[:] = 0
    set_parents(graph, node, words)


@njit(cache=True, nogil=True)
def _eligible_edge(graph, scratch, left):
    """The edge at which so much of the total weight of all eligible edges is used up."""
    target = -1
    for node in range(len(scratch.eligible)):
        if scratch.eligible[node] > 0:
            target = node
            if left < scratch.eligible[node]:
                break
            left -= scratch.eligible[node]
    sources = scratch.words[2]
    sources[:] = graph.parents[target] & scratch.mutual[target]
    chosen = source = pop(sources)
    while source >= 0:
        chosen = source
        left -= scratch.pairs[source, target]
        if left < 0:
            break
        source = pop(sources)
    return chosen, target


@njit(cache=True, nogil=True)
def reverse(graph, sets, weights, scratch, random):
    """Reverse an edge and draw both parent sets anew (Grzegorczyk & Husmeier 2008); whether it was accepted.

    Eligible are edges whose ends are candidates of each other and that are not pinned; one is drawn by a
    weight that does not depend on its direction. Both nodes lose their parents, then the source draws a set
    with the target in it, and the target any.
    """
    before = scratch.eligible.sum()
    if before == 0:
        return False
    source, target = _eligible_edge(graph, scratch, uniform(random) * before)
    old_source, old_target = scratch.index[source], scratch.index[target]
    there = 1 << int(sets.position[source, target])
    back = 1 << int(sets.position[target, source])
    clear(graph, scratch, source)
    clear(graph, scratch, target)
    free = _allowed(graph, sets, scratch, source)
    log_there, total = _log_sum(weights, source, free, there)
    log_back, _ = _log_sum(weights, target, _allowed(graph, sets, scratch, target), back)
    accepted = False
    if log_there > -np.inf:
        new_source = _draw(weights, source, free, there, log_there, total, random)
        # Back, the source drew its old parents beside the old ones of the target.
        assign(graph, sets, scratch, target, old_target)
        log_old, _ = _log_sum(weights, source, _allowed(graph, sets, scratch, source), 0)
        clear(graph, scratch, target)
        assign(graph, sets, scratch, source, new_source)
        free = _allowed(graph, sets, scratch, target)
        log_any, total = _log_sum(weights, target, free, 0)
        if log_any > -np.inf:
            new_target = _draw(weights, target, free, 0, log_any, total, random)
            assign(graph, sets, scratch, target, new_target)
            log_ratio = log_there - log_back + log_any - log_old
            after = scratch.eligible.sum()
            accepted = np.log(uniform(random)) < log_ratio + np.log(before / after)
    if not accepted:
        clear(graph, scratch, source)
        assign(graph, sets, scratch, target, old_target)
        assign(graph, sets, scratch, source, old_source)
    return accepted
