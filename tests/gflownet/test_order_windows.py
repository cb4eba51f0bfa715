"""Finished orders: their weights, edge marginals and graphs, against all DAGs."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from order_cases import DAGS, ORDERS, canonical_orders, log_scores, problem
from scipy.special import logsumexp
from scipy.stats import chisquare

from gflowdag.graph import all_dags, graph_keys
from gflowdag.graph.order import canonical_order
from gflowdag.orders.draws import draw_graphs
from gflowdag.orders.labels import labels_along, likely_order
from gflowdag.orders.problem import edge_probabilities_of_orders, mean_edge_probabilities
from gflowdag.orders.windows import node_log_weights, windows
from gflowdag.runtime.precision import double_precision

CASES = [
    {"spread": 2.0},
    {"spread": 40.0, "seed": 1},
    {"spread": 1.0, "forbidden": 0.5, "seed": 2},
]


@double_precision
def test_every_dag_on_five_nodes_fits_its_canonical_order_and_no_other():
    graphs = all_dags(5)
    assert len(graphs) == 29281
    orders = np.array(list(itertools.permutations(range(5))))
    weights = problem().weights._replace(table=jnp.zeros((5, 4, 8)), position=jnp.zeros((5, 5), jnp.int32))
    fits = np.zeros((len(graphs), len(orders)), bool)
    for column, order in enumerate(orders):
        window = windows(weights, jnp.asarray(order), jnp.arange(5))
        members, free = np.asarray(window.members), np.asarray(window.free)
        in_order = graphs[:, order][:, :, np.arange(5)]  # rows by time, columns by node
        earlier = np.arange(5)[:, None] < np.argsort(order)
        possible = ~(in_order & ~earlier).any(axis=(1, 2))
        fulfilled = (in_order & members.T).any(axis=1) | free
        fits[:, column] = possible & fulfilled.all(axis=1)
    assert (fits.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(orders[fits.argmax(axis=1)], canonical_order(graphs))


@pytest.mark.parametrize("case", CASES)
@double_precision
def test_the_weight_of_an_order_is_the_total_of_its_dags(case):
    given = problem(**case)
    scores, of_dags = log_scores(given), canonical_orders(given)
    labels = jnp.asarray(given.labels)
    found = jax.jit(jax.vmap(lambda order: node_log_weights(given.weights, order, labels).sum()))(ORDERS)
    with np.errstate(divide="ignore"):
        expected = [logsumexp(scores[(of_dags == order).all(axis=1)], b=1.0) for order in ORDERS]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("case", CASES)
@double_precision
def test_edge_marginals_given_an_order_are_those_of_its_dags(case):
    given = problem(**case)
    scores, of_dags = log_scores(given), canonical_orders(given)
    for order in ORDERS:
        mine = (of_dags == order).all(axis=1) & np.isfinite(scores)
        if not mine.any():
            continue
        share = np.exp(scores[mine] - logsumexp(scores[mine]))
        expected = np.tensordot(share, DAGS[mine], 1)
        found = edge_probabilities_of_orders(given, order[None])[0]
        np.testing.assert_allclose(found, expected, atol=1e-12)
        # Small probabilities keep their leading digits: they decide rankings.
        visible = expected > 1e-10
        np.testing.assert_allclose(found[visible], expected[visible], rtol=1e-4)


@double_precision
def test_graphs_given_an_order_are_drawn_by_their_score():
    given = problem(spread=1.5)
    scores, of_dags = log_scores(given), canonical_orders(given)
    order = np.argsort(given.labels)[[0, 2, 1, 3]]  # one node was passed over, so one window is restricted
    mine = (of_dags == order).all(axis=1)
    share = np.exp(scores[mine] - logsumexp(scores[mine]))
    n = 20_000
    drawn = draw_graphs(
        given.weights, given.table, np.tile(order, (n, 1)), given.labels, np.random.default_rng(0)
    )
    keys = dict(zip(graph_keys(DAGS[mine]).tolist(), range(mine.sum()), strict=True))
    counts = np.bincount([keys[key] for key in graph_keys(drawn).tolist()], minlength=mine.sum())
    common = share * n > 5
    observed = np.append(counts[common], counts[~common].sum())
    expected = np.append(share[common], share[~common].sum()) * n
    assert chisquare(observed[expected > 0], expected[expected > 0]).pvalue > 1e-3


@double_precision
def test_the_mean_over_orders_and_its_error_follow_the_weights():
    given = problem()
    each = edge_probabilities_of_orders(given, ORDERS)
    importances = np.random.default_rng(0).dirichlet(np.ones(24), size=2)
    together = zip(*mean_edge_probabilities(given, ORDERS, importances), strict=True)
    for importance, (mean, error) in zip(importances, together, strict=True):
        expected = np.tensordot(importance, each, 1)
        np.testing.assert_allclose(mean, expected, atol=1e-12)
        np.testing.assert_allclose(
            error, np.sqrt(np.tensordot(importance**2, (each - expected) ** 2, 1)), atol=1e-9
        )
        alone, _ = mean_edge_probabilities(given, ORDERS, importance)
        np.testing.assert_allclose(alone, mean, atol=1e-15)


@double_precision
def test_likely_orders_have_a_positive_weight_and_labels_follow_them():
    given = problem(forbidden=0.5, seed=5)
    order = likely_order(given.table, np.random.default_rng(0))
    labels = labels_along(order)
    assert (labels[order] == np.arange(4)).all()
    log_weights = node_log_weights(given.weights, jnp.asarray(order), jnp.asarray(labels))
    assert np.isfinite(np.asarray(log_weights)).all()
