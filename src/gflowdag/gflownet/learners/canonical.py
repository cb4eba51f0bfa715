"""Maximum likelihood along canonical orders, on the graphs of another sampler.

Each DAG has one path, so that the likelihood of the policy is exact, and every state on the path has one
right next step. A batch is made of single states: no trajectory has to be walked.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.policies.canonical import CanonicalPolicy
from gflowdag.gflownet.spaces import Policy
from gflowdag.gflownet.spaces.canonical import CanonicalSpace, times
from gflowdag.gflownet.trainer import Moment
from gflowdag.runtime.devices import split


class CanonicalLearner(eqx.Module):
    """Learning from the graphs of another sampler; see `trainer.Learner`."""

    space: CanonicalSpace
    graphs: Array  # bool [n, d, d], samples of another method
    log_scores: Array  # float64 [n]
    batch_size: int = eqx.field(static=True, default=1024)  # states in a training step
    width: int = eqx.field(static=True, default=256)
    depth: int = eqx.field(static=True, default=3)

    def init(self, key: Array) -> tuple[CanonicalPolicy, tuple[()]]:
        """A fresh policy; no memory."""
        return CanonicalPolicy(self.space.num_variables, width=self.width, depth=self.depth, key=key), ()

    def loss(
        self, params: CanonicalPolicy, target: CanonicalPolicy, memory: tuple[()], key: Array, moment: Moment
    ):
        """Negative log likelihood of the next steps, in nats per step.

        `above` is the mean log importance weight of the graphs: if they come from the posterior, the log
        evidence plus the Kullback–Leibler divergence of the policy from the posterior.
        """
        del target, moment
        row_key, time_key = jax.random.split(key)
        rows = jax.random.randint(row_key, (self.batch_size,), 0, len(self.graphs), jnp.int32)
        keys = split(jax.random.split(time_key, self.batch_size))
        surprise, added = jax.vmap(lambda key, graph: step_surprise(self.space, params, key, graph))(
            keys, split(self.graphs[rows])
        )
        steps = added + 1.0
        above = (self.log_scores[rows] + steps * surprise).mean()
        return (steps * surprise).mean() / steps.mean(), (memory, {"above": above})


def step_surprise(space: CanonicalSpace, policy: Policy, key: Array, graph: Array) -> tuple[Array, Array]:
    """Negative log probability of the next step from a random state on the path to `graph`.

    Returns:
        The surprise, float32 []; and the number of edges of the graph, float32 [].
    """
    end = space.state_of(graph)
    when, size = times(end.adjacency), space.size(end)
    time = jax.random.randint(key, (), 0, size + 1, jnp.int32)
    state = end._replace(adjacency=end.adjacency & (when < time))
    action = jnp.where(time < size, jnp.argmax(when.reshape(-1) == time), space.stop)
    return -policy(space.observe(state)).log_forward[action], size.astype(jnp.float32)
