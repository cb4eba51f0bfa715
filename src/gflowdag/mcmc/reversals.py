"""Edge reversals that draw both parent sets anew (Grzegorczyk & Husmeier 2008).

To reverse `i -> j`, both nodes lose their parents; then `i` draws a parent set that contains `j`, and after
it `j` draws any, each from its exact conditional given the rest of the graph. The normalising sums are
entries of the tables that weigh orders, so that the acceptance probability costs a few look-ups. Where an
order chain has to carry a node past others that hold it back, one reversal changes the graph at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.graph.bits import compress
from gflowdag.score.order_draws import subset_at
from gflowdag.score.order_problem import OrderProblem
from gflowdag.score.subsets import log_subset_sums
from gflowdag.score.threads import map_threads

_squeeze = njit(cache=True, nogil=True)(compress)
_CHUNK = 1  # graphs for one thread at a time: each has hundreds of moves ahead


class ParentSums(NamedTuple):
    """Scores of parent sets and their sums, as NumPy arrays; `K` candidates of each node."""

    scores: NDArray[np.float64]  # [d, 2^K], of the sets of candidates
    subsets: NDArray[np.float64]  # [d, 2^K], log-sums over all subsets
    containing: NDArray[np.float64]  # [d, K, 2^(K−1)], log-sums over the subsets that contain one candidate
    singles: NDArray[np.float64]  # [d (node), d (outsider)], of an outsider alone; −inf for candidates
    candidates: NDArray[np.int32]  # [d, K]
    position: NDArray[np.int32]  # [d (node), d (parent)], place among the candidates; K for the others
    sequence: NDArray[np.int64]  # [d, K], places of the candidates, the least likely parents first


def parent_sums(problem: OrderProblem) -> ParentSums:
    """What the moves look up, from the tables of a problem."""
    table, weights = problem.table, problem.weights
    containing = np.asarray(weights.table)
    return ParentSums(
        table.scores,
        log_subset_sums(table.scores),
        containing,
        np.asarray(table.singles),
        table.candidates,
        np.asarray(weights.position),
        np.argsort(containing[:, :, -1], axis=1),
    )


def reverse_edges(
    sums: ParentSums, graphs: NDArray[np.bool_], num_moves: int, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], float]:
    """Propose `num_moves` reversals to each graph; they leave the posterior as it is.

    Args:
        sums: of the problem.
        graphs: DAGs of positive score, bool [n, d, d].
        num_moves: reversals proposed to each.
        rng: source of randomness.

    Returns:
        bool [n, d, d], and the share of accepted proposals.
    """
    graphs = np.ascontiguousarray(graphs).copy()
    uniform = rng.random((len(graphs), num_moves, 4))
    accepted = np.zeros(len(graphs), np.int64)

    def move(start: int) -> None:
        part = slice(start, start + _CHUNK)
        accepted[part] = _reverse_each(sums, graphs[part], uniform[part])

    map_threads(move, range(0, len(graphs), _CHUNK))
    return graphs, float(accepted.mean() / max(num_moves, 1))


@njit(cache=True, nogil=True)
def _reverse_each(sums, graphs, uniform):
    accepted = np.zeros(graphs.shape[0], np.int64)
    for n in range(graphs.shape[0]):
        for move in range(uniform.shape[1]):
            accepted[n] += _reverse(sums, graphs[n], uniform[n, move])
    return accepted


@njit(cache=True, nogil=True)
def _reverse(sums, graph, uniform):
    """One proposal in place; whether it was accepted."""
    d = graph.shape[0]
    num_edges = graph.sum()
    if num_edges == 0:
        return False
    rank = min(int(uniform[0] * num_edges), num_edges - 1)
    source, target = 0, 0
    for edge in range(d * d):
        if graph[edge // d, edge % d]:
            if rank == 0:
                source, target = edge // d, edge % d
                break
            rank -= 1
    old_source, old_target = graph[:, source].copy(), graph[:, target].copy()
    graph[:, source] = False
    graph[:, target] = False

    # There: the source draws parents with the target among them, then the target draws any.
    free = ~_descendants(graph, source)
    back = ~_descendants(graph, target)
    log_ratio = _log_containing(sums, source, target, free) - _log_containing(sums, target, source, back)
    if log_ratio > -np.inf:
        _draw_containing(sums, source, target, free, uniform[1], graph)
        free = ~_descendants(graph, target)
        log_ratio += _log_any(sums, target, free)
    if log_ratio > -np.inf:
        _draw_any(sums, target, free, uniform[2], graph)
        new_source, new_target = graph[:, source].copy(), graph[:, target].copy()
        new_num_edges = graph.sum()
        # Back: the target has its old parents, the source drew its old ones given those.
        graph[:, source] = False
        graph[:, target] = old_target
        log_ratio -= _log_any(sums, source, ~_descendants(graph, source))
        log_ratio += np.log(num_edges / new_num_edges)
        if np.log(uniform[3]) < log_ratio:
            graph[:, source], graph[:, target] = new_source, new_target
            return True
    graph[:, source], graph[:, target] = old_source, old_target
    return False


@njit(cache=True, nogil=True)
def _descendants(graph, node):
    """The node and everything that it reaches, bool [d]."""
    d = graph.shape[0]
    reached = np.zeros(d, np.bool_)
    stack = np.empty(d, np.int64)
    stack[0], size = node, 1
    reached[node] = True
    while size > 0:
        size -= 1
        from_ = stack[size]
        for child in range(d):
            if graph[from_, child] and not reached[child]:
                reached[child] = True
                stack[size] = child
                size += 1
    return reached


@njit(cache=True, nogil=True)
def _local_index(sums, node, allowed):
    """Local index of the allowed candidates of a node."""
    index = 0
    for k in range(sums.candidates.shape[1]):
        if allowed[sums.candidates[node, k]]:
            index |= 1 << k
    return index


@njit(cache=True, nogil=True)
def _log_containing(sums, node, parent, allowed):
    """Log-sum over the allowed parent sets of a node that contain one parent."""
    bit = sums.position[node, parent]
    if bit == sums.candidates.shape[1]:
        return sums.singles[node, parent]
    index = _local_index(sums, node, allowed)
    return sums.containing[node, bit, _squeeze(index, bit)]


@njit(cache=True, nogil=True)
def _log_any(sums, node, allowed):
    """Log-sum over all allowed parent sets of a node."""
    log_total = sums.subsets[node, _local_index(sums, node, allowed)]
    for outsider in range(allowed.shape[0]):
        if allowed[outsider] and sums.singles[node, outsider] > -np.inf:
            log_total = np.logaddexp(log_total, sums.singles[node, outsider])
    return log_total


@njit(cache=True, nogil=True)
def _draw_containing(sums, node, parent, allowed, uniform, graph):
    """Give the node parents drawn from the allowed sets that contain `parent`."""
    graph[parent, node] = True
    bit = sums.position[node, parent]
    if bit < sums.candidates.shape[1]:
        others = _local_index(sums, node, allowed) & ~(1 << bit)
        _set_parents(sums, node, _subset_with(sums, node, bit, others, uniform), graph)


@njit(cache=True, nogil=True)
def _draw_any(sums, node, allowed, uniform, graph):
    """Give the node parents drawn from all allowed sets."""
    log_total = _log_any(sums, node, allowed)
    for outsider in range(allowed.shape[0]):
        if allowed[outsider]:
            share = np.exp(sums.singles[node, outsider] - log_total)
            if uniform < share:
                graph[outsider, node] = True
                return
            uniform -= share
    index = _local_index(sums, node, allowed)
    uniform /= np.exp(sums.subsets[node, index] - log_total)
    _set_parents(sums, node, _subset_of(sums, node, index, uniform), graph)


@njit(cache=True, nogil=True)
def _subset_of(sums, node, allowed, uniform):
    """A set drawn from all subsets of the local index `allowed`, by deciding on one candidate after another.

    Whether the next candidate is left out is a ratio of two sums, and one uniform number decides on all of
    them: what is left of it after a decision is uniform again.
    """
    left = allowed
    for k in sums.sequence[node]:
        if left >> k & 1:
            without = np.exp(sums.subsets[node, left & ~(1 << k)] - sums.subsets[node, left])
            if uniform < without:
                uniform /= without
                left &= ~(1 << k)
            else:
                uniform = (uniform - without) / (1 - without)
                return _subset_with(sums, node, k, left & ~(1 << k), uniform)
    return 0


@njit(cache=True, nogil=True)
def _subset_with(sums, node, parent, others, uniform):
    """A set of the candidate `parent` and some of `others` (local index).

    Sums over sets that contain two candidates are not kept: after the second, the rest is enumerated. As
    likely parents come last, little is left to decide by then.
    """
    table = sums.containing[node, parent]
    left = undecided = others
    for k in sums.sequence[node]:
        if left >> k & 1:
            undecided &= ~(1 << k)
            total = table[_squeeze(left, parent)]
            without = np.exp(table[_squeeze(left & ~(1 << k), parent)] - total)
            if uniform < without:
                uniform /= without
                left &= ~(1 << k)
            else:
                uniform = (uniform - without) / (1 - without)
                both = (1 << parent) | (1 << k)
                log_both = total + np.log1p(-without)
                return subset_at(sums.scores[node], both, undecided, log_both, uniform) | both
    return 1 << parent


@njit(cache=True, nogil=True)
def _set_parents(sums, node, subset, graph):
    for k in range(sums.candidates.shape[1]):
        if subset >> k & 1:
            graph[sums.candidates[node, k], node] = True
