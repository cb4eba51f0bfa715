"""Whole trajectories under a policy: recorded for training, or only their ends for sampling."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.edges import (
    DAGState,
    EdgeSpace,
    Observation,
    Policy,
    add_edge,
    draw_action,
    log_backward,
    observe,
    start,
)


class Trajectories(NamedTuple):
    """A batch of recorded trajectories, padded to the longest possible."""

    observation: Observation  # leaves [steps, batch, …]
    action: Array  # int32 [steps, batch], flat index of the edge, d² to stop
    active: Array  # bool [steps, batch], a decision was taken here
    gain: Array  # float64 [steps, batch], log score minus that of the start state
    log_backward: Array  # float32 [steps, batch], of undoing the action; 0 for stop

    @property
    def stopped(self) -> Array:
        """Where a trajectory ends, bool [steps, batch]."""
        return self.active & (self.action == self.observation.legal[0, 0].size)


class Samples(NamedTuple):
    """Ends of trajectories."""

    adjacency: Array  # bool [n, d, d]
    gain: Array  # float64 [n], log score minus that of the start state
    log_ratio: Array  # float64 [n], Σ log P_B − Σ log P_F over the trajectory, the final stop included
    num_steps: Array  # int32 [n], edges added


def rollout(
    space: EdgeSpace,
    policy: Policy,
    key: Array,
    batch: int,
    *,
    exponent: Array,
    exploration: Array | float,
) -> Trajectories:
    """Record `batch` trajectories; every one of them ends in a stop.

    The loop ends with the longest trajectory of the batch, not with the longest possible one.
    """
    steps = space.max_steps

    def decide(state: DAGState, done: Array, key: Array) -> tuple[DAGState, Array, tuple]:
        observation = observe(space, state, exponent)
        action = draw_action(key, *policy(observation), exploration)
        state, done_after, backward = _apply(space, state, done, action)
        return state, done_after, (observation, action, ~done, state.gain, backward)

    def body(carry):
        t, states, done, record = carry
        keys = jax.random.split(jax.random.fold_in(key, t), batch)
        gain = states.gain
        states, done, row = jax.vmap(decide)(states, done, keys)
        row = (*row[:3], gain, row[4])  # the score belongs to the state before the action
        return t + 1, states, done, jax.tree.map(lambda all_rows, new: all_rows.at[t].set(new), record, row)

    states, done = _starts(space, batch)
    shapes = jax.eval_shape(jax.vmap(decide), states, done, jax.random.split(key, batch))[2]
    record = jax.tree.map(lambda leaf: jnp.zeros((steps, *leaf.shape), leaf.dtype), shapes)
    *_, record = jax.lax.while_loop(
        lambda carry: (carry[0] < steps) & ~carry[2].all(), body, (0, states, done, record)
    )
    return Trajectories(*record)


def draw(space: EdgeSpace, policy: Policy, key: Array, batch: int) -> Samples:
    """Draw `batch` independent DAGs from the policy, each with its trajectory's probability ratio."""

    def decide(state: DAGState, done: Array, ratio: Array, key: Array):
        log_stop, log_edges = policy(observe(space, state, jnp.ones((), jnp.float32)))
        action = draw_action(key, log_stop, log_edges, 0.0)
        forward = jnp.append(log_edges.reshape(-1), log_stop)[action]
        state, done_after, backward = _apply(space, state, done, action)
        return state, done_after, ratio + jnp.where(done, 0.0, backward - forward)

    def body(carry):
        t, states, done, ratio = carry
        keys = jax.random.split(jax.random.fold_in(key, t), batch)
        return t + 1, *jax.vmap(decide)(states, done, ratio, keys)

    states, done = _starts(space, batch)
    carry = (0, states, done, jnp.zeros(batch, jnp.float64))
    _, states, _, ratio = jax.lax.while_loop(lambda carry: ~carry[2].all(), body, carry)
    added = states.graph.num_edges - space.required.sum(dtype=jnp.int32)
    return Samples(states.graph.adjacency, states.gain, ratio, added)


def _starts(space: EdgeSpace, batch: int) -> tuple[DAGState, Array]:
    states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), start(space))
    return states, jnp.zeros(batch, bool)


def _apply(space: EdgeSpace, state: DAGState, done: Array, action: Array) -> tuple[DAGState, Array, Array]:
    """The state after `action`, whether it is final, and the log probability of undoing the action."""
    d = space.num_variables
    ends = done | (action == d * d)
    after = add_edge(space, state, jnp.where(ends, 0, action))
    after = jax.tree.map(lambda new, old: jnp.where(ends, old, new), after, state)
    return after, ends, jnp.where(ends, 0.0, log_backward(space, after.graph))
