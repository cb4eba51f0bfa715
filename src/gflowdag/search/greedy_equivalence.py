"""Greedy equivalence search (Chickering 2002): from class to class by the best insertion, then deletion.

`Insert(i, j, T)` and `Delete(i, j, H)` are kept as the edge `i -> j` and the clique `C` of neighbours of `j`
that count as its parents when the edge is scored: `C = NA ∪ T` or `NA ∖ H`, where `NA` are the neighbours of
`j` that are adjacent to `i`. Both change the score by what the edge is worth beside the parents
`S = C ∪ Pa(j) ∖ i`: `± [LS(j, S ∪ i) − LS(j, S)]`. Where the score is a sum of `M(P ∪ j) − M(P) + w |P|`,
that is a second difference of the set function `M`:

    ± [M(S ∪ {i, j}) − M(S ∪ i) − M(S ∪ j) + M(S) + w].
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.search.essential_graph import (
    EssentialGraph,
    adjacencies,
    complete,
    edge_matrix,
    empty_graph,
    list_cliques,
    reaches,
    successors,
)

_ROUNDING = 1e-9  # a smaller gain may be the rounding of none

SetFunction = Callable[[NDArray[np.bool_]], NDArray[np.float64]]
"""`M` of sets of variables, bool [m, d] -> float64 [m]."""

EdgeGains = Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]], NDArray[np.float64]]
"""What edges add to the score: sources [m], targets [m] and the other parents of each target, bool [m, d]."""


class Operators(NamedTuple):
    """Changes of one edge, and what each adds to the score."""

    sources: NDArray[np.int64]  # [m]
    targets: NDArray[np.int64]  # [m]
    cliques: NDArray[np.bool_]  # [m, d]
    gains: NDArray[np.float64]  # [m]

    def select(self, kept: NDArray[np.bool_]) -> Operators:
        """Some of them, bool [m]."""
        return Operators(self.sources[kept], self.targets[kept], self.cliques[kept], self.gains[kept])

    def join(self, other: Operators) -> Operators:
        """These and others."""
        return Operators(
            np.concatenate([self.sources, other.sources]),
            np.concatenate([self.targets, other.targets]),
            np.concatenate([self.cliques, other.cliques]),
            np.concatenate([self.gains, other.gains]),
        )


class Phase(NamedTuple):
    """One of the two halves of the search."""

    operators: Callable[..., Any]  # (graph, stale) -> source and target int64 [m, 2], cliques bool [m, d]
    sign: float  # of the gain of the edge
    best: Callable[[EssentialGraph, Operators], int]  # place of the best valid operator, −1 if there is none
    apply: Callable[..., EssentialGraph]  # (graph, source, target, clique), before completion


def greedy_equivalence_search(
    edge_gains: EdgeGains, num_variables: int, *, max_parents: int | None = None
) -> NDArray[np.bool_]:
    """The CPDAG at which no single insertion, and then no single deletion, raises the score any more.

    Args:
        edge_gains: of a score that all members of an equivalence class share; of another score each class
            counts as the member that an operator happens to look at.
        num_variables: `d`.
        max_parents: an insertion may not give its target more parents than this.

    Returns:
        bool [d, d], both entries set for an undirected edge.

    Raises:
        TooLargeError: more operators than can be listed.
    """
    limit = num_variables if max_parents is None else max_parents
    forward = Phase(partial(_insertions, max_parents=limit), 1.0, _best_insertion, _insert)
    backward = Phase(_deletions, -1.0, _best_deletion, _delete)
    graph = empty_graph(num_variables)
    for phase in (forward, backward):
        graph = _climb(graph, phase, edge_gains)
    return edge_matrix(graph)


def second_differences(function: SetFunction, edge_weight: float) -> EdgeGains:
    """The gains of a score that is a sum of `M(P ∪ j) − M(P) + edge_weight |P|`."""

    def gains(
        sources: NDArray[np.int64], targets: NDArray[np.int64], given: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        sets = np.repeat(given[None], 4, axis=0)
        place = np.arange(len(given))
        sets[1, place, sources] = sets[2, place, targets] = True
        sets[3, place, sources] = sets[3, place, targets] = True
        neither, first, second, both = function(sets.reshape(-1, given.shape[1])).reshape(4, -1)
        return both - first - second + neither + edge_weight

    return gains


def _climb(graph: EssentialGraph, phase: Phase, edge_gains: EdgeGains) -> EssentialGraph:
    """Apply the best operator of a phase until none gains; after a step, score only those that it touched."""
    d = len(graph.parents)
    stale = np.ones((d, d), np.bool_)
    nothing = np.empty(0, np.int64)
    operators = Operators(nothing, nothing, np.empty((0, d), np.bool_), np.empty(0))
    while True:
        pairs, chosen = phase.operators(graph, stale)
        sources, targets = pairs.T
        given = chosen | graph.parents[targets]
        given[np.arange(len(given)), sources] = False
        gains = phase.sign * edge_gains(sources, targets, given)
        fresh = Operators(sources, targets, chosen, gains).select(gains > _ROUNDING)
        operators = operators.select(~stale[operators.sources, operators.targets]).join(fresh)
        place = phase.best(graph, operators)
        if place < 0:
            return graph
        source, target = operators.sources[place], operators.targets[place]
        changed = complete(phase.apply(graph, source, target, operators.cliques[place]))
        stale = _stale_pairs(graph, changed, source, target)
        graph = changed


def _stale_pairs(old: EssentialGraph, new: EssentialGraph, source: int, target: int) -> NDArray[np.bool_]:
    """Pairs (i, j) whose operators or gains may differ after the edge between source and target changed.

    They are functions of the parents and neighbours of `j`, of the edges among those neighbours, and of what
    is adjacent to `i`; the skeleton differs in one edge.
    """
    changed = (old.parents != new.parents).any(axis=1) | (old.neighbours != new.neighbours).any(axis=1)
    stale = np.empty(new.parents.shape, np.bool_)
    stale[:] = changed | (new.neighbours[:, source] & new.neighbours[:, target])
    stale[[source, target]] = True
    return stale


@njit(cache=True, nogil=True)
def _insertions(graph, stale, max_parents):
    """Insertions between stale pairs whose clique is one: (source, target) [m, 2], cliques bool [m, d]."""
    d = stale.shape[0]
    adjacent, neighbours = adjacencies(graph), graph.neighbours
    ends = np.zeros((d, d), np.int64)
    found, growth = np.empty((64, d), np.bool_), np.empty((64, d), np.bool_)
    shared, others = np.empty(d, np.bool_), np.empty(d, np.bool_)
    end = 0
    for target in range(d):
        room = max_parents - 1 - graph.parents[target].sum()
        for source in range(d):
            if stale[source, target] and source != target and not adjacent[source, target]:
                _split(neighbours, adjacent, source, target, shared, others)
                found, growth, end = list_cliques(shared, others, adjacent, room, found, growth, end)
            ends[target, source] = end
    return _pairs(ends), found[:end]


@njit(cache=True, nogil=True)
def _split(neighbours, adjacent, source, target, shared, others):
    """The neighbours of the target, by whether they are adjacent to the source."""
    for i in range(len(shared)):
        shared[i] = neighbours[target, i] & adjacent[source, i]
        others[i] = neighbours[target, i] & (not adjacent[source, i])


@njit(cache=True, nogil=True)
def _deletions(graph, stale):
    """Every deletion between stale pairs: (source, target) [m, 2], cliques bool [m, d]."""
    d = stale.shape[0]
    adjacent, neighbours, parents = adjacencies(graph), graph.neighbours, graph.parents
    ends = np.zeros((d, d), np.int64)
    found, growth = np.empty((64, d), np.bool_), np.empty((64, d), np.bool_)
    nothing = np.zeros(d, np.bool_)
    end = 0
    for target in range(d):
        for source in range(d):
            if stale[source, target] and (parents[target, source] or neighbours[target, source]):
                shared = neighbours[target] & adjacent[source]
                found, growth, end = list_cliques(nothing, shared, adjacent, d, found, growth, end)
            ends[target, source] = end
    return _pairs(ends), found[:end]


@njit(cache=True, nogil=True)
def _pairs(ends):
    """Source and target of each place in a list, from the place where those of each pair end, [m, 2]."""
    d = ends.shape[0]
    pairs = np.empty((ends[-1, -1], 2), np.int64)
    place = 0
    for target in range(d):
        for source in range(d):
            while place < ends[target, source]:
                pairs[place, 0], pairs[place, 1] = source, target
                place += 1
    return pairs


@njit(cache=True, nogil=True)
def _best_insertion(graph, operators):
    """The best one whose clique blocks every semi-directed path from target to source."""
    next_nodes = successors(graph)
    sources, targets, chosen = operators.sources, operators.targets, operators.cliques
    gains = operators.gains.copy()
    while len(gains):
        place = gains.argmax()
        if gains[place] <= 0.0:
            break
        if not reaches(next_nodes, targets[place], sources[place], chosen[place]):
            return place
        gains[place] = 0.0
    return -1


def _best_deletion(_: EssentialGraph, operators: Operators) -> int:
    """All of them are valid."""
    return int(operators.gains.argmax()) if len(operators.gains) else -1


def _insert(graph: EssentialGraph, source: int, target: int, clique: NDArray[np.bool_]) -> EssentialGraph:
    """Add the edge, and point at the target what the clique has beside the nodes adjacent to the source."""
    turned = clique & ~adjacencies(graph)[source]
    parents, neighbours = graph.parents.copy(), graph.neighbours.copy()
    parents[target] |= turned
    parents[target, source] = True
    neighbours[target, turned] = neighbours[turned, target] = False
    return EssentialGraph(parents, neighbours)


def _delete(graph: EssentialGraph, source: int, target: int, clique: NDArray[np.bool_]) -> EssentialGraph:
    """Remove the edge, and point source and target at the shared neighbours outside the clique."""
    turned = graph.neighbours[target] & adjacencies(graph)[source] & ~clique
    parents, neighbours = graph.parents.copy(), graph.neighbours.copy()
    for node, other in ((source, target), (target, source)):
        parents[node, other] = neighbours[node, other] = False
        ends = turned & neighbours[node]
        parents[ends, node] = True
        neighbours[ends, node] = neighbours[node, ends] = False
    return EssentialGraph(parents, neighbours)
