"""Reachability against networkx, and the incremental closure against the one from scratch."""

from __future__ import annotations

import jax
import networkx as nx
import numpy as np

from gflowdag import graph
from gflowdag.graph import incremental


def _random_dags(n: int, d: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([graph.erdos_renyi(d, rng.uniform(0, d * (d - 1) / 2), rng) for _ in range(n)])


def test_closure_is_the_reachability_of_networkx_also_with_cycles():
    rng = np.random.default_rng(0)
    graphs = rng.random((60, 9, 9)) < rng.uniform(0.02, 0.3, (60, 1, 1))
    closure = graph.transitive_closure(graphs)
    for adjacency, reach in zip(graphs, closure, strict=True):
        theirs = nx.transitive_closure(
            nx.from_numpy_array(adjacency, create_using=nx.DiGraph), reflexive=False
        )
        np.testing.assert_array_equal(reach, nx.to_numpy_array(theirs, dtype=bool))


def test_closure_of_more_nodes_than_a_word_has_bits_is_that_of_networkx_too():
    rng = np.random.default_rng(3)
    for d in (64, 65, 130):
        graphs = rng.random((6, d, d)) < rng.uniform(0.2, 1.5, (6, 1, 1)) / d
        for adjacency, reach in zip(graphs, graph.transitive_closure(graphs), strict=True):
            theirs = nx.transitive_closure(
                nx.from_numpy_array(adjacency, create_using=nx.DiGraph), reflexive=False
            )
            np.testing.assert_array_equal(reach, nx.to_numpy_array(theirs, dtype=bool))
            columns_first = np.asfortranarray(adjacency)
            np.testing.assert_array_equal(graph.transitive_closure(columns_first), reach)
        assert graph.transitive_closure(graphs[0]).shape == (d, d)


def test_acyclicity_is_that_of_networkx():
    rng = np.random.default_rng(1)
    graphs = np.triu(rng.random((200, 7, 7)) < 0.3, 1) | (rng.random((200, 7, 7)) < 0.02)
    expected = [nx.is_directed_acyclic_graph(nx.from_numpy_array(a, create_using=nx.DiGraph)) for a in graphs]
    assert 20 < sum(expected) < 180
    np.testing.assert_array_equal(graph.is_acyclic(graphs), expected)


def test_legal_edges_are_those_that_keep_the_graph_acyclic():
    for adjacency in _random_dags(10, 6, seed=2):
        legal = graph.legal_edges(adjacency)
        for i in range(6):
            for j in range(6):
                grown = nx.from_numpy_array(adjacency, create_using=nx.DiGraph)
                grown.add_edge(i, j)
                assert legal[i, j] == (not adjacency[i, j] and nx.is_directed_acyclic_graph(grown))


def test_any_leading_dimensions_are_batched():
    graphs = _random_dags(6, 5, seed=3)
    for function in (graph.transitive_closure, graph.legal_edges, graph.is_acyclic, graph.canonical_order):
        one_by_one = np.stack([function(adjacency) for adjacency in graphs])
        np.testing.assert_array_equal(function(graphs), one_by_one)
        np.testing.assert_array_equal(
            function(graphs.reshape(2, 3, 5, 5)), one_by_one.reshape(2, 3, *one_by_one.shape[1:])
        )


def test_adding_edges_one_by_one_keeps_the_closure():
    d = 8
    rng = np.random.default_rng(4)
    add_edge, legal_edges = jax.jit(incremental.add_edge), jax.jit(incremental.legal_edges)
    state = incremental.from_adjacency(np.zeros((d, d), bool))
    while (legal := np.asarray(legal_edges(state))).any():
        adjacency = np.asarray(state.adjacency)
        np.testing.assert_array_equal(legal, graph.legal_edges(adjacency))
        np.testing.assert_array_equal(
            np.asarray(state.ancestors).T, graph.transitive_closure(adjacency) | np.eye(d, dtype=bool)
        )
        source, target = rng.permutation(np.argwhere(legal))[0]
        state = add_edge(state, int(source), int(target))
    assert int(state.num_edges) == d * (d - 1) / 2  # a DAG without legal edges is complete


def test_a_state_from_a_graph_is_the_state_that_grew_to_it():
    graphs = _random_dags(5, 8, seed=5)
    states = jax.jit(jax.vmap(incremental.from_adjacency))(graphs)
    closed = graph.transitive_closure(graphs) | np.eye(8, dtype=bool)
    np.testing.assert_array_equal(np.asarray(states.ancestors).swapaxes(1, 2), closed)
    np.testing.assert_array_equal(states.num_edges, graphs.sum(axis=(1, 2)))
