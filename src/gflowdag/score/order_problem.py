"""A posterior over DAGs as one over canonical orders: everything that a method on orders consumes."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from gflowdag.progress import Progress, silent
from gflowdag.score.base import Score
from gflowdag.score.candidates import CandidateTable, candidate_table, dense_candidates
from gflowdag.score.order_labels import labels_along, likely_order
from gflowdag.score.order_windows import edge_probabilities
from gflowdag.score.orders import OrderWeights, order_weights

MAX_DENSE = 20  # variables, beyond which the weights of a dense table outgrow the memory
DEFAULT_CANDIDATES = 14
_CHUNK = 2**19  # numbers [orders × d × d] that edge probabilities are computed for at a time


class OrderProblem(NamedTuple):
    """Scores, their sums, and the labels that say which orders are canonical."""

    table: CandidateTable
    weights: OrderWeights  # JAX arrays
    labels: NDArray[np.int32]  # [d], a permutation

    @property
    def is_dense(self) -> bool:
        """Whether every other node is a candidate parent, so that nothing is left out."""
        return self.table.num_candidates == self.table.num_variables - 1


def order_problem(
    score: Score, *, num_candidates: int | None = None, seed: int = 0, progress: Progress = silent
) -> OrderProblem:
    """Prepare a score for methods on orders; in double precision.

    Args:
        score: any score.
        num_candidates: possible parents of each node; by default all while that fits (d ≤ 20), else 14.
        seed: for the search of the labels.
        progress: told about the sums done.
    """
    d = score.num_variables
    if num_candidates is None:
        num_candidates = d - 1 if d <= MAX_DENSE else DEFAULT_CANDIDATES
    if num_candidates >= d - 1:
        table = dense_candidates(score.dense_table())
    else:
        table = candidate_table(score, num_candidates)
    weights = jax.tree.map(jnp.asarray, order_weights(table, progress))
    order = likely_order(table, np.random.default_rng(seed))
    return OrderProblem(table, weights, labels_along(order))


def edge_probabilities_of_orders(problem: OrderProblem, orders: NDArray) -> NDArray[np.float64]:
    """Exact edge marginals given each order of positive weight, int [n, d] -> float64 [n, d, d]."""
    edges = _edges(problem.weights, jnp.asarray(problem.labels), jnp.asarray(orders, jnp.int32))
    return np.asarray(edges)


@jax.jit
def _edges(weights: OrderWeights, labels: jax.Array, orders: jax.Array) -> jax.Array:
    size = max(1, min(orders.shape[0], _CHUNK // orders.shape[1] ** 2))
    return jax.lax.map(lambda order: edge_probabilities(weights, order, labels), orders, batch_size=size)


def mean_edge_probabilities(
    problem: OrderProblem, orders: NDArray, importance: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted mean over orders of the exact edge marginals given each, and its standard error.

    Args:
        problem: of the orders.
        orders: int [n, d]; those of importance zero are left out.
        importance: float64 [n], normalised.

    Returns:
        float64 [d, d] twice, rows are sources.
    """
    kept = importance > 0
    orders, importance = np.asarray(orders)[kept], importance[kept]
    d = orders.shape[1]
    size = max(1, min(len(orders), _CHUNK // d**2))
    padding = -len(orders) % size
    orders = np.concatenate([orders, np.broadcast_to(orders[:1], (padding, d))])
    importance = np.concatenate([importance, np.zeros(padding)])
    first, weighted, squares = map(
        np.asarray,
        _edge_sums(
            problem.weights,
            jnp.asarray(problem.labels),
            jnp.asarray(orders.reshape(-1, size, d)),
            jnp.asarray(importance.reshape(-1, size)),
        ),
    )
    variance = squares - 2 * first * weighted + first**2 * np.sum(importance**2)
    return first, np.sqrt(np.maximum(variance, 0.0))


@jax.jit
def _edge_sums(weights: OrderWeights, labels: jax.Array, orders: jax.Array, importance: jax.Array):
    """Σ w p, Σ w² p and Σ w² p² over all orders [chunks, size, d]."""
    marginals = jax.vmap(functools.partial(edge_probabilities, weights, labels=labels))

    def add(sums, chunk):
        orders, w = chunk
        p = marginals(orders)
        new = [jnp.tensordot(w, p, 1), jnp.tensordot(w**2, p, 1), jnp.tensordot(w**2, p**2, 1)]
        return [a + b for a, b in zip(sums, new, strict=True)], None

    d = labels.shape[0]
    return jax.lax.scan(add, [jnp.zeros((d, d), jnp.float64)] * 3, (orders, importance))[0]
