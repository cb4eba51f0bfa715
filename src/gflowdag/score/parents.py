"""Parent sets given a canonical order: exact draws, and exact edge probabilities.

Given the order, the nodes are independent. Node `j` has its parents among the nodes `U` placed before it, not all of
them inside `B`, the nodes that were placed before the last larger label, the *barrier* (no such condition if there
was none). `A_j(v, ·)` of `OrderWeights` gives the law of the latest parent at once; what comes before it is found by
walking the sets of the node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from gflowdag.progress import Progress, silent
from gflowdag.score.candidates import CandidateTable
from gflowdag.score.orders import OrderWeights
from gflowdag.score.threads import map_threads, num_cores

_NEGLIGIBLE = 1e-13  # relative weight of the sets that a walk may leave out
_CANCELLATION = 12.0  # nats: differences of sums that are larger than the result by more than this are not taken


class ParentSets(NamedTuple):
    """The parent sets of each node, listed and summed (NumPy arrays)."""

    candidates: NDArray[np.int32]  # [d, K]
    scores: NDArray[np.float64]  # [d, 2^K], bit k of the local index stands for candidates[j, k]
    ranking: NDArray[np.int32]  # [d, 2^K], local indices, best first
    weights: OrderWeights


def rank_parent_sets(table: CandidateTable, weights: OrderWeights) -> ParentSets:
    """Sort the parent sets of each node; `weights` are those of the same table."""
    ranking = np.empty(table.scores.shape, np.int32)

    def fill(node: int) -> None:
        ranking[node] = np.argsort(-table.scores[node], kind="stable")

    map_threads(fill, range(table.num_variables))
    return ParentSets(table.candidates, table.scores, ranking, weights)


def sample_parents(
    sets: ParentSets, orders: ArrayLike, labels: ArrayLike, rng: np.random.Generator, progress: Progress = silent
) -> NDArray[np.bool_]:
    """One DAG from the exact posterior given each order.

    Args:
        sets: parent sets.
        orders: int [n, d], canonical orders that have a positive weight.
        labels: int [d], as they were used to build the orders.
        rng: source of randomness.
        progress: told about the share done.

    Returns:
        bool [n, d, d].
    """
    orders = np.ascontiguousarray(orders, np.int64)
    labels = np.ascontiguousarray(labels, np.int64)
    uniforms = rng.random((*orders.shape, 2))
    out = np.zeros((*orders.shape, orders.shape[1]), bool)

    def fill(chunk: slice) -> None:
        _sample(sets, orders[chunk], labels, uniforms[chunk], out[chunk])

    _over_chunks(fill, len(orders), progress)
    return out


def edge_probabilities(
    sets: ParentSets, orders: ArrayLike, labels: ArrayLike, progress: Progress = silent
) -> NDArray[np.float64]:
    """`P(i → j | order)` for each order, int [n, d] -> float64 [n, d, d] (Rao–Blackwell)."""
    orders = np.ascontiguousarray(orders, np.int64)
    labels = np.ascontiguousarray(labels, np.int64)
    out = np.zeros((*orders.shape, orders.shape[1]))

    def fill(chunk: slice) -> None:
        _probabilities(sets, orders[chunk], labels, out[chunk])

    _over_chunks(fill, len(orders), progress)
    return out


def _over_chunks(fill, n: int, progress: Progress) -> None:
    bounds = np.linspace(0, n, min(n, 8 * num_cores()) + 1).astype(int)
    map_threads(lambda part: fill(slice(bounds[part], bounds[part + 1])), range(len(bounds) - 1), progress)


@njit(cache=True, nogil=True)
def _barrier(order, labels, position):
    """Where the last larger label before the node at `position` stands; −1 if there is none."""
    for earlier in range(position - 1, -1, -1):
        if labels[order[earlier]] > labels[order[position]]:
            return earlier
    return -1


@njit(cache=True, nogil=True)
def _squeeze(index, bit):
    return (index & ((1 << bit) - 1)) | ((index >> (bit + 1)) << bit)


@njit(cache=True, nogil=True)
def _latest_parents(weights, order, position, barrier, terms, indices):
    """Log-weights `terms[p]` of the sets whose latest member stands at `p`, for `p = barrier … position − 1`.

    `terms[position]` is the weight of the empty set. `indices[p]` is the local index of what stands before `p`.

    Returns:
        The log of the summed weights.
    """
    node = order[position]
    num_candidates = weights.table.shape[1]
    index = 0
    largest = -np.inf
    for place in range(position):
        indices[place] = index
        parent = order[place]
        bit = weights.position[node, parent]
        if place < barrier:
            terms[place] = -np.inf
        elif bit < num_candidates:
            terms[place] = weights.table[node, bit, _squeeze(index, bit)]
        else:
            terms[place] = weights.singles[node, parent]
        if bit < num_candidates:
            index |= 1 << bit
        largest = max(largest, terms[place])
    indices[position] = index
    terms[position] = weights.empty[node] if barrier < 0 else -np.inf
    largest = max(largest, terms[position])
    total = 0.0
    for place in range(position + 1):
        total += np.exp(terms[place] - largest)
    return largest + np.log(total)


@njit(cache=True, nogil=True)
def _sample(sets, orders, labels, uniforms, out):
    n, d = orders.shape
    terms = np.empty(d)
    indices = np.empty(d, np.int64)
    num_candidates = sets.candidates.shape[1]
    for sample in range(n):
        order = orders[sample]
        for position in range(d):
            node = order[position]
            total = _latest_parents(
                sets.weights, order, position, _barrier(order, labels, position), terms, indices
            )
            # Sums round: a uniform next to 1 must not run off the end.
            left = min(uniforms[sample, position, 0], 1 - 1e-12)
            latest = position
            for place in range(position + 1):
                left -= np.exp(terms[place] - total)
                if left < 0:
                    latest = place
                    break
            if latest == position:
                continue
            out[sample, order[latest], node] = True
            bit = sets.weights.position[node, order[latest]]
            if bit < num_candidates:
                threshold = min(uniforms[sample, position, 1], 1 - 1e-12)
                index = _draw(sets, node, bit, indices[latest], terms[latest], threshold)
                for other in range(num_candidates):
                    if (index >> other) & 1:
                        out[sample, sets.candidates[node, other], node] = True


@njit(cache=True, nogil=True)
def _draw(sets, node, latest, before, log_total, threshold):
    """Draw a set (local index) that has the candidate `latest` and otherwise candidates in `before` only."""
    num_candidates = sets.candidates.shape[1]
    latest_bit = 1 << latest
    allowed = before | latest_bit
    cumulated = 0.0
    by_subsets = _popcount(before) + 3 < num_candidates
    subset = before
    found = latest_bit
    for rank in range(1 << (_popcount(before) if by_subsets else num_candidates)):
        if by_subsets:
            index = subset | latest_bit
            subset = (subset - 1) & before
        else:
            index = np.int64(sets.ranking[node, rank])
            if index & ~allowed or not index & latest_bit:
                continue
        weight = np.exp(sets.scores[node, index] - log_total)
        if weight > 0:
            found = index
            cumulated += weight
            if cumulated > threshold:
                break
    return found


@njit(cache=True, nogil=True)
def _probabilities(sets, orders, labels, out):
    n, d = orders.shape
    weights = sets.weights
    num_candidates = sets.candidates.shape[1]
    terms = np.empty(d)
    indices = np.empty(d, np.int64)
    place_of = np.empty(d, np.int64)
    for sample in range(n):
        order = orders[sample]
        for position in range(d):
            place_of[order[position]] = position
        for position in range(d):
            node = order[position]
            barrier = _barrier(order, labels, position)
            total = _latest_parents(weights, order, position, barrier, terms, indices)
            if total == -np.inf:
                continue
            for place in range(max(barrier, 0), position):  # outsiders: alone, and not before the barrier
                out[sample, order[place], node] = np.exp(weights.singles[node, order[place]] - total)
            placed = indices[position]
            old = indices[barrier] if barrier >= 0 else 0
            for bit in range(num_candidates):
                parent = sets.candidates[node, bit]
                if place_of[parent] >= position:
                    continue
                with_parent = weights.table[node, bit, _squeeze(placed, bit)]
                log_share = with_parent - total
                if place_of[parent] >= barrier:
                    out[sample, parent, node] = np.exp(log_share)
                elif log_share < _CANCELLATION:
                    before = weights.table[node, bit, _squeeze(old, bit)]
                    out[sample, parent, node] = -np.exp(log_share) * np.expm1(before - with_parent)
                else:
                    _walk(sets, node, placed, old, total, out[sample, :, node])
                    break


@njit(cache=True, nogil=True)
def _walk(sets, node, placed, old, log_total, out):
    """Probability of each candidate [d], by summing over the sets inside `placed` but not inside `old`."""
    num_candidates = sets.candidates.shape[1]
    for bit in range(num_candidates):
        out[sets.candidates[node, bit]] = 0.0
    by_subsets = _popcount(placed) + 3 < num_candidates
    num_sets = 1 << (_popcount(placed) if by_subsets else num_candidates)
    subset = placed
    for rank in range(num_sets):
        if by_subsets:
            index = subset
            subset = (subset - 1) & placed
        else:
            index = np.int64(sets.ranking[node, rank])
        if index & ~placed or index & ~old == 0:
            continue
        weight = np.exp(sets.scores[node, index] - log_total)
        if weight == 0:
            continue
        for bit in range(num_candidates):
            if (index >> bit) & 1:
                out[sets.candidates[node, bit]] += weight
        if not by_subsets and weight * (num_sets - rank) < _NEGLIGIBLE:
            break


@njit(cache=True, nogil=True)
def _popcount(mask):
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count
