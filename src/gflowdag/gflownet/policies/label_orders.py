"""The policy over canonical orders that needs no table: which nodes are ready, and the smallest of them.

In a canonical order the next node is the smallest whose parents are all placed. The nodes are therefore
asked one after the other, by label,

    P(j is next) ∝ r_j Π_{i < j not placed} (1 − r_i),

with `r_j` the probability that node `j` is ready. Its log-odds begin with those that independent edges would
have (`spaces.label_orders`); a network corrects them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.policies.residual import ResidualPerceptron
from gflowdag.gflownet.spaces import NEVER, Decision
from gflowdag.gflownet.spaces.label_orders import LabelOrderView

_FEATURES = 3
_BOUND = 20.0  # nats, of a feature


class ReadyPolicy(ResidualPerceptron):
    """Residual perceptron on the flattened features: corrections of the log-odds, which start at zero."""

    def __init__(self, num_variables: int, width: int, depth: int, key: Array):
        size = _FEATURES * num_variables
        super().__init__(size, width + size, num_variables, width, depth, key)

    def __call__(self, observation: LabelOrderView) -> Decision:
        placed = observation.placed
        values = [observation.log_odds, observation.log_covered]
        columns = [jnp.where(placed, 0.0, jnp.clip(each, -_BOUND, _BOUND) / 5) for each in values]
        features = jnp.stack([placed.astype(jnp.float32), *columns]).reshape(-1)
        correction = self.head(jnp.concatenate([self.hidden(features), features]))
        logits = first_ready(observation.log_odds + correction, observation.legal)
        log_backward = jnp.where(jnp.arange(len(placed)) == observation.latest, 0.0, jnp.float32(NEVER))
        return Decision(jax.nn.log_softmax(logits), log_backward, jnp.zeros((), jnp.float32))


def first_ready(log_odds: Array, legal: Array) -> Array:
    """Log-probability, up to a constant, of each node to be the first ready one; −inf where illegal, [d]."""
    passed = jnp.where(legal, jax.nn.log_sigmoid(-log_odds), 0.0)
    before = jnp.cumsum(passed) - passed
    return jnp.where(legal, jax.nn.log_sigmoid(log_odds) + before, -jnp.inf)
