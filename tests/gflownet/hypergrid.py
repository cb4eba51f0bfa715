"""The hypergrid of the first GFlowNet paper (Bengio et al. 2021): a state space as short as one can be."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gflowdag.gflownet.objectives import balance_loss, evidence_estimates
from gflowdag.gflownet.rollout import rollout, sharpened, steps_of
from gflowdag.gflownet.spaces import NEVER, Decision
from gflowdag.gflownet.trainer import Moment


class Hypergrid(NamedTuple):
    """Coordinates grow from the origin by one at a time and may stop anywhere."""

    log_rewards: Array  # float64 [side] * dimensions

    @property
    def num_actions(self) -> int:
        return self.log_rewards.ndim + 1

    @property
    def max_steps(self) -> int:
        return sum(self.log_rewards.shape) - self.log_rewards.ndim + 1

    @property
    def stop(self) -> int:
        return self.log_rewards.ndim

    def start(self) -> Array:
        return jnp.zeros(self.log_rewards.ndim, jnp.int32)

    def state_of(self, built: Array) -> Array:
        return built

    def built(self, state: Array) -> Array:
        return state

    def size(self, state: Array) -> Array:
        return state.sum(dtype=jnp.int32)

    def observe(self, state: Array) -> tuple[Array, Array]:
        return state, self.legal(state)

    def legal(self, state: Array) -> Array:
        return jnp.append(state + 1 < jnp.array(self.log_rewards.shape), True)

    def step(self, state: Array, action: Array) -> Array:
        return state.at[action].add(1)

    def undo(self, state: Array, action: Array) -> Array:
        return state.at[action].add(-1)

    def log_reward(self, state: Array) -> Array:
        return self.log_rewards[tuple(state)] - self.log_rewards.reshape(-1)[0]


class TablePolicy(eqx.Module):
    """A logit for every action in every state; backwards uniform."""

    logits: Array  # float32 [side] * dimensions + [actions]

    def __call__(self, observation: tuple[Array, Array]) -> Decision:
        state, legal = observation
        log_forward = jax.nn.log_softmax(jnp.where(legal, self.logits[tuple(state)], NEVER))
        removable = jnp.append(state > 0, False)
        log_backward = jnp.where(removable, -jnp.log(jnp.maximum(removable.sum(), 1)), NEVER)
        return Decision(log_forward, log_backward.astype(jnp.float32), -log_forward[-1])


class GridLearner(eqx.Module):
    """Sub-trajectory balance on trajectories of the policy's own, the sharper half of them."""

    space: Hypergrid
    batch_size: int = eqx.field(static=True, default=64)

    def init(self, key: Array) -> tuple[TablePolicy, tuple[()]]:
        del key
        shape = (*self.space.log_rewards.shape, self.space.num_actions)
        return TablePolicy(jnp.zeros(shape, jnp.float32)), ()

    def loss(self, params: TablePolicy, target: TablePolicy, memory: tuple[()], key: Array, moment: Moment):
        del target, moment
        sharpness = jnp.linspace(0.5, 1.0, self.batch_size, dtype=jnp.float32)
        paths = jax.lax.stop_gradient(rollout(self.space, params, sharpened(key, sharpness), self.batch_size))
        steps = steps_of(params, paths)
        log_flow = paths.log_reward.astype(jnp.float32) + steps.log_flow
        log_forward = jnp.where(paths.last, 0.0, steps.log_forward)
        estimates = evidence_estimates(log_flow, log_forward, steps.log_backward)
        return balance_loss("subtrajectory", estimates, paths.active, paths.last), (memory, {})


def two_peaks(side: int = 6) -> Hypergrid:
    """Rewards with a peak in each of two corners, and a factor of ten and more between them and the rest."""
    x, y = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    near = np.minimum((x - side + 1) ** 2 + y**2, x**2 + (y - side + 1) ** 2)
    return Hypergrid(jnp.asarray(-np.minimum(near, 4) * 0.7, jnp.float64))
