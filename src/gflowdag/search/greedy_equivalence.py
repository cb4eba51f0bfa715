"""Greedy equivalence search (Chickering 2002): from class to class by the best insertion, then deletion.

`Insert(i, j, T)` and `Delete(i, j, H)` are kept as the edge `i -> j` and the clique `C` of neighbours of `j`
that count as its parents when the edge is scored: `C = NA ∪ T` or `NA ∖ H`, where `NA` are the neighbours of
`j` that are adjacent to `i`. Where the score is a sum of `M(P ∪ j) − M(P) + w |P|`, both change it by the
same second difference of the set function `M`, with `S = C ∪ Pa(j) ∖ i`:

    ± [M(S ∪ {i, j}) − M(S ∪ i) − M(S ∪ j) + M(S) + w].
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.errors import TooLargeError
from gflowdag.graph.bits import MAX_NODES
from gflowdag.search.essential_graph import (
    EssentialGraph,
    adjacencies,
    cliques,
    complete,
    edge_matrix,
    empty_graph,
    reaches,
    successors,
)

_ROUNDING = 1e-9  # a smaller gain may be the rounding of none

SetFunction = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""`M` of sets of variables given as bit masks, int64 [m] -> float64 [m]."""


class Operators(NamedTuple):
    """Changes of one edge, and what each adds to the score."""

    sources: NDArray[np.int64]  # [m]
    targets: NDArray[np.int64]  # [m]
    cliques: NDArray[np.int64]  # [m], masks
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

    operators: Callable[..., NDArray[np.int64]]  # (graph, stale) -> [m, 3]
    sign: float  # of the second difference
    best: Callable[[EssentialGraph, Operators], int]  # place of the best valid operator, −1 if there is none
    apply: Callable[..., EssentialGraph]  # (graph, source, target, clique), before completion


def greedy_equivalence_search(
    set_function: SetFunction, num_variables: int, *, edge_weight: float, max_parents: int | None = None
) -> NDArray[np.bool_]:
    """The CPDAG at which no single insertion, and then no single deletion, raises the score any more.

    Args:
        set_function: `M`; the local score of `j` with parents `P` is `M(P ∪ j) − M(P) + edge_weight |P|`.
        num_variables: `d ≤ 62`.
        edge_weight: log weight of each edge, negative to penalise.
        max_parents: an insertion may not give its target more parents than this.

    Returns:
        bool [d, d], both entries set for an undirected edge.

    Raises:
        TooLargeError: more variables than a mask has bits, or more operators than can be listed.
    """
    if num_variables > MAX_NODES:
        raise TooLargeError(
            f"greedy equivalence search takes {MAX_NODES} variables at most, got {num_variables}"
        )
    limit = num_variables if max_parents is None else max_parents
    forward = Phase(partial(_insertions, max_parents=limit), 1.0, _best_insertion, _insert)
    backward = Phase(_deletions, -1.0, _best_deletion, _delete)
    graph = empty_graph(num_variables)
    for phase in (forward, backward):
        graph = _climb(graph, phase, set_function, edge_weight)
    return edge_matrix(graph)


def _climb(
    graph: EssentialGraph, phase: Phase, set_function: SetFunction, edge_weight: float
) -> EssentialGraph:
    """Apply the best operator of a phase until none gains; after a step, score only those that it touched."""
    d = len(graph.parents)
    stale = np.ones((d, d), np.bool_)
    nothing = np.empty(0, np.int64)
    operators = Operators(nothing, nothing, nothing, np.empty(0))
    while True:
        sources, targets, chosen = phase.operators(graph, stale).T
        given = (chosen | graph.parents[targets]) & ~(1 << sources)
        gains = phase.sign * (_second_differences(set_function, sources, targets, given) + edge_weight)
        fresh = Operators(sources, targets, chosen, gains).select(gains > _ROUNDING)
        operators = operators.select(~stale[operators.sources, operators.targets]).join(fresh)
        place = phase.best(graph, operators)
        if place < 0:
            return graph
        source, target = operators.sources[place], operators.targets[place]
        changed = complete(phase.apply(graph, source, target, operators.cliques[place]))
        stale = _stale_pairs(graph, changed, source, target)
        graph = changed


def _second_differences(
    set_function: SetFunction,
    sources: NDArray[np.int64],
    targets: NDArray[np.int64],
    given: NDArray[np.int64],
) -> NDArray[np.float64]:
    i, j = np.int64(1) << sources, np.int64(1) << targets
    sets, places = np.unique(np.stack([given, given | i, given | j, given | i | j]), return_inverse=True)
    neither, first, second, both = set_function(sets)[places.reshape(4, -1)]
    return both - first - second + neither


def _stale_pairs(old: EssentialGraph, new: EssentialGraph, source: int, target: int) -> NDArray[np.bool_]:
    """Pairs (i, j) whose operators or gains may differ after the edge between source and target changed.

    They are functions of the parents and neighbours of `j`, of the edges among those neighbours, and of what
    is adjacent to `i`; the skeleton differs in one edge.
    """
    edge = np.int64(1) << source | np.int64(1) << target
    stale = np.empty((len(new.parents), len(new.parents)), np.bool_)
    stale[:] = (
        (old.parents != new.parents) | (old.neighbours != new.neighbours) | (new.neighbours & edge == edge)
    )
    stale[[source, target]] = True
    return stale


@njit(cache=True, nogil=True)
def _insertions(graph, stale, max_parents):
    """Every insertion between stale pairs whose clique is one: source, target and clique, int64 [m, 3]."""
    d = stale.shape[0]
    adjacent = adjacencies(graph)
    found = np.empty((64, 3), np.int64)
    num_found = 0
    for target in range(d):
        undirected = graph.neighbours[target]
        room = max_parents - 1 - _size(graph.parents[target])
        for source in range(d):
            if not stale[source, target] or source == target or adjacent[source] >> target & 1:
                continue
            shared = undirected & adjacent[source]
            some = cliques(shared, undirected & ~shared, adjacent, room)
            found, num_found = _append(found, num_found, source, target, some)
    return found[:num_found]


@njit(cache=True, nogil=True)
def _deletions(graph, stale):
    """Every deletion between stale pairs: source, target and clique, int64 [m, 3]."""
    d = stale.shape[0]
    adjacent = adjacencies(graph)
    found = np.empty((64, 3), np.int64)
    num_found = 0
    for target in range(d):
        for source in range(d):
            if stale[source, target] and (graph.parents[target] | graph.neighbours[target]) >> source & 1:
                some = cliques(0, graph.neighbours[target] & adjacent[source], adjacent, d)
                found, num_found = _append(found, num_found, source, target, some)
    return found[:num_found]


@njit(cache=True, nogil=True)
def _append(found, num_found, source, target, some):
    size = num_found + some.shape[0]
    if size > found.shape[0]:
        longer = np.empty((2 * size, 3), np.int64)
        longer[:num_found] = found[:num_found]
        found = longer
    found[num_found:size, 0] = source
    found[num_found:size, 1] = target
    found[num_found:size, 2] = some
    return found, size


@njit(cache=True, nogil=True)
def _size(mask):
    size = 0
    while mask:
        mask &= mask - 1
        size += 1
    return size


@njit(cache=True, nogil=True)
def _best_insertion(graph, operators):
    """The best one whose clique blocks every semi-directed path from target to source."""
    next_nodes = successors(graph)
    best, best_gain = -1, 0.0
    for place in range(operators.gains.shape[0]):
        if operators.gains[place] > best_gain and not reaches(
            next_nodes, operators.targets[place], operators.sources[place], operators.cliques[place]
        ):
            best, best_gain = place, operators.gains[place]
    return best


def _best_deletion(_: EssentialGraph, operators: Operators) -> int:
    """All of them are valid."""
    return int(operators.gains.argmax()) if len(operators.gains) else -1


def _insert(graph: EssentialGraph, source: int, target: int, clique: int) -> EssentialGraph:
    """Add the edge, and point at the target what the clique has beside the nodes adjacent to the source."""
    turned = clique & ~adjacencies(graph)[source]
    parents, neighbours = graph.parents.copy(), graph.neighbours.copy()
    parents[target] |= np.int64(1) << source | turned
    neighbours[target] &= ~turned
    neighbours[_members(turned, len(parents))] &= ~(np.int64(1) << target)
    return EssentialGraph(parents, neighbours)


def _delete(graph: EssentialGraph, source: int, target: int, clique: int) -> EssentialGraph:
    """Remove the edge, and point source and target at the shared neighbours outside the clique."""
    turned = graph.neighbours[target] & adjacencies(graph)[source] & ~clique
    parents, neighbours = graph.parents.copy(), graph.neighbours.copy()
    for node, other in ((source, target), (target, source)):
        parents[node] &= ~(np.int64(1) << other)
        neighbours[node] &= ~(np.int64(1) << other)
        ends = _members(turned & neighbours[node], len(parents))
        parents[ends] |= np.int64(1) << node
        neighbours[ends] &= ~(np.int64(1) << node)
        neighbours[node] &= ~turned
    return EssentialGraph(parents, neighbours)


def _members(mask: int, d: int) -> NDArray[np.int64]:
    return np.flatnonzero(mask >> np.arange(d) & 1)
