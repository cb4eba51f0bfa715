"""The policy that builds DAGs along their canonical order: sums of scores, corrected by a network."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.spaces import NEVER, Decision
from gflowdag.gflownet.spaces.canonical import NUM_FEATURES, Observation

_RANK = 4  # of the corrections to pairs of a node and its first parent


class CanonicalPolicy(eqx.Module):
    """A residual network on what is known of the nodes, which corrects the log-weights of all actions.

    Nodes are told apart by their place alone, so it learns what each of them means for those to come. The
    corrections start near zero: training starts as if the labels were a causal order.
    """

    first: eqx.nn.Linear
    blocks: list[eqx.nn.Linear]
    head: eqx.nn.Linear

    def __init__(self, num_variables: int, *, width: int = 256, depth: int = 3, key: Array):
        keys = jax.random.split(key, depth + 1)
        linear = lambda a, b, key: eqx.nn.Linear(a, b, dtype=jnp.float32, key=key)  # noqa: E731
        self.first = linear(NUM_FEATURES * num_variables, width, keys[0])
        self.blocks = [linear(width, width, key) for key in keys[1:depth]]
        head = linear(width, (3 + 2 * _RANK) * num_variables + 1, keys[depth])
        self.head = jax.tree.map(lambda leaf: 0.01 * leaf, head)

    def __call__(self, observation: Observation) -> Decision:
        d = len(observation.further)
        hidden = jax.nn.gelu(self.first(observation.nodes.reshape(-1)))
        for block in self.blocks:
            hidden = hidden + jax.nn.gelu(block(hidden))
        out = self.head(hidden)
        begun, as_first, further, *factors = out[:-1].reshape(-1, d)
        left, right = jnp.stack(factors[:_RANK]), jnp.stack(factors[_RANK:])
        return decision(observation, further, as_first[:, None] + begun + left.T @ right, out[-1])


def summed_scores(observation: Observation) -> Decision:
    """The policy without a network: what training starts from."""
    nothing = jnp.zeros_like(observation.starts)
    return decision(observation, nothing[0], nothing, nothing[0, 0])


def decision(observation: Observation, further: Array, starts: Array, stop: Array) -> Decision:
    """Log-weights with corrections, [d], [d, d] and [], as a decision; the way back is the only one.

    First whether the present node gets a further parent and which, else which node is next, or to stop.
    """
    further = _log_shares(observation.further, further, jnp.zeros_like(stop))
    starts = _log_shares(observation.starts.reshape(-1), starts.reshape(-1), stop)
    starts = jnp.maximum(starts + further[-1], NEVER)
    d = len(observation.further)
    column = jnp.arange(d) == observation.present
    edges = jnp.where(column, further[:-1, None], starts[:-1].reshape(d, d))
    log_forward = jnp.append(edges.reshape(-1), starts[-1])
    log_backward = jnp.where(jnp.arange(len(log_forward)) == observation.latest, 0.0, jnp.float32(NEVER))
    return Decision(log_forward, log_backward, -starts[-1])


def _log_shares(log_weights: Array, corrections: Array, last: Array) -> Array:
    """Log-probabilities of some actions, and of none of them, whose logit is `last`."""
    logits = jnp.where(jnp.isfinite(log_weights), log_weights + corrections, NEVER)
    return jnp.maximum(jax.nn.log_softmax(jnp.append(logits, last)), NEVER)
