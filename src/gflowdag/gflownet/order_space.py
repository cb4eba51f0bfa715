"""The state space of canonical orders: nodes are placed one at a time, `d` steps, one path to each order."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from gflowdag.orders import weights as orders
from gflowdag.orders.weights import OrderState, OrderWeights


class OrderSpace(NamedTuple):
    """What defines the problem; arrays, so that it can be traced."""

    weights: OrderWeights
    labels: Array  # int32 [d], a permutation: small labels come first in a canonical order
    potential: Any  # score.potentials.Potential

    @property
    def num_variables(self) -> int:
        """Number of nodes, `d`."""
        return self.labels.shape[0]


class SpaceState(NamedTuple):
    """A partially built order with what shapes and describes it."""

    order: OrderState
    potential: Any  # state of the potential
    log_totals: Array  # float64 [d], log-weights without the canonical condition


def start(space: OrderSpace) -> SpaceState:
    """The empty order."""
    order = orders.start(space.weights, space.labels)
    return SpaceState(order, space.potential.start(), order.log_weights)


def shaped_log_weights(space: OrderSpace, state: SpaceState) -> Array:
    """Log-weight of each node less what the potential gains, float64 [d]; −inf where not legal.

    Under a perfect potential these are the log-probabilities of the next node.
    """
    shaped = state.order.log_weights - space.potential.gains(state.potential)
    return jnp.where(state.order.placed | jnp.isnan(shaped), -jnp.inf, shaped)


def step(space: OrderSpace, state: SpaceState, node: Array) -> SpaceState:
    """Append a node."""
    gained = orders.latest_parent(space.weights, state.order, node)
    return SpaceState(
        orders.place(space.weights, state.order, node),
        space.potential.place(state.potential, node),
        jnp.logaddexp(state.log_totals, gained),
    )
