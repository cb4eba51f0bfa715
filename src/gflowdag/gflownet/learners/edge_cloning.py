"""Maximum likelihood on given graphs, for problems on which nothing is learnt from the policy's own.

Under the uniform backward policy the edges of a graph are added in random order, so that on the way to it
every set of its edges is met: of a uniform size, and uniform among those of its size. There the next step is
any of the edges still missing, and stop once none is. No trajectory has to be walked: a batch is made of
single states (order-agnostic training, Uria et al. 2014), and the bound on the likelihood is that of whole
trajectories.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.policies.pairs import PairPolicy
from gflowdag.gflownet.spaces import Policy
from gflowdag.gflownet.spaces.edges import EdgeSpace
from gflowdag.gflownet.trainer import Moment
from gflowdag.runtime.devices import split


class EdgeCloning(eqx.Module):
    """Learning of the edge-wise GFlowNet from the graphs of another sampler; see `trainer.Learner`."""

    space: EdgeSpace
    graphs: Array  # bool [n, d, d], samples of another method
    log_scores: Array  # float64 [n]
    batch_size: int = eqx.field(static=True, default=2048)  # states in a training step
    width: int = eqx.field(static=True, default=256)
    depth: int = eqx.field(static=True, default=3)

    def init(self, key: Array) -> tuple[PairPolicy, tuple[()]]:
        """A fresh policy; no memory."""
        d = self.space.num_variables
        return PairPolicy(d, width=self.width, depth=self.depth, backward="uniform", key=key), ()

    def loss(self, params: PairPolicy, target: PairPolicy, memory: tuple[()], key: Array, moment: Moment):
        """Negative log likelihood of the next steps, in nats per step.

        `above` is the mean log importance weight of the graphs' trajectories: if the graphs come from the
        posterior, the log evidence plus the Kullback–Leibler divergence of the policy from the posterior.
        """
        del target, moment
        row_key, subset_key = jax.random.split(key)
        rows = jax.random.randint(row_key, (self.batch_size,), 0, len(self.graphs), jnp.int32)
        keys = split(jax.random.split(subset_key, self.batch_size))
        surprise, added = jax.vmap(lambda key, graph: step_surprise(self.space, params, key, graph))(
            keys, split(self.graphs[rows])
        )
        steps = added + 1.0
        log_orders = jax.lax.lgamma(steps)
        above = (self.log_scores[rows] - log_orders + steps * surprise).mean()
        return (steps * surprise).mean() / steps.mean(), (memory, {"above": above})


def step_surprise(space: EdgeSpace, policy: Policy, key: Array, graph: Array) -> tuple[Array, Array]:
    """Negative log probability of the next step from a random state on the way to `graph`.

    Returns:
        The mean over the edges that are still missing, or that of stopping, float32 []; and the number of
        edges that have to be added from the start, float32 [].
    """
    free = graph & ~space.required
    size_key, edge_key = jax.random.split(key)
    # Each edge is in the state with one common, uniform probability: the number of them is then uniform.
    share = jax.random.uniform(size_key, (), jnp.float32)
    present = jax.random.uniform(edge_key, graph.shape, jnp.float32) < share
    state = space.state_of(space.required | (free & present))
    missing = free & ~present
    log_actions = policy(space.observe(state)).log_forward
    log_edges, log_stop = log_actions[:-1].reshape(missing.shape), log_actions[-1]
    log_next = jnp.where(missing, log_edges, 0.0).sum() / jnp.maximum(missing.sum(), 1)
    surprise = -jnp.where(missing.any(), log_next, log_stop)
    return surprise, free.sum().astype(jnp.float32)
