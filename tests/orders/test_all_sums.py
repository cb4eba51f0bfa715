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
from gflowdag.orders.families import Families, all_up_to, likely_families
from gflowdag.orders.labels import canonical_orders
from gflowdag.orders.weights import order_weights
from gflowdag.orders.windows import node_log_weights
from gflowdag.runtime.deadline import Deadline
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
    got = weigh_orders(score_all_sets(score, all_up_to(score, 6)), orders, labels)
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
    got = weigh_orders(score_all_sets(score, all_up_to(score, 6)), each, labels)
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
    table = score_all_sets(score, all_up_to(score, 6))
    candidates = np.array([rng.permutation(6) for _ in range(200)])
    order = candidates[np.argmax(weigh_orders(table, candidates, labels).log_weights)]
    orders = np.tile(order, (20_000, 1))
    graphs = draw_from_orders(table, orders, labels, rng)
    assert all(is_acyclic(graph) for graph in graphs[:50])
    np.testing.assert_array_equal(canonical_orders(graphs[:2000], labels), orders[:2000])
    assert np.isfinite(score.log_score(graphs[:2000])).all()
    edges = weigh_orders(table, orders[:1], labels).edges[0]
    np.testing.assert_allclose(graphs.mean(axis=0), edges, atol=5 * 0.5 / np.sqrt(20_000))


@double_precision
def test_orders_are_weighed_until_the_deadline_and_no_fewer_than_asked():
    score, rng = score_of(6), np.random.default_rng(0)
    labels, table = rng.permutation(6), score_all_sets(score, all_up_to(score, 6))
    orders = np.array([rng.permutation(6) for _ in range(200)])
    everything = weigh_orders(table, orders, labels, deadline=Deadline.after(1000.0))
    assert len(everything.log_weights) == 200
    stopped = weigh_orders(table, orders, labels, deadline=Deadline.after(0.0), fewest=50)
    assert 50 <= len(stopped.log_weights) < 100
    for part, whole in zip(stopped, everything, strict=True):
        np.testing.assert_array_equal(part, whole[: len(part)])
    assert len(weigh_orders(table, orders, labels, deadline=Deadline.after(0.0)).edges) == 0


@pytest.mark.parametrize("num_rows", [100, 100_000])
@double_precision
def test_known_totals_change_no_graph(num_rows):
    score, rng = score_of(6, num_rows=num_rows), np.random.default_rng(0)
    labels, table = rng.permutation(6), score_all_sets(score, all_up_to(score, 6))
    orders = np.array([rng.permutation(6) for _ in range(300)])
    totals = weigh_orders(table, orders, labels).totals
    assert (totals == 0).any() == (num_rows == 100_000)
    plain = draw_from_orders(table, orders, labels, np.random.default_rng(1))
    np.testing.assert_array_equal(
        draw_from_orders(table, orders, labels, np.random.default_rng(1), totals), plain
    )


@double_precision
def test_what_is_in_the_core_of_a_family_changes_nothing_where_all_sets_are_in_it():
    score, rng = score_of(7, KNOWLEDGE[2]), np.random.default_rng(0)
    labels, orders = rng.permutation(7), np.array([rng.permutation(7) for _ in range(100)])
    plain = all_up_to(score, 6)
    size = np.maximum(plain.core_sizes, [0, 1, 2, 3, 4, 5, 3])
    others = plain.core_sizes + plain.num_others - size
    mixed = Families(plain.ranked, size, others, others, 7)
    assert mixed.has_all()
    assert plain.has_all()
    tables = [score_all_sets(score, families) for families in (plain, mixed)]
    expected, got = (weigh_orders(table, orders, labels) for table in tables)
    alive = np.isfinite(expected.log_weights)
    assert 0 < alive.sum() < 100
    np.testing.assert_array_equal(np.isfinite(got.log_weights), alive)
    np.testing.assert_allclose(got.log_weights[alive], expected.log_weights[alive], rtol=1e-12)
    np.testing.assert_allclose(got.edges[alive], expected.edges[alive], atol=1e-12)
    several = np.repeat(orders[alive][:1], 20_000, axis=0)
    graphs = draw_from_orders(tables[1], several, labels, rng)
    np.testing.assert_array_equal(canonical_orders(graphs[:2000], labels), several[:2000])
    np.testing.assert_allclose(graphs.mean(axis=0), expected.edges[alive][0], atol=5 * 0.5 / np.sqrt(20_000))


@double_precision
def test_the_weights_of_all_orders_are_those_of_all_graphs_of_the_families():
    score, labels = score_of(5), np.array([3, 0, 4, 1, 2], np.int32)
    ranked = all_up_to(score, 4).ranked[:, [2, 0, 3, 1, 4]]
    families = Families(
        ranked, np.array([2, 1, 0, 3, 2]), np.array([2, 3, 4, 1, 2]), np.array([1, 1, 2, 0, 1]), 5
    )
    graphs = all_dags(5)
    outside = families.left_out(graphs)
    expected = [(~np.isin(np.flatnonzero(g[:, 3]), ranked[3, :3])).any() for g in graphs]
    np.testing.assert_array_equal(outside[:, 3], expected)
    graphs = graphs[~outside.any(axis=1)]
    assert 0 < len(graphs) < len(outside)
    log_scores, orders = score.log_score(graphs), canonical_orders(graphs, labels)
    table = score_all_sets(score, families)
    for order in np.unique(orders, axis=0):
        own = (orders == order).all(axis=1)
        got, total = weigh_orders(table, order[None], labels), logsumexp(log_scores[own])
        assert got.log_weights[0] == pytest.approx(total, abs=1e-9)
        edges = np.tensordot(np.exp(log_scores[own] - total), graphs[own], axes=1)
        np.testing.assert_allclose(got.edges[0], edges, atol=1e-9)


def test_families_keep_what_graphs_need():
    score = score_of(9, Knowledge(required=[("X4", "X1")], forbidden=[("X5", "X1")]))
    rng = np.random.default_rng(0)
    graphs = np.triu(rng.random((400, 9, 9)) < 0.2, 1)
    graphs[:, :8, 8] = rng.random((400, 8)) < 0.9  # one node with seven parents or so
    graphs[:, 8, :8] = False
    graphs[:, 3, 0], graphs[:, 4, 0] = True, False
    families = likely_families(score, graphs, most_sets=40)
    assert families.ranked[0, 0] == 3  # a required parent
    assert families.core_sizes[0] >= 1
    assert 4 not in families.ranked[0, :8]
    assert families.left_out(graphs).mean(axis=0).max() <= 0.002
    few = all_up_to(score, 3)
    assert not few.has_all()
    limited = score_of(9, Knowledge(max_parents=3))
    assert likely_families(limited, graphs, most_sets=200).has_all()
    assert few.left_out(graphs)[:, 8].mean() > 0.9
