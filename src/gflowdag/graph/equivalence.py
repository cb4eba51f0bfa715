"""Markov equivalence: the CPDAG of a DAG, the members of its class, and extensions of partly directed graphs.

In a CPDAG (and in any partly directed graph) an undirected edge has both of its entries set.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.errors import TooLargeError
from gflowdag.graph.bits import graph_keys
from gflowdag.graph.chordal import ChordalOrientations
from gflowdag.graph.order import topological_order

MAX_MEMBERS = 100_000  # of a class that is listed in memory


def cpdag(adjacency: ArrayLike) -> NDArray[np.bool_]:
    """The completed partially directed graph: what all members of the Markov equivalence class share.

    Args:
        adjacency: bool [..., d, d], all acyclic.

    Returns:
        bool [..., d, d]: `i -> j` alone where every member has it, both entries where members differ.
    """
    adjacency = np.asarray(adjacency, dtype=bool)
    graphs = adjacency.reshape(-1, *adjacency.shape[-2:])
    row = np.arange(len(graphs))
    order = topological_order(graphs)
    position = np.argsort(order, axis=1)
    compelled = np.zeros_like(graphs)
    # Chickering (1995), node by node: with x the last parent of y, all edges into y are compelled if another
    # parent is no parent of x (a v-structure) or a compelled parent of x is no parent of y; else just those
    # from the compelled parents of x.
    for y in order.T:
        parents = graphs[row, :, y]
        x = np.where(parents, position, -1).argmax(axis=1)
        others = parents.copy()
        others[row, x] = False
        forced = compelled[row, :, x]
        all_forced = np.any((others & ~graphs[row, :, x]) | (forced & ~parents), axis=1, keepdims=True)
        compelled[row, :, y] = parents & (all_forced | forced)
    reversible = graphs & ~compelled
    return (graphs | np.swapaxes(reversible, -1, -2)).reshape(adjacency.shape)


def class_keys(adjacency: ArrayLike) -> NDArray[np.bytes_]:
    """One hashable key for the Markov equivalence class of each DAG: bool [..., d, d] to bytes [...]."""
    return graph_keys(cpdag(adjacency))


def class_size(cpdag: ArrayLike) -> int:
    """Number of DAGs in the class of one CPDAG, bool [d, d], in polynomial time."""
    orientations, components = _undirected_part(np.asarray(cpdag, dtype=bool))
    return math.prod(orientations.count(component) for component in components)


def class_members(cpdag: ArrayLike) -> NDArray[np.bool_]:
    """Every DAG of the class of one CPDAG.

    Args:
        cpdag: bool [d, d].

    Returns:
        bool [m, d, d]. A class of more than 100,000 members is refused; draw from it with `random_member`.
    """
    graph = np.asarray(cpdag, dtype=bool)
    size = class_size(graph)
    if size > MAX_MEMBERS:
        raise TooLargeError(f"the class has {size} members, more than {MAX_MEMBERS}; use `random_member`")
    orientations, components = _undirected_part(graph)
    listings = [list(orientations.listing(component)) for component in components]
    return np.stack([_oriented(graph, orders) for orders in product(*listings)])


def random_member(cpdag: ArrayLike, rng: np.random.Generator) -> NDArray[np.bool_]:
    """A DAG drawn uniformly from the class of one CPDAG, exactly and in polynomial time.

    Args:
        cpdag: bool [d, d].
        rng: source of randomness.

    Returns:
        bool [d, d].
    """
    graph = np.asarray(cpdag, dtype=bool)
    orientations, components = _undirected_part(graph)
    return _oriented(graph, [orientations.draw(component, rng) for component in components])


def extend_pdag(pdag: ArrayLike, rng: np.random.Generator) -> NDArray[np.bool_] | None:
    """A DAG with the skeleton, the directed edges and the v-structures of a partly directed graph, if any.

    Constraint-based methods can return graphs that no DAG extends (conflicting orientations); those give
    None. Where there are several extensions one is taken at random, not uniformly (Dor and Tarsi, 1992).

    Args:
        pdag: bool [d, d]; both entries of an undirected edge are set.
        rng: source of randomness.

    Returns:
        bool [d, d] or None.
    """
    pdag = np.asarray(pdag, dtype=bool)
    undirected = pdag & pdag.T
    adjacent = pdag | pdag.T | np.eye(len(pdag), dtype=bool)
    dag = pdag & ~undirected
    left = np.ones(len(pdag), dtype=bool)

    def can_be_sink(node: int) -> bool:
        """No edge leaves it, and pointing all its undirected edges at it makes no new v-structure."""
        around = adjacent[node] & left
        free = undirected[node] & left
        return not (dag[node] & left).any() and not (around & ~adjacent[free]).any()

    waiting: list[int] = rng.permutation(len(pdag)).tolist()
    while waiting:
        sink = next(filter(can_be_sink, waiting), None)
        if sink is None:
            return None
        dag[undirected[sink] & left, sink] = True
        left[sink] = False
        waiting.remove(sink)
    return dag


def _undirected_part(graph: NDArray[np.bool_]) -> tuple[ChordalOrientations, list[int]]:
    """The chordal graph of the undirected edges, and its connected components as bit masks."""
    undirected = graph & graph.T
    neighbours = [sum(1 << int(i) for i in np.flatnonzero(row)) for row in undirected]
    orientations = ChordalOrientations(neighbours)
    return orientations, orientations.components((1 << len(graph)) - 1)


def _oriented(graph: NDArray[np.bool_], orders: Iterable[list[int]]) -> NDArray[np.bool_]:
    """Point the undirected edges along the orders of their components; refuse what was no CPDAG."""
    position = np.empty(len(graph), dtype=np.int64)
    for order in orders:
        position[order] = np.arange(len(order))
    dag = graph & (~graph.T | (position[:, None] < position[None, :]))
    if not np.array_equal(cpdag(dag), graph):
        raise ValueError("not the CPDAG of any DAG; `extend_pdag` takes any partly directed graph")
    return dag
