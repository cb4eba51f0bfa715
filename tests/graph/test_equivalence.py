"""Markov equivalence against definitions that share no code with the library."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest
from scipy.stats import chisquare

from gflowdag import graph
from gflowdag.errors import TooLargeError


def _class_of(adjacency: np.ndarray) -> tuple[frozenset, frozenset]:
    """Skeleton and v-structures (Verma and Pearl): equal iff the DAGs are Markov equivalent."""
    skeleton = frozenset(frozenset(map(int, edge)) for edge in np.argwhere(adjacency))
    colliders = set()
    for k in range(len(adjacency)):
        for i, j in combinations(map(int, np.flatnonzero(adjacency[:, k])), 2):
            if frozenset((i, j)) not in skeleton:
                colliders.add((i, k, j))
    return skeleton, frozenset(colliders)


def _classes(graphs: np.ndarray) -> dict[tuple, list[int]]:
    classes = defaultdict(list)
    for index, adjacency in enumerate(graphs):
        classes[_class_of(adjacency)].append(index)
    return classes


def test_the_cpdag_is_the_union_of_all_members_of_the_class():
    graphs = graph.all_dags(4)
    ours = graph.cpdag(graphs)
    for members in _classes(graphs).values():
        union = graphs[members].any(axis=0)
        for member in members:
            np.testing.assert_array_equal(ours[member], union)


@pytest.mark.parametrize(("d", "count"), [(3, 11), (4, 185), (5, 8782)])
def test_class_keys_tell_the_classes_apart(d: int, count: int):
    assert len(np.unique(graph.class_keys(graph.all_dags(d)))) == count  # known numbers of classes


def test_equal_keys_mean_equal_skeleton_and_v_structures():
    rng = np.random.default_rng(0)
    base = [graph.erdos_renyi(7, 9, rng) for _ in range(40)]
    # Near copies, so that equivalent and almost equivalent pairs both occur: one edge reversed.
    near = []
    for adjacency in base:
        for i, j in np.argwhere(adjacency):
            copy = adjacency.copy()
            copy[i, j], copy[j, i] = False, True
            near.append(copy)
    graphs = np.stack(base + near)
    graphs = graphs[graph.is_acyclic(graphs)]
    keys, classes = graph.class_keys(graphs), [_class_of(adjacency) for adjacency in graphs]
    assert len(set(zip(keys.tolist(), classes, strict=True))) == len(set(classes)) == len(set(keys.tolist()))
    assert len(set(classes)) < len(graphs)


def test_members_and_size_of_every_class_on_four_nodes():
    graphs = graph.all_dags(4)
    for members in _classes(graphs).values():
        cpdag = graph.cpdag(graphs[members[0]])
        listed = graph.class_members(cpdag)
        assert graph.class_size(cpdag) == len(members) == len(listed)
        assert set(graph.graph_keys(listed).tolist()) == set(graph.graph_keys(graphs[members]).tolist())


def _orientations_by_brute_force(undirected: np.ndarray) -> int:
    edges = np.argwhere(np.triu(undirected))
    count = 0
    for flips in product((False, True), repeat=len(edges)):
        adjacency = np.zeros_like(undirected)
        for (i, j), flip in zip(edges, flips, strict=True):
            adjacency[(j, i) if flip else (i, j)] = True
        if graph.is_acyclic(adjacency) and not _class_of(adjacency)[1]:
            count += 1
    return count


def test_clique_picking_counts_the_orientations_of_chordal_graphs():
    rng = np.random.default_rng(1)
    checked = 0
    while checked < 25:
        undirected = np.triu(rng.random((6, 6)) < 0.6, 1)
        undirected |= undirected.T
        if undirected.sum() <= 2 * 11 and nx.is_chordal(nx.from_numpy_array(undirected)):
            assert graph.class_size(undirected) == _orientations_by_brute_force(undirected)
            checked += 1


def test_large_classes_are_counted_not_listed():
    complete = ~np.eye(40, dtype=bool)
    assert graph.class_size(complete) == math.factorial(40)
    path = np.eye(40, k=1, dtype=bool) | np.eye(40, k=-1, dtype=bool)
    assert graph.class_size(path) == 40  # a tree has one member for each choice of the root
    with pytest.raises(TooLargeError, match="random_member"):
        graph.class_members(complete)
    member = graph.random_member(complete, np.random.default_rng(0))
    assert graph.is_acyclic(member)
    assert member.sum() == 40 * 39 / 2


@pytest.mark.parametrize(
    "edges",
    [
        [(0, 1), (1, 2), (2, 3), (3, 4)],  # a path: 5
        [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4)],  # two triangles and a tail
        [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)],  # K4 and a triangle on an edge
        [(0, 1), (0, 2), (1, 2), (3, 4)],  # two components: 6 × 2
    ],
)
def test_random_members_are_uniform_over_the_class(edges):
    cpdag = np.zeros((5, 5), dtype=bool)
    for i, j in edges:
        cpdag[i, j] = cpdag[j, i] = True
    members = graph.graph_keys(graph.class_members(cpdag))
    rng = np.random.default_rng(2)
    draws = graph.graph_keys(np.stack([graph.random_member(cpdag, rng) for _ in range(100 * len(members))]))
    found, counts = np.unique(draws, return_counts=True)
    assert set(found.tolist()) == set(members.tolist())
    assert chisquare(counts).pvalue > 1e-3  # fixed seed; a wrong sampler is off by tens of sd


def test_random_members_of_mixed_graphs_stay_in_the_class():
    rng = np.random.default_rng(3)
    for _ in range(60):
        adjacency = graph.erdos_renyi(12, 16, rng)
        member = graph.random_member(graph.cpdag(adjacency), rng)
        assert graph.class_keys(member) == graph.class_keys(adjacency)


def test_what_is_no_cpdag_is_refused():
    rng = np.random.default_rng(0)
    square = nx.to_numpy_array(nx.cycle_graph(4), dtype=bool)
    with pytest.raises(ValueError, match="chordal"):
        graph.random_member(square, rng)
    compelled_nothing = np.array([[0, 1], [0, 0]], dtype=bool)  # 0 -> 1 is reversible
    with pytest.raises(ValueError, match="not the CPDAG"):
        graph.random_member(compelled_nothing, rng)


def test_extensions_keep_skeleton_directions_and_v_structures():
    rng = np.random.default_rng(4)
    for _ in range(60):
        adjacency = graph.erdos_renyi(9, 12, rng)
        pdag = graph.cpdag(adjacency)
        undirected = np.argwhere(pdag & pdag.T)
        for i, j in undirected[rng.random(len(undirected)) < 0.2]:  # more knowledge than the CPDAG has
            if adjacency[i, j]:
                pdag[j, i] = False
        extension = graph.extend_pdag(pdag, rng)
        assert extension is not None
        assert _class_of(extension) == _class_of(adjacency)
        assert not (pdag & ~pdag.T & ~extension).any()


def test_extensions_vary_and_reach_the_whole_class():
    path = np.eye(4, k=1, dtype=bool) | np.eye(4, k=-1, dtype=bool)
    rng = np.random.default_rng(5)
    found = {graph.extend_pdag(path, rng).tobytes() for _ in range(200)}
    assert found == {member.tobytes() for member in graph.class_members(path)}


def test_graphs_without_extension_give_none():
    rng = np.random.default_rng(6)
    cycle = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool)
    assert graph.extend_pdag(cycle, rng) is None
    square = nx.to_numpy_array(nx.cycle_graph(4), dtype=bool)  # any orientation makes a cycle or a collider
    assert graph.extend_pdag(square, rng) is None
