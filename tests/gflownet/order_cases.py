"""Small problems over orders, and their answers by brute force."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from gflowdag.graph import all_dags
from gflowdag.graph.bits import compress, parent_masks
from gflowdag.graph.order import canonical_order
from gflowdag.orders.candidates import dense_candidates
from gflowdag.orders.problem import OrderProblem
from gflowdag.orders.weights import order_weights

ORDERS = np.array(list(itertools.permutations(range(4))), np.int32)
DAGS = all_dags(4)


def problem(spread=2.0, forbidden=0.0, seed=0) -> OrderProblem:
    """Random scores on four nodes, some of them forbidden, under random labels; double precision."""
    rng = np.random.default_rng(seed)
    scores = spread * rng.normal(size=(4, 8))
    scores[:, 1:][rng.random((4, 7)) < forbidden] = -np.inf
    table = dense_candidates(scores)
    return OrderProblem(
        table, jax.tree.map(jnp.asarray, order_weights(table)), rng.permutation(4).astype(np.int32)
    )


def log_scores(problem: OrderProblem) -> np.ndarray:
    """Of all 543 DAGs."""
    nodes = np.arange(4)
    return problem.table.scores[nodes, compress(parent_masks(DAGS), nodes)].sum(axis=1)


def canonical_orders(problem: OrderProblem) -> np.ndarray:
    """Of all 543 DAGs, under the labels of the problem, int [543, d]."""
    by_label = np.argsort(problem.labels)
    return by_label[canonical_order(DAGS[:, by_label][:, :, by_label])]


def order_posterior(problem: OrderProblem) -> np.ndarray:
    """Probability of each of the 24 orders."""
    scores, orders = log_scores(problem), canonical_orders(problem)
    total = logsumexp(scores)
    return np.array([np.exp(scores[(orders == order).all(axis=1)] - total).sum() for order in ORDERS])
