"""Structural features and the distance between graphs."""

from __future__ import annotations

import networkx as nx
import numpy as np

from gflowdag import graph


def test_path_features_are_the_descendants_of_networkx():
    for adjacency in graph.all_dags(4)[::11]:
        theirs = nx.from_numpy_array(adjacency, create_using=nx.DiGraph)
        expected = [[j in nx.descendants(theirs, i) for j in range(4)] for i in range(4)]
        np.testing.assert_array_equal(graph.path_features(adjacency), expected)


def test_the_markov_blanket_is_what_separates_a_node_from_all_others():
    # A definition by d-separation, independent of parents, children and co-parents: X and Y are separated
    # by all the rest iff Y is not in the blanket of X.
    for adjacency in graph.all_dags(4)[::7]:
        theirs = nx.from_numpy_array(adjacency, create_using=nx.DiGraph)
        blanket = graph.markov_blanket_features(adjacency)
        for i in range(4):
            for j in range(4):
                rest = set(range(4)) - {i, j}
                assert blanket[i, j] == (i != j and not nx.is_d_separator(theirs, {i}, {j}, rest))


def test_shd_is_the_number_of_moves_to_the_other_graph():
    # Breadth-first search over additions, removals and reversals through all directed graphs on 3 nodes
    # without 2-cycles (a path through a cyclic graph is never shorter).
    pairs = [(0, 1), (0, 2), (1, 2)]
    space = nx.Graph()
    states = [(a, b, c) for a in range(3) for b in range(3) for c in range(3)]
    for state in states:
        for k in range(3):
            space.add_edges_from((state, (*state[:k], v, *state[k + 1 :])) for v in range(3) if v != state[k])

    def state_of(adjacency: np.ndarray) -> tuple[int, ...]:
        return tuple(1 if adjacency[i, j] else 2 if adjacency[j, i] else 0 for i, j in pairs)

    graphs = graph.all_dags(3)
    moves = dict(nx.all_pairs_shortest_path_length(space))
    expected = [[moves[state_of(a)][state_of(b)] for b in graphs] for a in graphs]
    np.testing.assert_array_equal(graph.shd(graphs[:, None], graphs[None]), expected)


def test_a_reversal_counts_once():
    assert graph.shd([[0, 1], [0, 0]], [[0, 0], [1, 0]]) == 1
    assert graph.shd([[0, 1], [0, 0]], [[0, 0], [0, 0]]) == 1
    assert graph.shd([[0, 1], [1, 0]], [[0, 0], [1, 0]]) == 1  # undirected against directed, in CPDAGs
