"""A posterior over DAGs as one over canonical orders: everything that a method on orders consumes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from gflowdag.orders.candidates import CandidateTable, candidate_table, dense_candidates
from gflowdag.orders.edges import edge_probabilities
from gflowdag.orders.labels import labels_along, likely_order
from gflowdag.orders.weights import OrderWeights, order_weights
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.progress import Progress, silent
from gflowdag.score.base import Score

DEFAULT_CANDIDATES = 14
_CHUNK = 2**22  # numbers [orders × d × d] that edge probabilities are computed for at a time


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
    score: Score,
    *,
    num_candidates: int | None = None,
    seed: int = 0,
    deadline: Deadline = Deadline(),  # noqa: B008 (immutable)
    progress: Progress = silent,
) -> OrderProblem:
    """Prepare a score for methods on orders; in double precision.

    Args:
        score: any score.
        num_candidates: possible parents of each node; by default all while that fits (d ≤ 20), else 14.
        seed: for the search of the labels.
        deadline: by when the scores should be there: nodes may have fewer candidates then, where nobody has
            said how many.
        progress: told about the sums done.
    """
    d = score.num_variables
    if num_candidates is not None:
        deadline = Deadline()
    else:
        num_candidates = d - 1 if score.has_small_table else DEFAULT_CANDIDATES
    if num_candidates >= d - 1:
        table = dense_candidates(score.dense_table())
    else:
        table = candidate_table(score, num_candidates, deadline=deadline)
    weights = jax.tree.map(jnp.asarray, order_weights(table, progress))
    order = likely_order(table, np.random.default_rng(seed))
    return OrderProblem(table, weights, labels_along(order))


def edge_probabilities_of_orders(problem: OrderProblem, orders: NDArray) -> NDArray[np.float64]:
    """Exact edge marginals given each order of positive weight, int [n, d] -> float64 [n, d, d]."""
    return edge_probabilities(problem.weights, orders, problem.labels)


def mean_edge_probabilities(
    problem: OrderProblem, orders: NDArray, importance: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted mean over orders of the exact edge marginals given each, and its standard error.

    Args:
        problem: of the orders.
        orders: int [n, d]; those of importance zero are left out.
        importance: float64 [..., n], normalised; several at once cost hardly more than one.

    Returns:
        float64 [..., d, d] twice, rows are sources.
    """
    orders = np.asarray(orders)
    return weighted_mean_edges(
        lambda places: edge_probabilities_of_orders(problem, orders[places]), orders.shape[1], importance
    )


def weighted_mean_edges(
    edges_of: Callable[[NDArray[np.int64]], NDArray[np.float64]], d: int, importance: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`mean_edge_probabilities`, with the edge marginals of the orders at some places from `edges_of`."""
    weights = np.atleast_2d(importance)
    places = np.flatnonzero((weights > 0).any(axis=0))
    first, weighted, squares = np.zeros((3, len(weights), d * d))
    size = max(1, _CHUNK // d**2)
    for start in range(0, len(places), size):
        part = places[start : start + size]
        p = edges_of(part).reshape(-1, d * d)
        first += weights[:, part] @ p
        weighted += weights[:, part] ** 2 @ p
        squares += weights[:, part] ** 2 @ p**2
    variance = squares - 2 * first * weighted + first**2 * np.sum(weights**2, axis=1, keepdims=True)
    shape = (*np.shape(importance)[:-1], d, d)
    return first.reshape(shape), np.sqrt(np.maximum(variance, 0.0)).reshape(shape)
