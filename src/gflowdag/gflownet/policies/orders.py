"""The policies of the order GFlowNet: the shaped log-weights alone, and corrected by a network."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.spaces import NEVER, Decision
from gflowdag.gflownet.spaces.orders import NUM_FEATURES, Observation


def shaped_policy(observation: Observation) -> Decision:
    """The policy that a perfect potential would make exact: what a network starts from."""
    nothing = jnp.zeros_like(observation.shaped)
    return _decision(observation, nothing, jnp.zeros((), jnp.float32))


class OrderPolicy(eqx.Module):
    """Residual perceptron on the flattened features: corrections of the shaped log-weights, and a log flow.

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

    def __call__(self, observation: Observation) -> Decision:
        hidden = jax.nn.gelu(self.first(observation.features.reshape(-1)))
        for block in self.blocks:
            hidden = hidden + jax.nn.gelu(block(hidden))
        out = self.head(hidden)
        return _decision(observation, out[:-1], out[-1])


def _decision(observation: Observation, correction: Array, log_flow: Array) -> Decision:
    """Corrected log-probabilities, uniform over the rest in a dead end; the way back is the only one."""
    shaped, placed = observation.shaped, observation.placed
    legal = jnp.isfinite(shaped)
    logits = jnp.where(legal, shaped + correction, -jnp.inf)
    logits = jnp.where(legal.any(), logits, jnp.where(placed, -jnp.inf, 0.0))
    log_backward = jnp.where(jnp.arange(len(shaped)) == observation.latest, 0.0, jnp.float32(NEVER))
    return Decision(jax.nn.log_softmax(logits), log_backward, log_flow)
