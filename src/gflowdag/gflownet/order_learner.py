"""The order GFlowNet as a learner: trajectories, sub-trajectory balance, and samples with their weights."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.order_policy import OrderPolicy, features
from gflowdag.gflownet.order_space import OrderSpace, SpaceState, shaped_log_weights, start, step

_LOG_ZERO = -50.0  # stands for log 0 in the loss, so that dead ends are unlearnt and gradients stay finite


class Trajectories(NamedTuple):
    """A batch of complete orders, step by step."""

    orders: Array  # int32 [d, batch]
    features: Array  # float32 [d, batch, d, F]
    shaped: Array  # float32 [d, batch, d]
    log_weights: Array  # float64 [batch], log total score of the graphs with this order
    log_probabilities: Array  # float32 [batch], of the order under the policy


def rollout(
    space: OrderSpace, policy: OrderPolicy, key: Array, batch: int, exploration: float = 0.0
) -> Trajectories:
    """Orders drawn from the policy, a share `exploration` of the steps uniformly from the legal nodes."""

    def one(state: SpaceState, key: Array):
        shaped = shaped_log_weights(space, state)
        inputs = features(shaped, state)
        log_policy = policy_log_probabilities(
            shaped.astype(jnp.float32), state.order.placed, policy(inputs)[0]
        )
        explore_key, node_key = jax.random.split(key)
        explore = jax.random.uniform(explore_key, (), jnp.float32) < exploration
        uniform = jnp.where(jnp.isneginf(log_policy), -jnp.inf, jnp.float32(0))
        noise = jax.random.gumbel(node_key, shaped.shape, jnp.float32)
        node = jnp.argmax(jnp.where(explore, uniform, log_policy) + noise).astype(jnp.int32)
        record = node, inputs, shaped.astype(jnp.float32), state.order.log_weights[node], log_policy[node]
        return step(space, state, node), record

    def all_at_once(states: SpaceState, key: Array):
        return jax.vmap(one)(states, jax.random.split(key, batch))

    empty = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), start(space))
    keys = jax.random.split(key, space.num_variables)
    orders, inputs, shaped, log_weights, log_policy = jax.lax.scan(all_at_once, empty, keys)[1]
    return Trajectories(orders, inputs, shaped, log_weights.sum(0), log_policy.sum(0))


def policy_log_probabilities(shaped: Array, placed: Array, correction: Array) -> Array:
    """Log-probability of each next node, float32 [..., d]; uniform over the rest in a dead end."""
    legal = jnp.isfinite(shaped)
    dead_end = ~legal.any(axis=-1, keepdims=True)
    logits = jnp.where(legal, shaped + correction, -jnp.inf)
    return jax.nn.log_softmax(jnp.where(dead_end, jnp.where(placed, -jnp.inf, 0.0), logits))


def sub_trajectory_balance(log_flow: Array, log_policy: Array, shaped: Array, decay: float) -> Array:
    """Squared imbalance of all sub-trajectories, those of length `n` weighted by `decay^n`.

    Madan et al. (2023), with flows relative to a potential.

    Args:
        log_flow: log flow of each state relative to the potential, [d + 1, batch]; zero at the end.
        log_policy: of each step taken, [d, batch].
        shaped: shaped log-weight of each step taken, [d, batch].
        decay: weight of one step more.
    """
    excess = jnp.cumsum(log_policy - shaped, axis=0)
    excess = jnp.concatenate([jnp.zeros_like(excess[:1]), excess])
    level = log_flow - excess  # constant along a balanced trajectory
    time = jnp.arange(level.shape[0])
    length = time - time[:, None]
    weight = jnp.where(length > 0, jnp.float32(decay) ** length.astype(jnp.float32), 0.0)
    imbalance = jnp.mean((level[:, None] - level) ** 2, axis=-1)
    return jnp.sum(weight * imbalance) / jnp.sum(weight)


class OrderLearner(eqx.Module):
    """Sub-trajectory balance on orders drawn from the policy itself."""

    space: OrderSpace
    batch: int = eqx.field(static=True, default=256)
    width: int = eqx.field(static=True, default=256)
    depth: int = eqx.field(static=True, default=3)
    exploration: float = eqx.field(static=True, default=0.01)
    decay: float = eqx.field(static=True, default=0.95)

    def init(self, key: Array) -> tuple[OrderPolicy, tuple[()]]:
        """A fresh network; no memory."""
        return OrderPolicy(self.space.num_variables, self.width, self.depth, key), ()

    def loss(self, params: OrderPolicy, target: OrderPolicy, memory: tuple[()], key: Array, step: Array):
        """Loss of one batch of trajectories, with the effective sample size of its weights."""
        paths = jax.lax.stop_gradient(rollout(self.space, params, key, self.batch, self.exploration))
        correction, log_flow = jax.vmap(jax.vmap(params))(paths.features)
        placed = paths.features[..., 0] > 0
        log_policy = policy_log_probabilities(paths.shaped, placed, correction)
        taken = lambda values: jnp.take_along_axis(values, paths.orders[..., None], axis=-1)[..., 0]  # noqa: E731
        shaped = jnp.maximum(taken(paths.shaped), _LOG_ZERO)
        log_flow = jnp.concatenate([log_flow, jnp.zeros_like(log_flow[:1])])
        loss = sub_trajectory_balance(log_flow, taken(log_policy), shaped, self.decay)
        log_ratio = paths.log_weights - paths.log_probabilities
        ess = jnp.exp(2 * jax.nn.logsumexp(log_ratio) - jax.nn.logsumexp(2 * log_ratio)) / self.batch
        return loss, (memory, {"ess": ess})


@eqx.filter_jit
def sample_orders(space: OrderSpace, policy: OrderPolicy, key: Array, batch: int, num_batches: int):
    """Orders int32 [n, d], their log-weights and their log-probabilities under the policy, float64 [n]."""

    def draw(key: Array):
        paths = rollout(space, policy, key, batch)
        return paths.orders.T, paths.log_weights, paths.log_probabilities.astype(paths.log_weights.dtype)

    drawn = jax.lax.map(draw, jax.random.split(key, num_batches))
    return jax.tree.map(lambda leaf: leaf.reshape(batch * num_batches, *leaf.shape[2:]), drawn)
