"""Whole trajectories under a policy, recorded for training; of any state space."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.spaces import Decision, Policy, StateSpace
from gflowdag.runtime.devices import split

# Draws the actions of a batch, int32 [n]. Told the time, the states, what the policy sees of them and what it
# says (leaves [n, …]), and which trajectories are over, bool [n].
Chooser = Callable[[Array, Any, Any, Decision, Array], Array]


class Trajectories(NamedTuple):
    """A batch of recorded trajectories, padded to the longest possible."""

    observation: Any  # leaves [steps, batch, …], of the state before each action
    action: Array  # int32 [steps, batch]
    active: Array  # bool [steps, batch], an action was taken here
    log_reward: Array  # float64 [steps, batch], of the state before each action
    log_final: Array  # float64 [batch], log reward of what was built

    @property
    def last(self) -> Array:
        """The last action of each trajectory, bool [steps, batch]."""
        after = jnp.concatenate([self.active[1:], jnp.zeros_like(self.active[:1])])
        return self.active & ~after


class Steps(NamedTuple):
    """What a policy says about the steps of trajectories; 0 beyond their ends."""

    log_forward: Array  # float32 [steps, batch], log probability of each action
    log_backward: Array  # float32 [steps, batch], of taking it back; 0 for the last
    log_flow: Array  # float32 [steps, batch], `Decision.log_flow` of the state before


def rollout(space: StateSpace, policy: Policy, choose: Chooser, batch: int) -> Trajectories:
    """Record a batch of trajectories, each until it ends.

    The loop ends with the longest trajectory of the batch, not with the longest possible one.

    Args:
        space: the problem.
        policy: what gives actions their probabilities.
        choose: how the actions of one step are drawn.
        batch: number of trajectories.
    """
    steps = space.max_steps

    def forward(t: Array, states: Any, done: Array):
        observations = jax.vmap(space.observe)(states)
        actions = choose(t, states, observations, jax.vmap(policy)(observations), done)
        row = observations, actions, ~done, jax.vmap(space.log_reward)(states)
        return *jax.vmap(lambda *lane: advance(space, *lane))(states, done, actions), row

    def body(carry):
        t, states, done, record = carry
        states, done, row = forward(t, states, done)
        return t + 1, states, done, jax.tree.map(lambda rows, row: rows.at[t].set(row), record, row)

    states, done = starts(space, batch)
    row = jax.eval_shape(forward, jnp.zeros((), jnp.int32), states, done)[2]
    record = jax.tree.map(lambda leaf: jnp.zeros((steps, *leaf.shape), leaf.dtype), row)
    carry = (0, states, done, split(record, axis=1))
    going_on = lambda carry: (carry[0] < steps) & ~carry[2].all()  # noqa: E731
    _, states, _, record = jax.lax.while_loop(going_on, body, carry)
    observation, action, active, log_reward = record
    return Trajectories(observation, action, active, log_reward, jax.vmap(space.log_reward)(states))


def starts(space: StateSpace, batch: int) -> tuple[Any, Array]:
    """A batch of start states, and that no trajectory is over."""
    states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), space.start())
    return split(states), split(jnp.zeros(batch, bool))


def advance(space: StateSpace, state: Any, done: Array, action: Array) -> tuple[Any, Array]:
    """The state after `action`, and whether the trajectory is over; what was over stays as it is."""
    if space.stop is None:
        after = space.step(state, action)
        after = jax.tree.map(lambda new, old: jnp.where(done, old, new), after, state)
        return after, num_taken(space, after) == space.max_steps
    ends = done | (action == space.stop)
    after = space.step(state, jnp.where(ends, 0, action))
    return jax.tree.map(lambda new, old: jnp.where(ends, old, new), after, state), ends


def num_taken(space: StateSpace, state: Any) -> Array:
    """Number of actions since the start, int32 []."""
    return space.size(state) - space.size(space.start())


def draw_action(key: Array, logits: Array) -> Array:
    """An action, int32 []; its probability is proportional to the exponential of its logit."""
    return jnp.argmax(logits + jax.random.gumbel(key, logits.shape, jnp.float32)).astype(jnp.int32)


def sharpened(key: Array, sharpness: Array) -> Chooser:
    """Trajectory `i` follows the policy to the power of `sharpness[i]`: 1 is the policy, less explores."""

    def choose(t: Array, states: Any, observations: Any, decisions: Decision, done: Array) -> Array:
        keys = split(jax.random.split(jax.random.fold_in(key, t), len(sharpness)))
        return jax.vmap(lambda key, sharp, logits: draw_action(key, sharp * logits))(
            keys, sharpness, decisions.log_forward
        )

    return choose


def follow(actions: Array) -> Chooser:
    """Trajectories along given actions, int32 [batch, steps]."""
    return lambda t, states, observations, decisions, done: actions[:, t]


def join(first: Trajectories, second: Trajectories) -> Trajectories:
    """Two batches as one."""
    return jax.tree.map(lambda *parts: jnp.concatenate(parts, axis=min(1, parts[0].ndim - 1)), first, second)


def steps_of(policy: Policy, trajectories: Trajectories, *, block: int | None = None) -> Steps:
    """What a policy says about the states and actions of trajectories.

    Args:
        policy: any.
        trajectories: of any policy.
        block: about as many time steps have their gradient computed together, and blocks that no trajectory
            reaches are skipped. All at once if None.
    """
    steps, batch = trajectories.action.shape
    # The action by which each state was reached; for the first one, whatever it says is not used.
    arrived = jnp.concatenate([jnp.zeros_like(trajectories.action[:1]), trajectories.action[:-1]])
    size = steps if block is None else math.ceil(steps / max(round(steps / block), 1))

    def blocks(leaf: Array) -> Array:
        padded = jnp.concatenate([leaf, jnp.zeros((-steps % size, *leaf.shape[1:]), leaf.dtype)])
        return padded.reshape(-1, size, *leaf.shape[1:])

    def one(observation: Any, action: Array, arrived: Array, active: Array) -> Array:
        decision = policy(observation)
        values = decision.log_forward[action], decision.log_backward[arrived], decision.log_flow
        return jnp.where(active, jnp.stack(values), 0.0)

    def one_block(row: tuple) -> Array:
        nothing = jnp.zeros((size, batch, 3), jnp.float32)
        return jax.lax.cond(row[-1].any(), jax.vmap(jax.vmap(one)), lambda *_: nothing, *row)

    rows = (trajectories.observation, trajectories.action, arrived, trajectories.active)
    if block is None:
        values = jax.vmap(jax.vmap(one))(*rows)
    else:
        values = jax.lax.map(one_block, jax.tree.map(blocks, rows)).reshape(-1, batch, 3)[:steps]
    log_forward, reached, log_flow = jnp.moveaxis(values, -1, 0)
    return Steps(log_forward, jnp.append(reached[1:], jnp.zeros_like(reached[:1]), axis=0), log_flow)
