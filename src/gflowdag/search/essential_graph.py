"""Essential graphs (CPDAGs) as bit masks: what the operators of greedy equivalence search ask of one.

Bit `i` of `parents[j]` is set iff `i -> j`, bit `i` of `neighbours[j]` iff `i — j`. `graph.equivalence` has
the same conversions for batches of matrices; here one graph changes hundreds of times in a search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.errors import TooLargeError
from gflowdag.graph.bits import graphs_from_masks

MAX_CLIQUES = 1 << 14  # for one edge: 14 shared neighbours that are all adjacent to each other


class EssentialGraph(NamedTuple):
    """A partly directed graph on `d ≤ 62` nodes; completed, it stands for a Markov equivalence class."""

    parents: NDArray[np.int64]  # [d], sources of the directed edges into each node
    neighbours: NDArray[np.int64]  # [d], other ends of the undirected edges, symmetric


def empty_graph(d: int) -> EssentialGraph:
    """No edges between `d` nodes."""
    return EssentialGraph(np.zeros(d, np.int64), np.zeros(d, np.int64))


def edge_matrix(graph: EssentialGraph) -> NDArray[np.bool_]:
    """bool [d, d], rows are sources; both entries are set for an undirected edge."""
    return graphs_from_masks(graph.parents | graph.neighbours, len(graph.parents))


@njit(cache=True, nogil=True)
def successors(graph):
    """Children and neighbours of each node, int64 [d]: where a semi-directed path may go next."""
    d = graph.parents.shape[0]
    next_nodes = graph.neighbours.copy()
    for j in range(d):
        for i in range(d):
            if graph.parents[j] >> i & 1:
                next_nodes[i] |= 1 << j
    return next_nodes


@njit(cache=True, nogil=True)
def adjacencies(graph):
    """Nodes joined to each node by any edge, int64 [d]."""
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
    compelled = np.zeros(d, np.int64)
    neighbours = np.zeros(d, np.int64)
    for y in order:
        x = -1
        for i in range(d):
            if dag[y] >> i & 1 and (x < 0 or rank[i] > rank[x]):
                x = i
        if x < 0:
            continue
        # x is the last parent of y: as in `graph.equivalence.cpdag`.
        others = dag[y] & ~(1 << x)
        if others & ~dag[x] or compelled[x] & ~dag[y]:
            compelled[y] = dag[y]
        else:
            compelled[y] = compelled[x]
        reversible = dag[y] & ~compelled[y]
        neighbours[y] |= reversible
        for i in range(d):
            if reversible >> i & 1:
                neighbours[i] |= 1 << y
    return EssentialGraph(compelled, neighbours)


@njit(cache=True, nogil=True)
def _extension(graph):
    """Parent masks [d] of a DAG with the same skeleton and v-structures, and a topological order [d]."""
    d = graph.parents.shape[0]
    adjacent = adjacencies(graph)
    dag = np.empty(d, np.int64)
    order = np.empty(d, np.int64)
    left = (1 << d) - 1
    for place in range(d - 1, -1, -1):
        sink = 0
        while not (left >> sink & 1 and _can_be_sink(graph, adjacent, sink, left)):
            sink += 1
            if sink == d:
                raise ValueError("no DAG extends this partly directed graph")
        left &= ~(1 << sink)
        dag[sink] = (graph.parents[sink] | graph.neighbours[sink]) & left
        order[place] = sink
    return dag, order


@njit(cache=True, nogil=True)
def _can_be_sink(graph, adjacent, node, left):
    """No edge leaves it, and pointing all its undirected edges at it makes no new v-structure."""
    around = adjacent[node] & left
    undirected = graph.neighbours[node] & left
    if around & ~undirected & ~graph.parents[node]:
        return False
    for other in range(adjacent.shape[0]):
        if undirected >> other & 1 and around & ~adjacent[other] & ~(1 << other):
            return False
    return True


@njit(cache=True, nogil=True)
def cliques(core, candidates, adjacent, max_size):
    """All cliques `core ∪ T` with `T ⊆ candidates` and at most `max_size` nodes, int64 [m], by size."""
    d = adjacent.shape[0]
    found = np.empty(8, np.int64)
    size = 0
    for i in range(d):
        if core >> i & 1:
            if core & ~adjacent[i] & ~(1 << i):
                return found[:0]
            candidates &= adjacent[i]
            size += 1
    if size > max_size:
        return found[:0]
    growth = np.empty(8, np.int64)  # candidates of higher label that are adjacent to the whole clique
    sizes = np.empty(8, np.int64)
    found[0], growth[0], sizes[0] = core, candidates, size
    num_found, head = 1, 0
    while head < num_found:
        if sizes[head] < max_size and growth[head]:
            for i in range(d):
                if growth[head] >> i & 1:
                    if num_found == MAX_CLIQUES:
                        raise TooLargeError("too many cliques of neighbours for a search: set max_parents")
                    if num_found == found.shape[0]:
                        found, growth, sizes = _doubled(found), _doubled(growth), _doubled(sizes)
                    found[num_found] = found[head] | 1 << i
                    growth[num_found] = growth[head] & adjacent[i] & ~((2 << i) - 1)
                    sizes[num_found] = sizes[head] + 1
                    num_found += 1
        head += 1
    return found[:num_found]


@njit(cache=True, nogil=True)
def _doubled(array):
    longer = np.empty(2 * array.shape[0], array.dtype)
    longer[: array.shape[0]] = array
    return longer


@njit(cache=True, nogil=True)
def reaches(next_nodes, start, goal, blocked):
    """Whether a semi-directed path leads from `start` to `goal` around the nodes of the mask `blocked`.

    `next_nodes` int64 [d] are the `successors` of the graph.
    """
    reached = 1 << start
    frontier = reached
    while frontier:
        step = 0
        for i in range(next_nodes.shape[0]):
            if frontier >> i & 1:
                step |= next_nodes[i]
        frontier = step & ~reached & ~blocked
        reached |= frontier
        if reached >> goal & 1:
            return True
    return False
