"""The policies of the order GFlowNet: the shaped log-weights alone, and corrected by a network."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.policies.residual import ResidualPerceptron
from gflowdag.gflownet.spaces import NEVER, Decision
from gflowdag.gflownet.spaces.orders import NUM_FEATURES, Observation


def shaped_policy(observation: Observation) -> Decision:
    """The policy that a perfect potential would make exact: what a network starts from."""
    nothing = jnp.zeros_like(observation.shaped)
    return _decision(observation, nothing, jnp.zeros((), jnp.float32))


class OrderPolicy(ResidualPerceptron):
    """Residual perceptron on the flattened features: corrections of the shaped log-weights, and a log flow.

    Its head starts at zero, so that training starts at the shaped policy.
    """

    def __init__(self, num_variables: int, width: int, depth: int, key: Array):
        super().__init__(NUM_FEATURES * num_variables, width, num_variables + 1, width, depth, key)

    def __call__(self, observation: Observation) -> Decision:
        out = self.head(self.hidden(observation.features.reshape(-1)))
        return _decision(observation, out[:-1], out[-1])


def _decision(observation: Observation, correction: Array, log_flow: Array) -> Decision:
    """Corrected log-probabilities, uniform over the rest in a dead end; the way back is the only one."""
    shaped, placed = observation.shaped, observation.placed
    legal = jnp.isfinite(shaped)
    logits = jnp.where(legal, shaped + correction, -jnp.inf)
    logits = jnp.where(legal.any(), logits, jnp.where(placed, -jnp.inf, 0.0))
    log_backward = jnp.where(jnp.arange(len(shaped)) == observation.latest, 0.0, jnp.float32(NEVER))
    return Decision(jax.nn.log_softmax(logits), log_backward, log_flow)
