"""The order GFlowNet as a learner: sub-trajectory balance on orders of the policy's own.

On a peaked posterior a policy can settle on a wrong order with all its neighbours unseen: its own weights are
then equal and look perfect. So a share of all orders, in training and among the samples, is drawn from the
*untrained* policy, the shaped weights alone, which the potential keeps spread over everything that counts.
Samples are weighed against the mixture of both, and a forgotten mode shows in the weights.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.objectives import flow_levels, subtrajectory_balance
from gflowdag.gflownet.policies.orders import OrderPolicy, shaped_policy
from gflowdag.gflownet.rollout import Chooser, Trajectories, draw_action, rollout, steps_of
from gflowdag.gflownet.spaces import Decision
from gflowdag.gflownet.spaces.orders import OrderSpace
from gflowdag.gflownet.trainer import Moment
from gflowdag.runtime.devices import split

_LOG_ZERO = -50.0  # stands for log 0 in the loss, so that dead ends are unlearnt and gradients stay finite


class OrderLearner(eqx.Module):
    """Sub-trajectory balance on orders drawn from the policy itself, and some from the untrained one."""

    space: OrderSpace
    batch: int = eqx.field(static=True, default=256)
    width: int = eqx.field(static=True, default=256)
    depth: int = eqx.field(static=True, default=3)
    exploration: float = eqx.field(static=True, default=0.01)
    decay: float = eqx.field(static=True, default=0.95)
    untrained_every: int = eqx.field(static=True, default=0)

    def init(self, key: Array) -> tuple[OrderPolicy, tuple[()]]:
        """A fresh network; no memory."""
        return OrderPolicy(self.space.num_variables, self.width, self.depth, key), ()

    def loss(self, params: OrderPolicy, target: OrderPolicy, memory: tuple[()], key: Array, moment: Moment):
        """Loss of one batch of trajectories, with the effective sample size of the policy's own."""
        drawn = draw_orders(
            self.space,
            params,
            key,
            self.batch,
            exploration=self.exploration,
            untrained_every=self.untrained_every,
        )
        paths = jax.lax.stop_gradient(drawn)
        taken = steps_of(params, paths)
        levels = flow_levels(taken.log_flow, taken.log_forward, shaped_steps(paths))
        loss = subtrajectory_balance(levels, jnp.ones(levels.shape, bool), self.decay)
        own = ~is_untrained(self.batch, self.untrained_every)
        log_ratio = jnp.where(own, paths.log_final - taken.log_forward.sum(axis=0), -jnp.inf)
        log_ratio = jax.lax.stop_gradient(log_ratio)
        ess = jnp.exp(2 * jax.nn.logsumexp(log_ratio) - jax.nn.logsumexp(2 * log_ratio)) / own.sum()
        return loss, (memory, {"ess": ess})


def draw_orders(
    space: OrderSpace,
    policy: OrderPolicy,
    key: Array,
    batch: int,
    *,
    exploration: float = 0.0,
    untrained_every: int = 0,
) -> Trajectories:
    """Orders drawn from the policy, a share `exploration` of the steps uniformly from the legal nodes.

    Every `untrained_every`-th order of the batch (none for 0) is drawn from the shaped weights alone.
    """
    keys = split(jax.random.split(key, (space.num_variables, batch)), axis=1)
    untrained = is_untrained(batch, untrained_every)
    return rollout(space, policy, _exploring(space, keys, untrained, exploration), batch)


def _exploring(space: OrderSpace, keys: Array, untrained: Array, exploration: float) -> Chooser:
    """The actions of `draw_orders`; keys [d, batch]."""

    def one(key: Array, untrained: Array, state: Any, observation: Any, log_policy: Array) -> Array:
        explore_key, node_key = jax.random.split(key)
        explore = jax.random.uniform(explore_key, (), jnp.float32) < exploration
        uniform = jnp.where(space.legal(state), jnp.float32(0), -jnp.inf)
        followed = jnp.where(untrained, shaped_policy(observation).log_forward, log_policy)
        return draw_action(node_key, jnp.where(explore, uniform, followed))

    def choose(t: Array, states: Any, observations: Any, decisions: Decision, done: Array) -> Array:
        return jax.vmap(one)(keys[t], untrained, states, observations, decisions.log_forward)

    return choose


def is_untrained(batch: int, every: int) -> Array:
    """Which orders of a batch are drawn from the untrained policy, bool [batch]."""
    return jnp.arange(batch) % every == 0 if every else jnp.zeros(batch, bool)


def shaped_steps(paths: Trajectories) -> Array:
    """Shaped log-weight of each step taken, [d, batch]."""
    shaped = jnp.take_along_axis(paths.observation.shaped, paths.action[..., None], axis=-1)[..., 0]
    return jnp.maximum(shaped, _LOG_ZERO)
