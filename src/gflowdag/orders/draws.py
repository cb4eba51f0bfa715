"""Graphs drawn exactly from all those that share a canonical order."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.orders.candidates import CandidateTable
from gflowdag.orders.subsets import subset_with
from gflowdag.orders.weights import OrderWeights
from gflowdag.orders.windows import latest_parent_log_weights, windows
from gflowdag.runtime.threads import map_threads

_CHUNK = 64  # graphs for one thread at a time


def draw_graphs(
    weights: OrderWeights,
    table: CandidateTable,
    orders: NDArray,
    labels: NDArray,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """One graph for each order, ∝ its score among the graphs whose canonical order that is.

    For each node first the latest parent is drawn, from sums that the weights hold, then the others from
    what was placed before it.

    Args:
        weights: the sums.
        table: the scores behind them.
        orders: int [n, d], each of positive weight.
        labels: int [d], or [n, d] with those of each order.
        rng: source of randomness.

    Returns:
        bool [n, d, d].
    """
    orders = np.asarray(orders, np.int32)
    labels = np.broadcast_to(np.asarray(labels, np.int32), orders.shape)
    terms, placed = map(np.asarray, _latest_parents(weights, jnp.asarray(orders), jnp.asarray(labels)))
    latest = np.argmax(terms + rng.gumbel(size=terms.shape), axis=2)
    uniform = rng.random(latest.shape)
    graphs = np.zeros((*orders.shape, orders.shape[1]), bool)
    position, containing = np.asarray(weights.position), np.asarray(weights.table)
    sequence = likely_last(containing)

    def draw(start: int) -> None:
        part = slice(start, start + _CHUNK)
        given = orders[part], latest[part] - 1, placed[part], uniform[part]
        _draw_parents(table.scores, containing, sequence, table.candidates, position, *given, graphs[part])

    map_threads(draw, range(0, len(orders), _CHUNK))
    return graphs


def likely_last(containing: NDArray[np.float64]) -> NDArray[np.int64]:
    """Places of the candidates of each node, the least likely parents first, [d, K].

    Args:
        containing: log-sums over the sets that contain one candidate, [d, K, 2^(K−1)].
    """
    return np.argsort(containing[:, :, -1], axis=1)


@jax.jit
def _latest_parents(weights: OrderWeights, orders: jax.Array, labels: jax.Array):
    """Log-weights of the latest parents [n, d, 1 + d] and the placed candidates at each time [n, d, d]."""

    def one(given: tuple[jax.Array, jax.Array]):
        order, labels = given
        window = windows(weights, order, labels)
        return latest_parent_log_weights(weights, order, window), window.placed

    return jax.lax.map(one, (orders, labels), batch_size=256)


@njit(cache=True, nogil=True)
def _draw_parents(
    scores, containing, sequence, candidates, position, orders, latest, placed, uniform, graphs
):
    num_candidates = candidates.shape[1]
    for n in range(orders.shape[0]):
        for node in range(orders.shape[1]):
            time = latest[n, node]
            if time < 0:
                continue  # no parents
            parent = orders[n, time]
            graphs[n, parent, node] = True
            bit = position[node, parent]
            if bit == num_candidates:
                continue  # an outsider comes alone
            others = placed[n, node, time] & ~(1 << bit)
            sums = containing[node, bit]
            subset = subset_with(scores[node], sums, sequence[node], bit, others, uniform[n, node])
            for k in range(num_candidates):
                if subset >> k & 1:
                    graphs[n, candidates[node, k], node] = True
