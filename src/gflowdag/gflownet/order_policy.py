"""The network of the order GFlowNet: a correction to the shaped log-weights, and a log flow."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.order_space import SpaceState

_FLOOR = -20.0  # nats; below, a feature says "as good as impossible"
NUM_FEATURES = 3


class OrderPolicy(eqx.Module):
    """Residual perceptron on the flattened features.

    Its head starts at zero, so that training starts at the shaped policy.
    """

    first: eqx.nn.Linear
    blocks: list[eqx.nn.Linear]
    head: eqx.nn.Linear

    def __init__(self, num_variables: int, width: int, depth: int, key: Array):
        keys = jax.random.split(key, depth + 1)
        linear = lambda a, b, key: eqx.nn.Linear(a, b, dtype=jnp.float32, key=key)  # noqa: E731
        self.first = linear(NUM_FEATURES * num_variables, width, keys[0])
        self.blocks = [linear(width, width, key) for key in keys[1:depth]]
        self.head = jax.tree.map(jnp.zeros_like, linear(width, num_variables + 1, keys[depth]))

    def __call__(self, features: Array) -> tuple[Array, Array]:
        """Features float32 [d, NUM_FEATURES] to corrections of the logits [d] and of the log flow []."""
        hidden = jax.nn.gelu(self.first(features.reshape(-1)))
        for block in self.blocks:
            hidden = hidden + jax.nn.gelu(block(hidden))
        out = self.head(hidden)
        return out[:-1], out[-1]


def features(shaped: Array, state: SpaceState) -> Array:
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
