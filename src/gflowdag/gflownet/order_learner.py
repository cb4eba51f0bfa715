"""The order GFlowNet as a learner: trajectories, sub-trajectory balance, and samples with their weights.

On a peaked posterior a policy can settle on a wrong order with all its neighbours unseen: its own weights are
then equal and look perfect. So a share of all orders, in training and among the samples, is drawn from the
*untrained* policy, the shaped weights alone, which the potential keeps spread over everything that counts.
Samples are weighed against the mixture of both, and a forgotten mode shows in the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.objectives import subtrajectory_balance
from gflowdag.gflownet.order_policy import OrderPolicy, features
from gflowdag.gflownet.order_space import OrderSpace, SpaceState, shaped_log_weights, start, step
from gflowdag.runtime.devices import gathered, split

_LOG_ZERO = -50.0  # stands for log 0 in the loss, so that dead ends are unlearnt and gradients stay finite


class Trajectories(NamedTuple):
    """A batch of complete orders, step by step."""

    orders: Array  # int32 [d, batch]
    features: Array  # float32 [d, batch, d, F]
    shaped: Array  # float32 [d, batch, d]
    log_weights: Array  # float64 [batch], log total score of the graphs with this order
    log_probabilities: Array  # float32 [batch], of the order under the policy
    log_untrained: Array  # float32 [batch], of the order under the shaped weights alone


def rollout(
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

    def choose(given: tuple[Array, Array], placed: Array, shaped: Array, inputs: Array):
        key, untrained = given
        correction = policy(inputs)[0]
        log_policy = policy_log_probabilities(shaped, placed, correction)
        log_untrained = policy_log_probabilities(shaped, placed, jnp.zeros_like(correction))
        explore_key, node_key = jax.random.split(key)
        explore = jax.random.uniform(explore_key, (), jnp.float32) < exploration
        uniform = jnp.where(jnp.isneginf(log_policy), -jnp.inf, jnp.float32(0))
        followed = jnp.where(untrained, log_untrained, log_policy)
        noise = jax.random.gumbel(node_key, shaped.shape, jnp.float32)
        node = jnp.argmax(jnp.where(explore, uniform, followed) + noise).astype(jnp.int32)
        return node, (log_policy[node], log_untrained[node])

    keys = split(jax.random.split(key, (space.num_variables, batch)), axis=1)
    untrained = jnp.broadcast_to(is_untrained(batch, untrained_every), keys.shape)
    return _walk(space, choose, (keys, untrained))


def is_untrained(batch: int, every: int) -> Array:
    """Which orders of a batch are drawn from the untrained policy, bool [batch]."""
    return jnp.arange(batch) % every == 0 if every else jnp.zeros(batch, bool)


def follow(space: OrderSpace, orders: Array) -> Trajectories:
    """The trajectories of given orders, int32 [batch, d]; their log-probabilities are left at zero."""

    def choose(node: Array, placed: Array, shaped: Array, inputs: Array):
        nothing = jnp.zeros((), jnp.float32)
        return node, (nothing, nothing)

    return _walk(space, choose, orders.T)


def _walk(space: OrderSpace, choose: Callable, inputs_of_choice: Any) -> Trajectories:
    """Build a batch of orders; `choose` gets one entry of `inputs_of_choice` [d, batch, ...] at each step."""

    def one(state: SpaceState, given: Any):
        shaped = shaped_log_weights(space, state)
        inputs = features(shaped, state)
        shaped = shaped.astype(jnp.float32)
        node, log_choice = choose(given, state.order.placed, shaped, inputs)
        return step(space, state, node), (node, inputs, shaped, state.order.log_weights[node], log_choice)

    batch = jax.tree.leaves(inputs_of_choice)[0].shape[1]
    empty = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), start(space))
    steps = jax.lax.scan(jax.vmap(one), split(empty), inputs_of_choice)[1]
    orders, inputs, shaped, log_weights, log_choice = steps
    return Trajectories(orders, inputs, shaped, log_weights.sum(0), *(logs.sum(0) for logs in log_choice))


def policy_log_probabilities(shaped: Array, placed: Array, correction: Array) -> Array:
    """Log-probability of each next node, float32 [..., d]; uniform over the rest in a dead end."""
    legal = jnp.isfinite(shaped)
    dead_end = ~legal.any(axis=-1, keepdims=True)
    logits = jnp.where(legal, shaped + correction, -jnp.inf)
    return jax.nn.log_softmax(jnp.where(dead_end, jnp.where(placed, -jnp.inf, 0.0), logits))


def flow_levels(log_flow: Array, log_policy: Array, shaped: Array) -> Array:
    """Log flow of each state less what the steps so far should have changed, [d + 1, batch].

    Constant along each trajectory iff the flows match.

    Args:
        log_flow: of each state but the last, relative to the potential, [d, batch]; that of the last is zero.
        log_policy: of each step taken, [d, batch].
        shaped: shaped log-weight of each step taken, [d, batch].
    """
    excess = jnp.cumsum(log_policy - shaped, axis=0)
    nothing = jnp.zeros_like(excess[:1])
    return jnp.concatenate([log_flow, nothing]) - jnp.concatenate([nothing, excess])


def steps_taken(params: OrderPolicy, paths: Trajectories) -> tuple[Array, Array, Array]:
    """Log flow of each state, log-probability and shaped log-weight of each step taken, all [d, batch]."""
    correction, log_flow = jax.vmap(jax.vmap(params))(paths.features)
    placed = paths.features[..., 0] > 0
    log_policy = policy_log_probabilities(paths.shaped, placed, correction)
    log_policy, shaped = (
        jnp.take_along_axis(values, paths.orders[..., None], axis=-1)[..., 0]
        for values in (log_policy, paths.shaped)
    )
    return log_flow, log_policy, jnp.maximum(shaped, _LOG_ZERO)


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

    def loss(self, params: OrderPolicy, target: OrderPolicy, memory: tuple[()], key: Array, step: Array):
        """Loss of one batch of trajectories, with the effective sample size of the policy's own."""
        drawn = rollout(
            self.space,
            params,
            key,
            self.batch,
            exploration=self.exploration,
            untrained_every=self.untrained_every,
        )
        paths = jax.lax.stop_gradient(drawn)
        levels = flow_levels(*steps_taken(params, paths))
        loss = subtrajectory_balance(levels, jnp.ones(levels.shape, bool), self.decay)
        own = ~is_untrained(self.batch, self.untrained_every)
        log_ratio = jnp.where(own, paths.log_weights - paths.log_probabilities, -jnp.inf)
        ess = jnp.exp(2 * jax.nn.logsumexp(log_ratio) - jax.nn.logsumexp(2 * log_ratio)) / own.sum()
        return loss, (memory, {"ess": ess})


@eqx.filter_jit
def order_log_ratios(space: OrderSpace, policy: OrderPolicy, orders: Array) -> Array:
    """Log of weight over probability under the policy of given orders, int32 [n, d] -> float64 [n]."""

    def one(order: Array) -> Array:
        paths = follow(space, order[None])
        return (paths.log_weights - steps_taken(policy, paths)[1].sum(axis=0))[0]

    return jax.lax.map(one, orders, batch_size=512)


@eqx.filter_jit
def sample_orders(
    space: OrderSpace,
    policy: OrderPolicy,
    key: Array,
    batch: int,
    num_batches: int,
    untrained_every: int = 0,
):
    """Orders int32 [n, d], their log-weights and log-probabilities, float64 [n].

    The probabilities are those of the mixture of the policy and the untrained one that the orders come from
    (in fixed shares: the balance heuristic of multiple importance sampling, Veach & Guibas 1995).
    """
    share = 1.0 / untrained_every if untrained_every else 0.0

    def draw(key: Array):
        paths = rollout(space, policy, key, batch, untrained_every=untrained_every)
        log_policy, log_untrained = (
            log_probabilities.astype(jnp.float64)
            for log_probabilities in (paths.log_probabilities, paths.log_untrained)
        )
        mixture = jnp.logaddexp(jnp.log1p(-share) + log_policy, jnp.log(share) + log_untrained)
        return paths.orders.T, paths.log_weights, mixture

    drawn = jax.lax.map(draw, jax.random.split(key, num_batches))
    drawn = gathered(drawn)
    return jax.tree.map(lambda leaf: leaf.reshape(batch * num_batches, *leaf.shape[2:]), drawn)
