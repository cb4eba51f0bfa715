"""Learning along canonical orders: likelihood of given graphs, and trajectory balance on these and own ones.

Each DAG has one path, so that the likelihood of the policy is exact, and so are the importance weights of all
graphs, given ones and own ones.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from optax.losses import huber_loss

from gflowdag.gflownet.learners.edges import BLOCK
from gflowdag.gflownet.policies.canonical import CanonicalPolicy, summed_scores
from gflowdag.gflownet.retrace import walk_back
from gflowdag.gflownet.rollout import join, rollout, sharpened, steps_of
from gflowdag.gflownet.spaces import Policy
from gflowdag.gflownet.spaces.canonical import CanonicalSpace, times
from gflowdag.gflownet.trainer import Moment
from gflowdag.runtime.devices import split

_STEEPEST = 10.0  # nats of imbalance from which on a graph pulls no harder


class CanonicalLearner(eqx.Module):
    """Learning from the graphs of another sampler and from the policy's own; see `trainer.Learner`."""

    space: CanonicalSpace
    graphs: Array  # bool [n, d, d], samples of another method
    log_scores: Array  # float64 [n], relative to the empty graph
    batch_size: int = eqx.field(static=True, default=1024)  # states in a training step
    balanced: int = eqx.field(static=True, default=0)  # trajectories of each kind in a training step
    width: int = eqx.field(static=True, default=256)
    depth: int = eqx.field(static=True, default=3)

    def init(self, key: Array) -> tuple[CanonicalPolicy, tuple[()]]:
        """A fresh network; no memory."""
        return CanonicalPolicy(self.space.num_variables, width=self.width, depth=self.depth, key=key), ()

    def loss(
        self, params: CanonicalPolicy, target: CanonicalPolicy, memory: tuple[()], key: Array, moment: Moment
    ):
        """Negative log likelihood of the next steps, in nats per step, and the imbalance of trajectories.

        `above` is the mean log importance weight of the given graphs: if they come from the posterior, the
        log evidence plus the Kullback–Leibler divergence of the policy from the posterior. `below` is that of
        the policy's own graphs: the log evidence less the divergence of the posterior from the policy.
        """
        del target, moment
        row_key, time_key, balance_key = jax.random.split(key, 3)
        rows = jax.random.randint(row_key, (self.batch_size,), 0, len(self.graphs), jnp.int32)
        keys = split(jax.random.split(time_key, self.batch_size))
        surprise, added = jax.vmap(lambda key, graph: step_surprise(self.space, params, key, graph))(
            keys, split(self.graphs[rows])
        )
        steps = added + 1.0
        loss = (steps * surprise).mean() / steps.mean()
        metrics = {"above": (self.log_scores[rows] + steps * surprise).mean()}
        if self.balanced:
            log_ratios = self._log_ratios(params, balance_key)
            imbalance = log_ratios - jax.lax.stop_gradient(jnp.median(log_ratios))
            loss = loss + huber_loss(imbalance, delta=_STEEPEST).mean().astype(jnp.float32) / steps.mean()
            metrics["below"] = log_ratios[: self.balanced].mean()
        return loss, (memory, metrics)

    def _log_ratios(self, params: CanonicalPolicy, key: Array) -> Array:
        """Log importance weights of the policy's own graphs and of as many given ones, float64 [2 n]."""
        own_key, row_key = jax.random.split(key)
        own = rollout(self.space, params, sharpened(own_key, jnp.ones(self.balanced, jnp.float32)), self.balanced)
        rows = jax.random.randint(row_key, (self.balanced,), 0, len(self.graphs), jnp.int32)
        theirs = walk_back(self.space, summed_scores, row_key, self.graphs[rows])
        paths = jax.lax.stop_gradient(join(own, theirs))
        return paths.log_final - steps_of(params, paths, block=BLOCK).log_forward.sum(axis=0)


def step_surprise(space: CanonicalSpace, policy: Policy, key: Array, graph: Array) -> tuple[Array, Array]:
    """Negative log probability of the next step from a random state on the path to `graph`.

    Returns:
        The surprise, float32 []; and the number of edges of the graph, float32 [].
    """
    end = space.state_of(graph)
    when = times(end.adjacency)
    size = space.size(end)
    time = jax.random.randint(key, (), 0, size + 1, jnp.int32)
    state = end._replace(adjacency=end.adjacency & (when < time))
    action = jnp.where(time < size, jnp.argmax(when.reshape(-1) == time), space.stop)
    return -policy(space.observe(state)).log_forward[action], size.astype(jnp.float32)
