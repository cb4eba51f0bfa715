"""The `fast` learner: trajectories of the present policy, and some to graphs that others have found.

The reward is tempered up to the posterior. A policy that learns from its own trajectories alone keeps to the
first mode that it finds, and its weights do not tell. So there may be *guides*, graphs of another sampler:
some trajectories of each batch are walked back from them. A balance holds for all trajectories, wherever they
come from, so guides need not follow the posterior, and what is learnt does not depend on them in the end.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.edge_policy import PairPolicy
from gflowdag.gflownet.edges import EdgeSpace, Observation, Policy, observe, start, tempered
from gflowdag.gflownet.objectives import balance_loss, evidence_estimates, final_estimates
from gflowdag.gflownet.retrace import walk_back
from gflowdag.gflownet.rollout import Trajectories, rollout

BLOCK = 8  # about as many time steps have their gradient computed together; unreached blocks are skipped


class Tempering(NamedTuple):
    """Rule by which the exponent of the reward rises to 1.

    It starts where the best first edge gains `first_gain` nats in score. It rises while the log weights of a
    batch spread less than `spread` nats and falls otherwise, so that the policy always has a target that it
    nearly reaches: neighbouring graphs may differ by a thousand nats. See `edges.tempered`.
    """

    first_gain: float = 3.0
    spread: float = 1.5
    rate: float = 0.01  # relative change per iteration

    def start(self, space: EdgeSpace) -> Array:
        """The first exponent, float32 []."""
        gains = observe(space, start(space), jnp.ones((), jnp.float32)).deltas
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
    guides: Array | None  # bool [m, d, d], graphs to which `guided_share` of the trajectories lead
    batch_size: int = eqx.field(static=True)
    objective: str = eqx.field(static=True)
    exploration: float = eqx.field(static=True)
    guided_share: float = eqx.field(static=True)
    width: int = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    backward: str = eqx.field(static=True)
    tempering: Tempering = eqx.field(static=True)

    def __init__(
        self,
        space: EdgeSpace,
        *,
        guides: Array | None = None,
        batch_size: int = 128,
        objective: str = "trajectory",
        exploration: float = 0.25,
        guided_share: float = 0.125,
        width: int = 256,
        depth: int = 3,
        backward: str = "learnt",
        tempering: Tempering = Tempering(),  # noqa: B008 (immutable)
    ):
        self.space, self.guides, self.batch_size, self.objective = space, guides, batch_size, objective
        self.exploration, self.guided_share = exploration, guided_share
        self.width, self.depth = width, depth
        self.backward, self.tempering = backward, tempering

    def init(self, key: Array) -> tuple[PairPolicy, Array]:
        """A fresh policy; the memory is the exponent of the reward."""
        d, backward = self.space.num_variables, self.backward
        policy = PairPolicy(d, width=self.width, depth=self.depth, backward=backward, key=key)
        return policy, self.tempering.start(self.space)

    def loss(self, params: PairPolicy, target: PairPolicy, memory: Array, key: Array, step: Array):
        """Imbalance of fresh trajectories."""
        del target, step
        guided = 0 if self.guides is None else max(int(self.guided_share * self.batch_size), 1)
        guided = min(guided, self.batch_size - 1)
        own = self.batch_size - guided
        explorers = int(self.exploration * own)
        sharpness = jnp.linspace(0.5, 1.0, explorers, dtype=jnp.float32)
        sharpness = jnp.append(sharpness, jnp.ones(own - explorers, jnp.float32))
        trajectories = rollout(self.space, params, key, exponent=memory, sharpness=sharpness)
        if guided:
            fresh = jax.random.fold_in(key, self.space.max_steps)  # the rollout has used the numbers below
            others = self._guided(params, fresh, guided, memory)
            trajectories = jax.tree.map(lambda *parts: jnp.concatenate(parts, axis=1), trajectories, others)
        trajectories = jax.lax.stop_gradient(trajectories)
        log_stop, log_forward, log_backward = action_log_probabilities(params, trajectories)
        log_reward = tempered(
            self.space.num_variables,
            trajectories.gain,
            jnp.arange(self.space.max_steps)[:, None],
            memory,
        ).astype(jnp.float32)
        estimates = evidence_estimates(log_reward, log_stop, log_forward, jax.lax.stop_gradient(log_backward))
        loss = balance_loss(self.objective, estimates, trajectories.active, trajectories.stopped)
        # The backward policy learns which edge came last in the policy's own trajectories: a balance leaves
        # it free to expect orders that the forward policy never takes. Only the gradient of this is added.
        likelihood = log_backward[:, explorers:own].sum() / own
        loss = loss - (likelihood - jax.lax.stop_gradient(likelihood))

        log_weights = final_estimates(estimates, trajectories.stopped)[explorers:own]
        total, squares = jax.nn.logsumexp(log_weights), jax.nn.logsumexp(2 * log_weights)
        ess = jnp.exp(2 * total - squares) / len(log_weights)
        edges = trajectories.active[:, :own].sum() / own - 1.0
        figures = {"exponent": memory, "ess": ess, "spread": spread(log_weights), "edges": edges}
        return loss, (self.tempering.update(memory, log_weights), figures)

    def _guided(self, params: PairPolicy, key: Array, number: int, exponent: Array) -> Trajectories:
        """Trajectories to some of the guides."""
        assert self.guides is not None
        row_key, walk_key = jax.random.split(key)
        rows = jax.random.randint(row_key, (number,), 0, len(self.guides), jnp.int32)
        return walk_back(self.space, params, walk_key, self.guides[rows], exponent=exponent)


def action_log_probabilities(policy: Policy, trajectories: Trajectories) -> tuple[Array, Array, Array]:
    """What the policy says about the states and actions of trajectories.

    Returns:
        Log probabilities [steps, batch] of stopping in each state, of the edge that was added there, and of
        taking that edge back; the latter two are 0 where no edge was added.
    """
    steps, batch = trajectories.action.shape
    nowhere = jnp.full((1, batch), trajectories.observation.legal[0, 0].size, jnp.int32)
    arrived = jnp.concatenate([nowhere, trajectories.action[:-1]])  # the edge by which each state was reached
    size = math.ceil(steps / max(round(steps / BLOCK), 1))
    shape = (size, batch, 3)

    def blocks(leaf: Array) -> Array:
        padded = jnp.concatenate([leaf, jnp.zeros((-steps % size, *leaf.shape[1:]), leaf.dtype)])
        return padded.reshape(-1, size, *leaf.shape[1:])

    def one(observation: Observation, action: Array, arrived: Array, active: Array) -> Array:
        decision = policy(observation)
        forward = jnp.append(decision.log_edges.reshape(-1), 0.0)[action]
        backward = jnp.append(decision.log_removals.reshape(-1), 0.0)[arrived]
        return jnp.where(active, jnp.stack([decision.log_stop, forward, backward]), 0.0)

    def block(row: tuple) -> Array:
        return jax.lax.cond(
            row[-1].any(), jax.vmap(jax.vmap(one)), lambda *_: jnp.zeros(shape, jnp.float32), *row
        )

    rows = (trajectories.observation, trajectories.action, arrived, trajectories.active)
    values = jax.lax.map(block, jax.tree.map(blocks, rows)).reshape(-1, batch, 3)[:steps]
    log_stop, log_forward, reached = values[..., 0], values[..., 1], values[..., 2]
    return log_stop, log_forward, jnp.append(reached[1:], jnp.zeros((1, batch), jnp.float32), axis=0)
