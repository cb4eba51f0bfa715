"""The `fast` learner: trajectories of the present policy, and some to graphs of another sampler.

The reward is tempered up to the posterior. A policy that learns from its own trajectories alone keeps to the
first mode that it finds, and its weights do not show it. There may be *training graphs* of another sampler:
some trajectories of each batch are walked back from them. A balance holds for all trajectories, wherever they
come from, so these graphs need not follow the posterior, and what is learnt does not depend on them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.objectives import balance_loss, evidence_estimates, final_estimates
from gflowdag.gflownet.policies.pairs import PairPolicy
from gflowdag.gflownet.retrace import walk_back
from gflowdag.gflownet.rollout import Trajectories, join, rollout, sharpened, steps_of
from gflowdag.gflownet.spaces.edges import EdgeSpace, tempered
from gflowdag.gflownet.trainer import Moment

BLOCK = 8  # about as many time steps have their gradient computed together; unreached blocks are skipped


class Tempering(NamedTuple):
    """Rule by which the exponent of the reward rises to 1.

    It starts where the best first edge gains `first_gain` nats in score. It rises while the log weights of a
    batch spread less than `spread` nats and falls otherwise, so that the policy always has a target that it
    nearly reaches: neighbouring graphs may differ by a thousand nats. See `spaces.edges.tempered`.
    """

    first_gain: float = 3.0
    spread: float = 1.5
    rate: float = 0.01  # relative change per iteration

    def start(self, space: EdgeSpace) -> Array:
        """The first exponent, float32 []."""
        gains = space.observe(space.start()).deltas
        return jnp.minimum(self.first_gain / jnp.maximum(gains.max(), self.first_gain), 1.0)

    def update(self, exponent: Array, log_weights: Array) -> Array:
        """The exponent for the next iteration, float32 []."""
        rises = spread(log_weights) < self.spread
        factor = jnp.where(rises, 1.0 + self.rate, 1.0 - 0.25 * self.rate)
        return jnp.clip(exponent * factor, 1e-4, 1.0).astype(jnp.float32)


def spread(log_weights: Array) -> Array:
    """Half the distance of the 16 % and 84 % quantiles: a standard deviation that outliers do not move."""
    low, high = jnp.quantile(log_weights, jnp.array([0.16, 0.84], jnp.float32))
    return 0.5 * (high - low)


class EdgeLearner(eqx.Module):
    """Learning of the edge-wise GFlowNet by a balance of trajectories; see `trainer.Learner`."""

    space: EdgeSpace
    training_graphs: Array | None  # bool [m, d, d], ends of `retraced_fraction` of the trajectories
    batch_size: int = eqx.field(static=True)
    objective: str = eqx.field(static=True)
    exploration: float = eqx.field(static=True)
    retraced_fraction: float = eqx.field(static=True)
    width: int = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    backward: str = eqx.field(static=True)
    tempering: Tempering = eqx.field(static=True)

    def __init__(
        self,
        space: EdgeSpace,
        *,
        training_graphs: Array | None = None,
        batch_size: int = 128,
        objective: str = "trajectory",
        exploration: float = 0.25,
        retraced_fraction: float = 0.125,
        width: int = 256,
        depth: int = 3,
        backward: str = "learnt",
        tempering: Tempering = Tempering(),  # noqa: B008 (immutable)
    ):
        self.space, self.training_graphs = space, training_graphs
        self.batch_size, self.objective = batch_size, objective
        self.exploration, self.retraced_fraction = exploration, retraced_fraction
        self.width, self.depth = width, depth
        self.backward, self.tempering = backward, tempering

    def init(self, key: Array) -> tuple[PairPolicy, Array]:
        """A fresh policy; the memory is the exponent of the reward."""
        d, backward = self.space.num_variables, self.backward
        policy = PairPolicy(d, width=self.width, depth=self.depth, backward=backward, key=key)
        return policy, self.tempering.start(self.space)

    def loss(self, params: PairPolicy, target: PairPolicy, memory: Array, key: Array, moment: Moment):
        """Imbalance of fresh trajectories."""
        del target, moment
        retraced = (
            0 if self.training_graphs is None else max(int(self.retraced_fraction * self.batch_size), 1)
        )
        retraced = min(retraced, self.batch_size - 1)
        own = self.batch_size - retraced
        explorers = int(self.exploration * own)
        sharpness = jnp.linspace(0.5, 1.0, explorers, dtype=jnp.float32)
        sharpness = jnp.append(sharpness, jnp.ones(own - explorers, jnp.float32))
        space = replace(self.space, exponent=memory)
        trajectories = rollout(space, params, sharpened(key, sharpness), own)
        if retraced:
            fresh = jax.random.fold_in(key, space.max_steps)  # the rollout has used the numbers below
            trajectories = join(trajectories, self._retraced(space, params, fresh, retraced))
        trajectories = jax.lax.stop_gradient(trajectories)
        stopped = trajectories.last
        log_forward, log_backward, log_flow = steps_of(params, trajectories, block=BLOCK)
        log_reward = tempered(
            space.num_variables, trajectories.log_reward, jnp.arange(space.max_steps)[:, None], memory
        ).astype(jnp.float32)
        estimates = evidence_estimates(
            log_reward + log_flow, jnp.where(stopped, 0.0, log_forward), jax.lax.stop_gradient(log_backward)
        )
        loss = balance_loss(self.objective, estimates, trajectories.active, stopped)
        # The backward policy learns which edge came last in the policy's own trajectories: a balance leaves
        # it free to expect orders that the forward policy never takes. Only the gradient of this is added.
        likelihood = log_backward[:, explorers:own].sum() / own
        loss = loss - (likelihood - jax.lax.stop_gradient(likelihood))

        log_weights = final_estimates(estimates, stopped)[explorers:own]
        total, squares = jax.nn.logsumexp(log_weights), jax.nn.logsumexp(2 * log_weights)
        ess = jnp.exp(2 * total - squares) / len(log_weights)
        edges = trajectories.active[:, :own].sum() / own - 1.0
        metrics = {"exponent": memory, "ess": ess, "spread": spread(log_weights), "edges": edges}
        return loss, (self.tempering.update(memory, log_weights), metrics)

    def _retraced(self, space: EdgeSpace, params: PairPolicy, key: Array, number: int) -> Trajectories:
        """Trajectories to some of the training graphs."""
        assert self.training_graphs is not None
        row_key, walk_key = jax.random.split(key)
        rows = jax.random.randint(row_key, (number,), 0, len(self.training_graphs), jnp.int32)
        return walk_back(space, params, walk_key, self.training_graphs[rows])
