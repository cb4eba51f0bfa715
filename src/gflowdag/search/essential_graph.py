"""Essential graphs (CPDAGs) by rows: what the operators of greedy equivalence search ask of one.

Row `j` of `parents` has the sources of the directed edges into `j`, row `j` of `neighbours` the other ends of
its undirected edges. `graph.equivalence` has the same conversions for batches of matrices; here one graph
changes hundreds of times in a search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.errors import TooLargeError

MAX_CLIQUES = 1 << 14  # for one edge: 14 shared neighbours that are all adjacent to each other


class EssentialGraph(NamedTuple):
    """A partly directed graph; completed, it stands for a Markov equivalence class."""

    parents: NDArray[np.bool_]  # [d, d], rows are targets of the directed edges
    neighbours: NDArray[np.bool_]  # [d, d], undirected edges, symmetric


def empty_graph(d: int) -> EssentialGraph:
    """No edges between `d` nodes."""
    return EssentialGraph(np.zeros((d, d), np.bool_), np.zeros((d, d), np.bool_))


def edge_matrix(graph: EssentialGraph) -> NDArray[np.bool_]:
    """bool [d, d], rows are sources; both entries are set for an undirected edge."""
    return (graph.parents | graph.neighbours).T.copy()


@njit(cache=True, nogil=True)
def successors(graph):
    """Children and neighbours of each node, bool [d, d]: where a semi-directed path may go next."""
    d = graph.parents.shape[0]
    next_nodes = graph.neighbours.copy()
    for j in range(d):
        for i in range(d):
            if graph.parents[j, i]:
                next_nodes[i, j] = True
    return next_nodes


@njit(cache=True, nogil=True)
def adjacencies(graph):
    """Nodes joined to each node by any edge, bool [d, d]."""
    return graph.parents | successors(graph)


@njit(cache=True, nogil=True)
def complete(graph):
    """The essential graph of the class whose skeleton and v-structures a partly directed graph has.

    A consistent extension (Dor & Tarsi 1992), then its compelled edges (Chickering 1995).
    """
    dag, order = _extension(graph)
    d = dag.shape[0]
    rank = np.empty(d, np.int64)
    rank[order] = np.arange(d)
    compelled = np.zeros((d, d), np.bool_)
    neighbours = np.zeros((d, d), np.bool_)
    for y in order:
        x = -1
        for i in range(d):
            if dag[y, i] and (x < 0 or rank[i] > rank[x]):
                x = i
        if x < 0:
            continue
        # x is the last parent of y: as in `graph.equivalence.cpdag`.
        all_compelled = False
        for i in range(d):
            if (dag[y, i] and i != x and not dag[x, i]) or (compelled[x, i] and not dag[y, i]):
                all_compelled = True
        for i in range(d):
            if dag[y, i]:
                compelled[y, i] = all_compelled or compelled[x, i]
                if not compelled[y, i]:
                    neighbours[y, i] = neighbours[i, y] = True
    return EssentialGraph(compelled, neighbours)


@njit(cache=True, nogil=True)
def _extension(graph):
    """Parents bool [d, d] of a DAG with the same skeleton and v-structures, and a topological order [d]."""
    d = graph.parents.shape[0]
    adjacent = adjacencies(graph)
    dag = np.zeros((d, d), np.bool_)
    order = np.empty(d, np.int64)
    left = np.ones(d, np.bool_)
    for place in range(d - 1, -1, -1):
        sink = 0
        while not (left[sink] and _can_be_sink(graph, adjacent, sink, left)):
            sink += 1
            if sink == d:
                raise ValueError("no DAG extends this partly directed graph")
        left[sink] = False
        for i in range(d):
            dag[sink, i] = left[i] and (graph.parents[sink, i] or graph.neighbours[sink, i])
        order[place] = sink
    return dag, order


@njit(cache=True, nogil=True)
def _can_be_sink(graph, adjacent, node, left):
    """No edge leaves it, and pointing all its undirected edges at it makes no new v-structure."""
    d = adjacent.shape[0]
    for i in range(d):
        if left[i] and adjacent[node, i] and not graph.neighbours[node, i] and not graph.parents[node, i]:
            return False
    for other in range(d):
        if left[other] and graph.neighbours[node, other]:
            for i in range(d):
                if left[i] and adjacent[node, i] and not adjacent[other, i] and i != other:
                    return False
    return True


@njit(cache=True, nogil=True)
def list_cliques(core, candidates, adjacent, max_size, found, growth, start):
    """All cliques `core ∪ T` with `T ⊆ candidates` and at most `max_size` nodes, by size.

    Args:
        core: bool [d].
        candidates: bool [d].
        adjacent: bool [d, d].
        max_size: nodes of a clique.
        found: a list of cliques that grows, bool [n, d].
        growth: candidates of higher label that are adjacent to the whole clique, bool [n, d].
        start: place of the first one in these.

    Returns:
        `found` and `growth`, both longer where there was no room, and the place after the last clique.
    """
    d = adjacent.shape[0]
    if start == found.shape[0]:
        found, growth = _doubled(found), _doubled(growth)
    smallest = 0
    for i in range(d):
        found[start, i] = core[i]
        growth[start, i] = candidates[i]
        smallest += core[i]
    if smallest:
        for i in range(d):
            if core[i]:
                for other in range(d):
                    if core[other] and other != i and not adjacent[i, other]:
                        return found, growth, start
                    growth[start, other] &= adjacent[i, other]
    if smallest > max_size:
        return found, growth, start
    end, head = start + 1, start
    for _ in range(smallest, max_size):
        last = end
        while head < last:  # all cliques of one size
            more = growth[head].sum()
            if end - start + more > MAX_CLIQUES:
                raise TooLargeError(
                    "the search has too many sets of neighbours to try: limit the number of parents "
                    "(max_parents)"
                )
            while end + more > found.shape[0]:
                found, growth = _doubled(found), _doubled(growth)
            _extend(head, end, adjacent, found, growth)
            end += more
            head += 1
        if last == end:
            break
    return found, growth, end


@njit(cache=True, nogil=True)
def _extend(head, end, adjacent, found, growth):
    """Write the clique at `head` with each node that it may grow by, from place `end`."""
    d = adjacent.shape[0]
    for i in range(d):
        if growth[head, i]:
            for other in range(d):
                found[end, other] = found[head, other]
                growth[end, other] = growth[head, other] & adjacent[i, other] & (other > i)
            found[end, i] = True
            end += 1


@njit(cache=True, nogil=True)
def _doubled(array):
    longer = np.empty((2 * array.shape[0], *array.shape[1:]), array.dtype)
    longer[: array.shape[0]] = array
    return longer


@njit(cache=True, nogil=True)
def reaches(next_nodes, start, goal, blocked):
    """Whether a semi-directed path leads from `start` to `goal` around the nodes `blocked`, bool [d].

    `next_nodes` bool [d, d] are the `successors` of the graph.
    """
    d = next_nodes.shape[0]
    reached = blocked.copy()
    reached[start] = True
    waiting = np.empty(d, np.int64)
    waiting[0] = start
    num_waiting = 1
    while num_waiting:
        num_waiting -= 1
        node = waiting[num_waiting]
        for i in range(d):
            if next_nodes[node, i] and not reached[i]:
                if i == goal:
                    return True
                reached[i] = True
                waiting[num_waiting] = i
                num_waiting += 1
    return False
