"""The state space of canonical orders: nodes are placed one at a time, `d` steps, one path to each order."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.orders import weights as orders
from gflowdag.orders.potentials import Potential
from gflowdag.orders.weights import OrderState, OrderWeights

NUM_FEATURES = 3
_FLOOR = -20.0  # nats; below, a feature says "as good as impossible"


class PlacedNodes(NamedTuple):
    """A partially built order with what shapes and describes it."""

    order: OrderState
    potential: Any  # state of the potential
    log_totals: Array  # float64 [d], log-weights without the canonical condition
    sequence: Array  # int32 [d], the placed nodes, then zeros
    log_weight: Array  # float64 [], of the steps so far


class Observation(NamedTuple):
    """What a policy sees of a state."""

    placed: Array  # bool [d]
    latest: Array  # int32 [], the node that was placed last; -1 in the empty order
    shaped: Array  # float32 [d], log-weights less what the potential gains; −inf where not legal
    features: Array  # float32 [d, NUM_FEATURES]


class OrderSpace(NamedTuple):
    """A problem; arrays, so that it can be traced. See `spaces.StateSpace`.

    The reward of a complete order is the total score of all graphs with this canonical order.
    """

    weights: OrderWeights
    labels: Array  # int32 [d], a permutation: small labels come first in a canonical order
    potential: Potential

    @property
    def num_variables(self) -> int:
        """Number of nodes, `d`."""
        return self.labels.shape[0]

    @property
    def max_steps(self) -> int:
        """Every node is placed once."""
        return self.num_variables

    @property
    def stop(self) -> None:
        """An order ends with its last node."""

    def start(self) -> PlacedNodes:
        """The empty order."""
        order = orders.start(self.weights, self.labels)
        nothing = jnp.zeros(self.num_variables, jnp.int32), jnp.zeros((), jnp.float64)
        return PlacedNodes(order, self.potential.start(), order.log_weights, *nothing)

    def state_of(self, built: Array) -> PlacedNodes:
        """A complete order, int32 [d]."""
        return self._first(built, self.num_variables)

    def built(self, state: PlacedNodes) -> Array:
        """The order, int32 [d]."""
        return state.sequence

    def size(self, state: PlacedNodes) -> Array:
        """Number of nodes that are placed."""
        return state.order.placed.sum(dtype=jnp.int32)

    def observe(self, state: PlacedNodes) -> Observation:
        """The placed nodes, and what the others weigh."""
        shaped = self.shaped_log_weights(state)
        size = self.size(state)
        latest = jnp.where(size == 0, -1, state.sequence[size - 1])
        features = _features(shaped, state)
        return Observation(state.order.placed, latest, shaped.astype(jnp.float32), features)

    def shaped_log_weights(self, state: PlacedNodes) -> Array:
        """Log-weight of each node less what the potential gains, float64 [d]; −inf where not legal.

        Under a perfect potential these are the log-probabilities of the next node.
        """
        shaped = state.order.log_weights - self.potential.gains(state.potential)
        return jnp.where(state.order.placed | jnp.isnan(shaped), -jnp.inf, shaped)

    def legal(self, state: PlacedNodes) -> Array:
        """Nodes of positive weight; in a dead end all the rest, so that every order is completed."""
        return legal_nodes(self.shaped_log_weights(state), state.order.placed)

    def step(self, state: PlacedNodes, action: Array) -> PlacedNodes:
        """Append a node."""
        gained = orders.latest_parent(self.weights, state.order, action)
        return PlacedNodes(
            orders.place(self.weights, state.order, action),
            self.potential.place(state.potential, action),
            jnp.logaddexp(state.log_totals, gained),
            state.sequence.at[self.size(state)].set(jnp.asarray(action, jnp.int32)),
            state.log_weight + state.order.log_weights[action],
        )

    def undo(self, state: PlacedNodes, action: Array) -> PlacedNodes:
        """Take back the last node, in O(d²): the others are placed again."""
        del action
        return self._first(state.sequence, self.size(state) - 1)

    def log_reward(self, state: PlacedNodes) -> Array:
        """The log-weights of all steps so far, summed."""
        return state.log_weight

    def _first(self, sequence: Array, number: Array | int) -> PlacedNodes:
        """The first nodes of a sequence placed."""
        return jax.lax.fori_loop(
            0, number, lambda time, state: self.step(state, sequence[time]), self.start()
        )


def legal_nodes(shaped: Array, placed: Array) -> Array:
    """Where the shaped log-weights are finite, bool [..., d]; all unplaced nodes where none is."""
    legal = jnp.isfinite(shaped)
    return jnp.where(legal.any(axis=-1, keepdims=True), legal, ~placed)


def _features(shaped: Array, state: PlacedNodes) -> Array:
    """What the network sees of a state, float32 [d, NUM_FEATURES].

    For each node: whether it is placed, its log-probability under the shaped policy, and the log-probability
    that its parent set, drawn from the placed nodes without the canonical condition, fulfils it.
    """
    order = state.order
    unplaced = ~order.placed
    log_policy = jax.nn.log_softmax(shaped)
    fulfilled = order.log_weights - state.log_totals
    columns = [_feature(log_policy, unplaced), _feature(fulfilled, unplaced)]
    return jnp.stack([order.placed.astype(jnp.float32), *columns], axis=-1)


def _feature(value: Array, unplaced: Array) -> Array:
    bounded = jnp.where(unplaced & (value > _FLOOR), value, jnp.where(unplaced, _FLOOR, 0.0))
    return (bounded / 5).astype(jnp.float32)
