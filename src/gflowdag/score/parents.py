"""Parent sets given a canonical order: exact draws, and exact edge probabilities.

Given the order, the nodes are independent. Node `j` has its parents among the nodes `U` placed before it, not all of
them inside `B`, the nodes that were placed before the last larger label (no such condition if there was none). The
sets of each node are walked from the best downwards until what is left cannot matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from gflowdag.progress import Progress, silent
from gflowdag.score.candidates import CandidateTable
from gflowdag.score.threads import map_threads, num_cores

_TOLERANCE = 1e-13  # relative weight of the sets that a walk may leave out


class RankedSets(NamedTuple):
    """The parent sets of each node, best first."""

    candidates: NDArray[np.int32]  # [d, K]
    index: NDArray[np.int32]  # [d, 2^K], local index of the sets
    scores: NDArray[np.float64]  # [d, 2^K], descending
    by_index: NDArray[np.float64]  # [d, 2^K], the same scores in the order of the local index
    singles: NDArray[np.float64]  # [d (node), d (outsider)]


def rank_sets(table: CandidateTable) -> RankedSets:
    """Sort the parent sets of each node by their score."""
    index = np.empty(table.scores.shape, np.int32)
    scores = np.empty_like(table.scores)

    def fill(node: int) -> None:
        index[node] = np.argsort(-table.scores[node], kind="stable")
        scores[node] = table.scores[node][index[node]]

    map_threads(fill, range(table.num_variables))
    return RankedSets(table.candidates, index, scores, table.scores, table.singles)


def sample_parents(
    ranked: RankedSets,
    orders: ArrayLike,
    labels: ArrayLike,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> NDArray[np.bool_]:
    """One DAG from the exact posterior given each order.

    Args:
        ranked: parent sets.
        orders: int [n, d], canonical orders that have a positive weight.
        labels: int [d], as they were used to build the orders.
        rng: source of randomness.
        progress: told about the share done.

    Returns:
        bool [n, d, d].
    """
    orders = np.ascontiguousarray(orders, np.int64)
    n, d = orders.shape
    labels = np.ascontiguousarray(labels, np.int64)
    uniforms = rng.random((n, d))
    out = np.zeros((n, d, d), bool)

    def fill(chunk: slice) -> None:
        _sample(ranked, orders[chunk], labels, uniforms[chunk], out[chunk])

    _over_chunks(fill, n, progress)
    return out


def edge_probabilities(
    ranked: RankedSets, orders: ArrayLike, labels: ArrayLike, progress: Progress = silent
) -> NDArray[np.float64]:
    """`P(i → j | order)` for each order, int [n, d] -> float64 [n, d, d] (Rao–Blackwell)."""
    orders = np.ascontiguousarray(orders, np.int64)
    n, d = orders.shape
    labels = np.ascontiguousarray(labels, np.int64)
    out = np.zeros((n, d, d))

    def fill(chunk: slice) -> None:
        _probabilities(ranked, orders[chunk], labels, out[chunk])

    _over_chunks(fill, n, progress)
    return out


def _over_chunks(fill, n: int, progress: Progress) -> None:
    bounds = np.linspace(0, n, min(n, 8 * num_cores()) + 1).astype(int)
    map_threads(lambda part: fill(slice(bounds[part], bounds[part + 1])), range(len(bounds) - 1), progress)


@njit(cache=True, nogil=True)
def _window(order, labels, position):
    """Where the last larger label before the node at `position` stands; −1 if there is none."""
    for earlier in range(position - 1, -1, -1):
        if labels[order[earlier]] > labels[order[position]]:
            return earlier
    return -1


@njit(cache=True, nogil=True)
def _walk(ranked, node, place_of, position, barrier, reference, threshold, weights):
    """Sum the weights of the allowed sets of a node, relative to `reference` (raised where a better set is met).

    Few placed candidates: all of their subsets; many: the ranked sets, until the rest cannot matter. Fills
    `weights` [d] with the weight of the sets with each parent, and stops where the sum exceeds `threshold`.

    Returns:
        The sum, the reference, and what it stopped at: a local index, `−2 − outsider`, or −1 for the end.
    """
    candidates = ranked.candidates[node]
    num_candidates = candidates.shape[0]
    placed, old, num_placed = 0, 0, 0
    for bit in range(num_candidates):
        place = place_of[candidates[bit]]
        placed |= (place < position) << bit
        old |= (place < barrier) << bit
        num_placed += place < position
    total = 0.0
    weights[:] = 0.0
    for outsider in range(place_of.shape[0]):
        score = ranked.singles[node, outsider]
        if max(barrier, 0) <= place_of[outsider] < position and score > -np.inf:
            if score > reference:
                total, reference = _raise(total, weights, reference, score)
            weight = np.exp(score - reference)
            total += weight
            weights[outsider] += weight
            if total > threshold:
                return total, reference, -2 - outsider
    by_subsets = num_placed + 3 < num_candidates
    num_sets = 1 << (num_placed if by_subsets else num_candidates)
    subset = placed
    for rank in range(num_sets):
        if by_subsets:
            index, score = subset, ranked.by_index[node, subset]
            subset = (subset - 1) & placed
        else:
            index, score = ranked.index[node, rank], ranked.scores[node, rank]
        if index & ~placed or (barrier >= 0 and index & ~old == 0) or score == -np.inf:
            continue
        if score > reference:
            total, reference = _raise(total, weights, reference, score)
        weight = np.exp(score - reference)
        total += weight
        for bit in range(num_candidates):
            if (index >> bit) & 1:
                weights[candidates[bit]] += weight
        if total > threshold:
            return total, reference, index
        if not by_subsets and weight * (num_sets - rank) < _TOLERANCE * total:
            break
    return total, reference, -1


@njit(cache=True, nogil=True)
def _raise(total, weights, reference, score):
    """Express a sum relative to a larger reference."""
    factor = np.exp(reference - score)
    weights *= factor
    return total * factor, score


@njit(cache=True, nogil=True)
def _probabilities(ranked, orders, labels, out):
    n, d = orders.shape
    place_of = np.empty(d, np.int64)
    weights = np.empty(d)
    for sample in range(n):
        order = orders[sample]
        for position in range(d):
            place_of[order[position]] = position
        for position in range(d):
            node = order[position]
            barrier = _window(order, labels, position)
            total = _walk(ranked, node, place_of, position, barrier, -np.inf, np.inf, weights)[0]
            if total > 0:
                out[sample, :, node] = weights / total


@njit(cache=True, nogil=True)
def _sample(ranked, orders, labels, uniforms, out):
    n, d = orders.shape
    place_of = np.empty(d, np.int64)
    weights = np.empty(d)
    for sample in range(n):
        order = orders[sample]
        for position in range(d):
            place_of[order[position]] = position
        for position in range(d):
            node = order[position]
            barrier = _window(order, labels, position)
            total, best, _ = _walk(ranked, node, place_of, position, barrier, -np.inf, np.inf, weights)
            # The two sums round differently: a uniform next to 1 must not run off the end.
            threshold = min(uniforms[sample, position], 1 - 1e-12) * total
            stop = _walk(ranked, node, place_of, position, barrier, best, threshold, weights)[2]
            if stop <= -2:
                out[sample, -2 - stop, node] = True
            for bit in range(ranked.candidates.shape[1]):
                if stop >= 0 and (stop >> bit) & 1:
                    out[sample, ranked.candidates[node, bit], node] = True
