"""Edge-wise policies: the two heads that all of them share, and the default network on pair features."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.spaces import NEVER, Decision
from gflowdag.gflownet.spaces.edges import Observation, edge_decision, uniform_removals


def hierarchical(stop_logit: Array, edge_logits: Array, legal: Array) -> tuple[Array, Array]:
    """Log probabilities of stopping, [], and of each edge, [d, d]: first whether to stop, then where to go.

    Stopping is forced where nothing is legal.
    """
    log_stop = jnp.where(legal.any(), jax.nn.log_sigmoid(stop_logit), 0.0)
    log_edges = jax.nn.log_sigmoid(-stop_logit) + masked_log_softmax(edge_logits, legal)
    return log_stop, jnp.where(legal, log_edges, NEVER)


def masked_log_softmax(logits: Array, mask: Array) -> Array:
    """Log probabilities over the entries of a matrix where `mask`; `NEVER` elsewhere."""
    masked = jnp.where(mask, logits, NEVER)
    return jnp.where(mask, jax.nn.log_softmax(masked.reshape(-1)).reshape(mask.shape), NEVER)


def independent_pairs(observation: Observation) -> tuple[Array, Array]:
    """The logits of the policy that would be right if pairs of nodes did not interact.

    Each pair then independently gets one of its two edges or none, `P(i → j) ∝ exp Δ(i → j)`. Under the
    uniform backward policy an edge is chosen in proportion to its probability to be there in the end, and
    the probability of stopping is that of no further edge.

    Returns:
        Stop logit [] and edge logits [d, d].
    """
    gain = jnp.where(observation.legal, observation.deltas, NEVER)
    log_total = jax.nn.logsumexp(jnp.stack([jnp.zeros_like(gain), gain, gain.T]), axis=0)
    return -0.5 * log_total.sum(), observation.deltas - log_total


class PairPolicy(eqx.Module):
    """A residual network on the flattened matrices of the state, added to `independent_pairs`.

    The deltas of all edges are among the inputs (on a logarithmic scale, so that 10² and 10⁴ rows look
    alike), and the last layer starts near zero, so that training starts from independent pairs.

    The backward policy is learnt as well, unless `backward` is `"uniform"`: of all the orders in which a
    graph can be built it then keeps those that the forward policy finds easy.
    """

    first: eqx.nn.Linear
    hidden: list[eqx.nn.Linear]
    last: eqx.nn.Linear
    backward: str = eqx.field(static=True)

    def __init__(
        self, num_variables: int, *, width: int = 256, depth: int = 3, backward: str = "learnt", key: Array
    ):
        keys = jax.random.split(key, depth + 1)
        size = num_variables**2
        self.first = eqx.nn.Linear(4 * size + 2, width, key=keys[0], dtype=jnp.float32)
        self.hidden = [eqx.nn.Linear(width, width, key=k, dtype=jnp.float32) for k in keys[1:-1]]
        last = eqx.nn.Linear(width, 2 * size + 1, key=keys[-1], dtype=jnp.float32)
        self.last = jax.tree.map(lambda leaf: 0.01 * leaf, last)
        self.backward = backward

    def __call__(self, observation: Observation) -> Decision:
        d, removable = observation.legal.shape[0], observation.removable
        matrices = [
            observation.adjacency,
            observation.ancestors,
            observation.legal,
            jnp.arcsinh(observation.deltas) / 3,
        ]
        scalars = [observation.adjacency.sum() / d, jnp.log(observation.exponent + 0.01)]
        features = [matrix.reshape(-1).astype(jnp.float32) for matrix in matrices]
        x = jnp.concatenate([*features, jnp.stack(scalars).astype(jnp.float32)])
        x = jax.nn.gelu(self.first(x))
        for layer in self.hidden:
            x = x + jax.nn.gelu(layer(x))
        stop, edges, removals = jnp.split(self.last(x), [1, 1 + d * d])
        stop_logit, edge_logits = independent_pairs(observation)
        forward = hierarchical(stop_logit + stop[0], edge_logits + edges.reshape(d, d), observation.legal)
        if self.backward == "uniform":
            return edge_decision(*forward, uniform_removals(removable))
        return edge_decision(*forward, masked_log_softmax(removals.reshape(d, d), removable))


def default_width(num_variables: int) -> int:
    """Hidden width: 128 for a handful of variables, 256 up to about a dozen, then 512."""
    return 128 if num_variables <= 6 else 256 if num_variables <= 12 else 512
