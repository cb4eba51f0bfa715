"""Maximum likelihood on the graphs of another sampler, for problems where little is learnt from own ones.

The backward policy is given: all paths to a graph are equally likely, or there is only one. So a batch is
made of single states on the way to graphs, each with its right next steps, and no trajectory has to be walked
(order-agnostic training, Uria et al. 2014). What is maximised is the likelihood of whole paths, a bound on
that of the graphs, and the likelihood itself where there is only one path.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.spaces import Policy
from gflowdag.gflownet.spaces.canonical import CanonicalSpace
from gflowdag.gflownet.spaces.dags import DAGSpace
from gflowdag.gflownet.spaces.edges import EdgeSpace
from gflowdag.gflownet.trainer import Moment
from gflowdag.runtime.devices import split


class LikelihoodLearner(eqx.Module):
    """Learning from the graphs of another sampler; see `trainer.Learner`."""

    space: EdgeSpace | CanonicalSpace
    graphs: Array  # bool [n, d, d], samples of another method
    log_scores: Array  # float64 [n]
    policy: Callable[..., Policy] = eqx.field(static=True)  # makes a fresh one, told `key=`
    batch_size: int = eqx.field(static=True)  # states in a training step

    def init(self, key: Array) -> tuple[Policy, tuple[()]]:
        """A fresh policy; no memory."""
        return self.policy(key=key), ()

    def loss(self, params: Policy, target: Policy, memory: tuple[()], key: Array, moment: Moment):
        """Negative log likelihood of the next steps, in nats per step.

        `above` is the mean log importance weight of the graphs' paths: if the graphs come from the posterior,
        the log evidence plus the Kullback–Leibler divergence of the policy from the posterior.
        """
        del target, moment
        row_key, state_key = jax.random.split(key)
        rows = jax.random.randint(row_key, (self.batch_size,), 0, len(self.graphs), jnp.int32)
        keys = split(jax.random.split(state_key, self.batch_size))
        surprise, added = jax.vmap(lambda key, graph: step_surprise(self.space, params, key, graph))(
            keys, split(self.graphs[rows])
        )
        steps = added + 1.0
        above = (self.log_scores[rows] - self.space.log_paths(added) + steps * surprise).mean()
        return (steps * surprise).mean() / steps.mean(), (memory, {"above": above})


def step_surprise(space: DAGSpace, policy: Policy, key: Array, graph: Array) -> tuple[Array, Array]:
    """Negative log probability of the next step from a random state on the way to `graph`.

    Returns:
        The mean over the steps that are right there, float32 []; and the number of edges that have to be
        added from the start, float32 [].
    """
    state, right, added = space.on_the_way(key, graph)
    log_forward = policy(space.observe(state)).log_forward
    surprise = -jnp.where(right, log_forward, 0.0).sum() / right.sum()
    return surprise, added.astype(jnp.float32)
