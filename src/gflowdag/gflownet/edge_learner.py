"""The `fast` learner: trajectories of the present policy, on a reward tempered up to the posterior."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.edge_policy import PairPolicy
from gflowdag.gflownet.edges import EdgeSpace, Observation, observe, start, tempered
from gflowdag.gflownet.objectives import balance_loss, evidence_estimates, final_estimates
from gflowdag.gflownet.rollout import Trajectories, final_graphs, reordered, rollout

BLOCK = 8  # time steps whose gradient is computed together; blocks that no trajectory reached are skipped


class Tempering(NamedTuple):
    """Rule by which the exponent of the reward rises to 1.

    It starts where the best first edge gains `first_gain` nats in score. It rises while the log weights of a
    batch spread less than `spread` nats and falls otherwise, so that the policy always has a target that it
    nearly reaches: neighbouring graphs may differ by a thousand nats. See `edges.tempered`.
    """

    first_gain: float = 3.0
    spread: float = 2.0
    rate: float = 0.03  # relative change per iteration

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
    """On-policy learning of the edge-wise GFlowNet; see `trainer.Learner`."""

    space: EdgeSpace
    batch_size: int = eqx.field(static=True)
    objective: str = eqx.field(static=True)
    exploration: float = eqx.field(static=True)
    width: int = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    tempering: Tempering = eqx.field(static=True)

    def __init__(
        self,
        space: EdgeSpace,
        *,
        batch_size: int = 128,
        objective: str = "trajectory",
        exploration: float = 0.0,
        width: int = 256,
        depth: int = 3,
        tempering: Tempering = Tempering(),  # noqa: B008 (immutable)
    ):
        self.space, self.batch_size, self.objective = space, batch_size, objective
        self.exploration, self.width, self.depth, self.tempering = exploration, width, depth, tempering

    def init(self, key: Array) -> tuple[PairPolicy, Array]:
        """A fresh policy; the memory is the exponent of the reward."""
        policy = PairPolicy(self.space.num_variables, width=self.width, depth=self.depth, key=key)
        return policy, self.tempering.start(self.space)

    def loss(self, params: PairPolicy, target: PairPolicy, memory: Array, key: Array, step: Array):
        """Imbalance of fresh trajectories."""
        del target, step
        num_forward = self.batch_size // 2
        explorers = int(self.exploration * num_forward)
        sharpness = (
            jnp.ones(num_forward, jnp.float32)
            .at[:explorers]
            .set(jnp.linspace(0.5, 1.0, explorers, dtype=jnp.float32))
        )
        forward_key, reorder_key = jax.random.split(key)
        forward = rollout(self.space, params, forward_key, exponent=memory, sharpness=sharpness)
        again = reordered(self.space, final_graphs(forward), reorder_key, exponent=memory)
        trajectories = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=1), forward, again)
        trajectories = jax.lax.stop_gradient(trajectories)
        log_stop, log_forward = action_log_probabilities(params, trajectories)
        log_reward = tempered(
            self.space.num_variables,
            trajectories.gain,
            jnp.arange(self.space.max_steps)[:, None],
            memory,
        ).astype(jnp.float32)
        estimates = evidence_estimates(log_reward, log_stop, log_forward, trajectories.log_backward)
        loss = balance_loss(self.objective, estimates, trajectories.active, trajectories.stopped)

        log_weights = final_estimates(estimates, trajectories.stopped)[explorers:num_forward]
        ess = jnp.exp(2 * jax.nn.logsumexp(log_weights) - jax.nn.logsumexp(2 * log_weights)) / len(
            log_weights
        )
        edges = trajectories.active.sum() / self.batch_size - 1.0
        figures = {"exponent": memory, "ess": ess, "spread": spread(log_weights), "edges": edges}
        return loss, (self.tempering.update(memory, log_weights), figures)


def action_log_probabilities(policy: PairPolicy, trajectories: Trajectories) -> tuple[Array, Array]:
    """Log probabilities of stopping and of the edges that were added (0 elsewhere), both [steps, batch]."""
    steps, batch = trajectories.action.shape
    padding = -steps % BLOCK

    def blocks(leaf: Array) -> Array:
        padded = jnp.concatenate([leaf, jnp.zeros((padding, *leaf.shape[1:]), leaf.dtype)])
        return padded.reshape(-1, BLOCK, *leaf.shape[1:])

    def one(observation: Observation, action: Array) -> tuple[Array, Array]:
        log_stop, log_edges = policy(observation)
        return log_stop, jnp.append(log_edges.reshape(-1), 0.0)[action]

    def block(observation: Observation, action: Array, active: Array) -> tuple[Array, Array]:
        log_stop, log_forward = jax.vmap(jax.vmap(one))(observation, action)
        return jnp.where(active, log_stop, 0.0), jnp.where(active, log_forward, 0.0)

    def skipped(observation: Observation, action: Array, active: Array) -> tuple[Array, Array]:
        return jnp.zeros((BLOCK, batch), jnp.float32), jnp.zeros((BLOCK, batch), jnp.float32)

    rows = jax.tree.map(blocks, (trajectories.observation, trajectories.action, trajectories.active))
    log_stop, log_forward = jax.lax.map(lambda row: jax.lax.cond(row[2].any(), block, skipped, *row), rows)
    return log_stop.reshape(-1, batch)[:steps], log_forward.reshape(-1, batch)[:steps]
