"""Weights of orders over all parent sets up to a limit, against dense tables and against all DAGs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

import gflowdag as gd
from gflowdag.data import Dataset, Knowledge
from gflowdag.graph.closure import is_acyclic
from gflowdag.graph.enumeration import all_dags
from gflowdag.orders.all_sums import draw_from_orders, score_all_sets, weigh_orders
from gflowdag.orders.candidates import dense_candidates
from gflowdag.orders.edges import edge_probabilities
from gflowdag.orders.labels import canonical_orders
from gflowdag.orders.weights import order_weights
from gflowdag.orders.windows import node_log_weights
from gflowdag.runtime.precision import double_precision
from gflowdag.score import make_score

KNOWLEDGE = [None, Knowledge(max_parents=2), Knowledge(required=[("X1", "X2")], forbidden=[("X3", "X1")])]


def score_of(d, knowledge=None, num_rows=100):
    frame = gd.simulate.linear_gaussian(d, num_rows, random_state=1).frame
    return make_score(Dataset.as_dataset(frame), score="auto", prior="fair", knowledge=knowledge)


@pytest.mark.parametrize("knowledge", KNOWLEDGE)
@pytest.mark.parametrize("num_rows", [100, 100_000])  # scores to 50,000 nats apart underflow side by side
@double_precision
def test_weights_and_edges_are_those_of_the_dense_table(knowledge, num_rows):
    score, rng = score_of(7, knowledge, num_rows), np.random.default_rng(0)
    labels = rng.permutation(7).astype(np.int32)
    orders = np.array([rng.permutation(7) for _ in range(100)], np.int32)
    dense = jax.tree.map(jnp.asarray, order_weights(dense_candidates(score.dense_table())))
    expected = np.array([node_log_weights(dense, jnp.asarray(o), jnp.asarray(labels)).sum() for o in orders])
    got = weigh_orders(score_all_sets(score, max_parents=6), orders, labels)
    alive = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(got.log_weights), alive)
    assert alive.any()
    np.testing.assert_allclose(got.log_weights[alive], expected[alive], rtol=1e-12, atol=1e-9)
    edges = edge_probabilities(dense, orders[alive], labels)
    # The dense table subtracts sums that differ by 1e-6 of them or more; scores of 10^5 nats round at 1e-11.
    np.testing.assert_allclose(got.edges[alive], edges, atol=1e-8 if num_rows == 100 else 2e-5)


@pytest.mark.parametrize("most", [1, 2, 4])
@double_precision
def test_the_weights_of_all_orders_are_those_of_all_graphs_within_the_limit(most):
    score, labels = score_of(5, Knowledge(max_parents=most)), np.array([3, 0, 4, 1, 2], np.int32)
    graphs = all_dags(5)
    log_scores = score.log_score(graphs)
    orders = canonical_orders(graphs, labels)
    each, inverse = np.unique(orders, axis=0, return_inverse=True)
    got = weigh_orders(score_all_sets(score), each, labels)
    for number in range(len(each)):
        own = inverse.reshape(-1) == number
        total = logsumexp(log_scores[own])
        assert got.log_weights[number] == pytest.approx(total, abs=1e-9)
        if np.isfinite(total):
            edges = np.tensordot(np.exp(log_scores[own] - total), graphs[own], axes=1)
            np.testing.assert_allclose(got.edges[number], edges, atol=1e-9)


@pytest.mark.parametrize("knowledge", KNOWLEDGE)
@double_precision
def test_graphs_have_their_order_and_the_edges_that_it_says(knowledge):
    score, rng = score_of(6, knowledge), np.random.default_rng(0)
    labels = rng.permutation(6).astype(np.int32)
    table = score_all_sets(score)
    candidates = np.array([rng.permutation(6) for _ in range(200)])
    order = candidates[np.argmax(weigh_orders(table, candidates, labels).log_weights)]
    orders = np.tile(order, (20_000, 1))
    graphs = draw_from_orders(table, orders, labels, rng)
    assert all(is_acyclic(graph) for graph in graphs[:50])
    np.testing.assert_array_equal(canonical_orders(graphs[:2000], labels), orders[:2000])
    assert np.isfinite(score.log_score(graphs[:2000])).all()
    edges = weigh_orders(table, orders[:1], labels).edges[0]
    np.testing.assert_allclose(graphs.mean(axis=0), edges, atol=5 * 0.5 / np.sqrt(20_000))
