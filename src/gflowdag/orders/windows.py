"""Finished canonical orders: which parent sets they leave to each node, and what these weigh.

An order is the canonical one of a DAG iff every node has a parent among the nodes placed since the last
placed node with a larger label (that node included): its *window*. Where no larger label was placed there is
no condition. `A_j(v, U)` is the total of the parent sets of `j` whose latest member is `v`, so the weight of
`j` is a sum over the members of its window: the same numbers that `orders.place` finds step by step, all at
once and without subtraction.

Use in double precision.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.graph.bits import compress
from gflowdag.orders.weights import OrderWeights


class Windows(NamedTuple):
    """What a finished order leaves to each node; time is the position in the order."""

    placed: (
        Array  # int32 [d, d], local index of the candidates of node j (row) placed up to time t, inclusive
    )
    members: Array  # bool [d, d], whether the node placed at time t (column) is in the window of node j (row)
    free: Array  # bool [d], no condition: no larger label was placed before, also the empty set is allowed


def windows(weights: OrderWeights, order: Array, labels: Array) -> Windows:
    """The windows of all nodes of a finished order, int [d]."""
    time = jnp.arange(order.shape[0])
    earlier = time < _times(order)[:, None]
    larger = earlier & (labels[order] > labels[:, None])
    opening = jnp.max(jnp.where(larger, time, -1), axis=1)
    placed = jnp.cumsum(_bits(weights)[:, order], axis=1, dtype=jnp.int32)
    return Windows(placed, earlier & (time >= opening[:, None]), opening < 0)


def latest_parent_log_weights(weights: OrderWeights, order: Array, window: Windows) -> Array:
    """Log total of the parent sets of node j (row) whose latest member is the node placed at t − 1 (column).

    Column 0 is the empty set; float64 [d, 1 + d], −inf for what the order does not allow.
    """
    latest = containing(weights, jnp.arange(order.shape[0])[:, None], order, window.placed)
    empty = jnp.where(window.free, weights.empty, -jnp.inf)
    return jnp.column_stack([empty, jnp.where(window.members, latest, -jnp.inf)])


def node_log_weights(weights: OrderWeights, order: Array, labels: Array) -> Array:
    """Log-weight of each node of a finished order, int [d] -> float64 [d]; they sum to that of the order."""
    window = windows(weights, order, labels)
    return jax.nn.logsumexp(latest_parent_log_weights(weights, order, window), axis=1)


def containing(weights: OrderWeights, node: Array, parent: Array, placed: Array) -> Array:
    """Log total of the parent sets of `node` that contain `parent` and else only members of `placed`.

    Args:
        weights: of the problem.
        node: int, any shape; the other arguments broadcast.
        parent: int.
        placed: local index of some candidates of `node`; the bit of `parent` does not matter.
    """
    num_candidates = weights.table.shape[1]
    position = weights.position[node, parent]
    bit = jnp.minimum(position, num_candidates - 1)
    listed = weights.table[node, bit, compress(placed, bit)]
    return jnp.where(position < num_candidates, listed, weights.singles[node, parent])


def _times(order: Array) -> Array:
    """When each node was placed, int [d]: the inverse permutation."""
    return jnp.zeros_like(order).at[order].set(jnp.arange(order.shape[0], dtype=order.dtype))


def _bits(weights: OrderWeights) -> Array:
    """Bit of a parent (column) in the local index of a node (row), int32 [d, d]; 0 for outsiders."""
    num_candidates = weights.table.shape[1]
    return jnp.where(weights.position < num_candidates, 1 << jnp.minimum(weights.position, 30), 0).astype(
        jnp.int32
    )
