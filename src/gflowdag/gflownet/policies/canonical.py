"""The policy that builds DAGs along their canonical order: sums of scores, corrected by a network."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.spaces import NEVER, Decision
from gflowdag.gflownet.spaces.canonical import NUM_FEATURES, Observation, edge_log_weights

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
        starts = as_first[:, None] + begun + left.T @ right
        column = jnp.arange(d) == observation.present
        return decision(observation, jnp.where(column, further[:, None], starts), out[-1])


def summed_scores(observation: Observation) -> Decision:
    """The policy without a network: what training starts from."""
    return decision(observation, jnp.zeros_like(observation.starts), jnp.zeros_like(observation.stop))


def decision(observation: Observation, edges: Array, stop: Array) -> Decision:
    """Corrected log-weights, [d, d] and [], as a decision; the way back is the only one."""
    log_weights = edge_log_weights(observation)
    log_weights = jnp.where(jnp.isfinite(log_weights), log_weights + edges, NEVER).reshape(-1)
    log_forward = jax.nn.log_softmax(jnp.append(log_weights, observation.stop + stop))
    log_forward = jnp.where(jnp.append(log_weights, 0.0) > NEVER / 2, log_forward, NEVER)
    log_backward = jnp.where(jnp.arange(len(log_forward)) == observation.latest, 0.0, jnp.float32(NEVER))
    return Decision(log_forward, log_backward, -log_forward[-1])
