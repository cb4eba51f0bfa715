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

from gflowdag.mcmc.bit_graphs import add, edge_at, holds, non_descendants, pack, set_parents, size, unpack
from gflowdag.orders.candidates import CandidateTable
from gflowdag.orders.draws import likely_last
from gflowdag.orders.problem import OrderProblem
from gflowdag.orders.subsets import squeeze, subset_with
from gflowdag.runtime.threads import map_threads
from gflowdag.score.subsets import log_subset_sums

_NEGLIGIBLE = 50.0  # nats; thousands of sets that far below a sum do not change it in double precision
_CHUNK = 1  # graphs for one thread at a time: each has hundreds of moves ahead


class ParentSums(NamedTuple):
    """Scores of parent sets and their sums, as NumPy arrays; `K` candidates of each node."""

    scores: NDArray[np.float64]  # [d, 2^K], of the sets of candidates
    subsets: NDArray[np.float64]  # [d, 2^K], log-sums over all subsets
    containing: NDArray[np.float64]  # [d, K, 2^(K−1)], log-sums over the subsets that contain one candidate
    singles: NDArray[np.float64]  # [d (node), d (outsider)], of an outsider alone; −inf for candidates
    candidates: NDArray[np.int32]  # [d, K]
    position: NDArray[np.int32]  # [d (node), d (parent)], place among the candidates; K for the others
    outsiders: NDArray[np.int64]  # [d, d − K], all that are no candidates, the best score alone first
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
        _outsiders(table),
        likely_last(containing),
    )


def _outsiders(table: CandidateTable) -> NDArray[np.int64]:
    """Nodes that are no candidates of each node (itself among them), by descending score, [d, d − K]."""
    singles = np.asarray(table.singles).copy()
    np.put_along_axis(singles, table.candidates.astype(np.int64), np.nan, axis=1)
    return np.argsort(-singles, axis=1, kind="stable")[:, : table.num_variables - table.num_candidates]


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
        packed, num_edges = pack(graphs[n]), graphs[n].sum()
        for move in range(uniform.shape[1]):
            if num_edges > 0:
                moved, num_edges = _reverse(sums, packed, num_edges, uniform[n, move])
                accepted[n] += moved
        unpack(packed, graphs[n])
    return accepted


@njit(cache=True, nogil=True)
def _reverse(sums, graph, num_edges, uniform):
    """One proposal in place; whether it was accepted, and the number of edges now."""
    source, target = edge_at(graph, min(int(uniform[0] * num_edges), num_edges - 1))
    old_source, old_target = graph.parents[source].copy(), graph.parents[target].copy()
    nothing = np.zeros_like(old_source)
    set_parents(graph, source, nothing)
    set_parents(graph, target, nothing)

    # There: the source draws parents with the target among them, then the target draws any.
    free = non_descendants(graph, source)
    back = non_descendants(graph, target)
    log_ratio = _log_containing(sums, source, target, free) - _log_containing(sums, target, source, back)
    if log_ratio > -np.inf:
        new_source = _draw_containing(sums, source, target, free, uniform[1])
        set_parents(graph, source, new_source)
        free = non_descendants(graph, target)
        log_any = _log_any(sums, target, free)
        log_ratio += log_any
        # Back: the target has its old parents, the source drew its old ones given those.
        set_parents(graph, source, nothing)
        set_parents(graph, target, old_target)
        log_ratio -= _log_any(sums, source, non_descendants(graph, source))
        if log_ratio > -np.inf:
            new_target = _draw_any(sums, target, free, log_any, uniform[2])
            added = size(new_source) + size(new_target) - size(old_source) - size(old_target)
            if np.log(uniform[3]) < log_ratio + np.log(num_edges / (num_edges + added)):
                set_parents(graph, target, nothing)
                set_parents(graph, source, new_source)
                set_parents(graph, target, new_target)
                return True, num_edges + added
    set_parents(graph, target, old_target)
    set_parents(graph, source, old_source)
    return False, num_edges


@njit(cache=True, nogil=True)
def _local_index(sums, node, allowed):
    """Local index of the allowed candidates of a node."""
    index = 0
    for k in range(sums.candidates.shape[1]):
        index |= holds(allowed, sums.candidates[node, k]) << k
    return index


@njit(cache=True, nogil=True)
def _log_containing(sums, node, parent, allowed):
    """Log-sum over the allowed parent sets of a node that contain one parent."""
    bit = sums.position[node, parent]
    if bit == sums.candidates.shape[1]:
        return sums.singles[node, parent]
    index = _local_index(sums, node, allowed)
    return sums.containing[node, bit, squeeze(index, bit)]


@njit(cache=True, nogil=True)
def _log_any(sums, node, allowed):
    """Log-sum over all allowed parent sets of a node."""
    log_total = sums.subsets[node, _local_index(sums, node, allowed)]
    for outsider in sums.outsiders[node]:
        single = sums.singles[node, outsider]
        if single < log_total - _NEGLIGIBLE:
            break  # the others weigh less still
        if holds(allowed, outsider):
            log_total = np.logaddexp(log_total, single)
    return log_total


@njit(cache=True, nogil=True)
def _draw_containing(sums, node, parent, allowed, uniform):
    """Parents of the node, drawn from the allowed sets that contain `parent`, as words."""
    bit = sums.position[node, parent]
    if bit < sums.candidates.shape[1]:
        others = _local_index(sums, node, allowed) & ~(1 << bit)
        return _words(sums, node, _subset_with(sums, node, bit, others, uniform), len(allowed))
    alone = np.zeros_like(allowed)
    add(alone, parent)
    return alone


@njit(cache=True, nogil=True)
def _draw_any(sums, node, allowed, log_total, uniform):
    """Parents of the node, drawn from all allowed sets, whose log-sum is `log_total`; as words."""
    for outsider in sums.outsiders[node]:
        single = sums.singles[node, outsider]
        if single < log_total - _NEGLIGIBLE:
            break
        if holds(allowed, outsider):
            share = np.exp(single - log_total)
            if uniform < share:
                alone = np.zeros_like(allowed)
                add(alone, outsider)
                return alone
            uniform -= share
    index = _local_index(sums, node, allowed)
    uniform /= np.exp(sums.subsets[node, index] - log_total)
    return _words(sums, node, _subset_of(sums, node, index, uniform), len(allowed))


@njit(cache=True, nogil=True)
def _subset_of(sums, node, allowed, uniform):
    """A set drawn from all subsets of the local index `allowed`, by deciding on one candidate after another.

    Whether the next candidate is left out is a ratio of two sums, and one uniform number decides on all of
    them: what is left of it after a decision is uniform again.
    """
    left, log_total = allowed, sums.subsets[node, allowed]
    for k in sums.sequence[node]:
        if left >> k & 1:
            log_without = sums.subsets[node, left & ~(1 << k)]
            without = np.exp(log_without - log_total)
            if uniform < without:
                uniform /= without
                left, log_total = left & ~(1 << k), log_without
            else:
                uniform = (uniform - without) / (1 - without)
                return _subset_with(sums, node, k, left & ~(1 << k), uniform)
    return 0


@njit(cache=True, nogil=True)
def _subset_with(sums, node, parent, others, uniform):
    """A set of the candidate `parent` and some of `others` (local index)."""
    containing = sums.containing[node, parent]
    return subset_with(sums.scores[node], containing, sums.sequence[node], parent, others, uniform)


@njit(cache=True, nogil=True)
def _words(sums, node, subset, num_words):
    """The nodes behind a local index of candidates."""
    words = np.zeros(num_words, np.uint64)
    for k in range(sums.candidates.shape[1]):
        if subset >> k & 1:
            add(words, sums.candidates[node, k])
    return words
