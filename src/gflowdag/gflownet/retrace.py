"""Trajectories backwards, from objects that a policy did not draw: to learn from, or to weigh."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.rollout import Trajectories, draw_action, num_taken
from gflowdag.gflownet.sampling import Samples
from gflowdag.gflownet.spaces import Decision, Policy, StateSpace
from gflowdag.runtime.devices import split


def walk_back(space: StateSpace, policy: Policy, key: Array, built: Any) -> Trajectories:
    """Record a trajectory to each of given objects, its order by the backward policy.

    Args:
        space: the problem.
        policy: what chooses actions backwards.
        key: PRNG key.
        built: objects, leaves [n, …].
    """
    steps, batch = space.max_steps, len(jax.tree.leaves(built)[0])

    def back(state: Any, done: Array, taken: Array, key: Array):
        observation = space.observe(state)
        before, ends, action = _step_back(space, state, done, key, policy(observation))
        return before, ends, action, (observation, taken, ~done, space.log_reward(state))

    def body(carry):
        t, states, done, taken, record = carry
        # Out of range is not stored: what is over, and complete objects from which no action leads on.
        place = jnp.where(done, steps, jax.vmap(lambda state: num_taken(space, state))(states))
        keys = split(jax.random.split(jax.random.fold_in(key, t), batch))
        states, done, taken, row = jax.vmap(back)(states, done, taken, keys)
        record = jax.tree.map(
            lambda rows, new: rows.at[place, jnp.arange(batch)].set(new, mode="drop"), record, row
        )
        return t + 1, states, done, taken, record

    ends, done, taken = _ends(space, built)
    row = jax.eval_shape(jax.vmap(back), ends, done, taken, jax.random.split(key, batch))[-1]
    record = jax.tree.map(lambda leaf: jnp.zeros((steps, *leaf.shape), leaf.dtype), row)
    carry = (0, ends, done, taken, split(record, axis=1))
    _, states, *_, record = jax.lax.while_loop(lambda carry: ~carry[2].all(), body, carry)
    observation, action, active, log_reward = record
    origin = jax.vmap(space.log_reward)(states)  # rewards were counted from elsewhere, until here
    log_final = jax.vmap(space.log_reward)(ends) - origin
    return Trajectories(observation, action, active, log_reward - origin, log_final)


@eqx.filter_jit
def weigh(space: StateSpace, policy: Policy, key: Array, built: Any) -> Samples:
    """Weigh objects that the policy did not draw, each on one trajectory to it by the backward policy.

    Args:
        space: the problem.
        policy: what chooses actions, forwards and backwards.
        key: PRNG key.
        built: objects, leaves [n, …].

    Returns:
        The same objects with rewards and weights as if the policy had drawn them.
    """

    def back(t: Array, state: Any, done: Array, taken: Array, ratio: Array, key: Array):
        decision = policy(space.observe(state))
        leaves = space.stop is not None or t > 0  # complete objects are left by no action
        forward = jnp.where(leaves, decision.log_forward[taken], 0.0)
        before, ends, action = _step_back(space, state, done, key, decision)
        backward = jnp.where(ends, 0.0, decision.log_backward[action])
        return before, ends, action, ratio + jnp.where(done, 0.0, backward - forward)

    def body(carry):
        t, states, done, taken, ratio = carry
        keys = jax.random.split(jax.random.fold_in(key, t), len(done))
        return t + 1, *jax.vmap(back, (None, 0, 0, 0, 0, 0))(t, states, done, taken, ratio, keys)

    built = jax.tree.map(jnp.asarray, built)
    ends, done, taken = _ends(space, built)
    carry = (0, ends, done, taken, jnp.zeros(len(done), jnp.float64))
    _, states, *_, ratio = jax.lax.while_loop(lambda carry: ~carry[2].all(), body, carry)
    log_reward = jax.vmap(space.log_reward)(ends) - jax.vmap(space.log_reward)(states)
    return Samples(built, log_reward, ratio, jax.vmap(lambda state: num_taken(space, state))(ends))


def _ends(space: StateSpace, built: Any) -> tuple[Any, Array, Array]:
    """The states of given objects, that none is back at the start, and the stop that was taken in each."""
    states = jax.vmap(space.state_of)(built)
    batch = len(jax.tree.leaves(built)[0])
    return split(states), split(jnp.zeros(batch, bool)), split(jnp.full(batch, space.stop or 0, jnp.int32))


def _step_back(
    space: StateSpace, state: Any, done: Array, key: Array, decision: Decision
) -> tuple[Any, Array, Array]:
    """The state before an action that the backward policy draws, whether it was the start, and the action."""
    ends = done | (num_taken(space, state) == 0)
    action = jnp.where(ends, 0, draw_action(key, decision.log_backward))
    before = space.undo(state, action)
    return jax.tree.map(lambda new, old: jnp.where(ends, old, new), before, state), ends, action
