"""Graphs drawn exactly from all those that share a canonical order."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.score.candidates import CandidateTable
from gflowdag.score.order_windows import latest_parent_log_weights, windows
from gflowdag.score.orders import OrderWeights
from gflowdag.score.threads import map_threads

_CHUNK = 64  # graphs for one thread at a time


def draw_graphs(
    weights: OrderWeights,
    table: CandidateTable,
    orders: NDArray,
    labels: NDArray,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """One graph for each order, ∝ its score among the graphs whose canonical order that is.

    For each node first the latest parent is drawn, from sums that the weights hold, then the others by
    walking through the subsets of what was placed before it.

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
    log_total = np.take_along_axis(terms, latest[..., None], axis=2)[..., 0]
    uniform = rng.random(latest.shape)
    graphs = np.zeros((*orders.shape, orders.shape[1]), bool)
    position = np.asarray(weights.position)

    def draw(start: int) -> None:
        part = slice(start, start + _CHUNK)
        given = orders[part], latest[part] - 1, log_total[part], placed[part], uniform[part]
        _draw_parents(table.scores, table.candidates, position, *given, graphs[part])

    map_threads(draw, range(0, len(orders), _CHUNK))
    return graphs


@jax.jit
def _latest_parents(weights: OrderWeights, orders: jax.Array, labels: jax.Array):
    """Log-weights of the latest parents [n, d, 1 + d] and the placed candidates at each time [n, d, d]."""

    def one(given: tuple[jax.Array, jax.Array]):
        order, labels = given
        window = windows(weights, order, labels)
        return latest_parent_log_weights(weights, order, window), window.placed

    return jax.lax.map(one, (orders, labels), batch_size=256)


@njit(cache=True, nogil=True)
def _draw_parents(scores, candidates, position, orders, latest, log_total, placed, uniform, graphs):
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
            subset = subset_at(scores[node], 1 << bit, others, log_total[n, node], uniform[n, node])
            for k in range(num_candidates):
                if subset >> k & 1:
                    graphs[n, candidates[node, k], node] = True


@njit(cache=True, nogil=True)
def subset_at(scores, parent, others, log_total, uniform):
    """The subset of `others` at which the running share of `log_total` passes `uniform`."""
    share, chosen, subset = 0.0, 0, others
    while True:
        score = scores[subset | parent]
        if score > -np.inf:
            share += np.exp(score - log_total)
            chosen = subset
            if share >= uniform:
                return chosen
        if subset == 0:
            return chosen  # rounding: the last set of positive weight
        subset = (subset - 1) & others
