"""Whole trajectories under a policy: recorded for training, or only their ends for sampling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
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
    space: EdgeSpace, policy: Policy, key: Array, *, exponent: Array, sharpness: Array
) -> Trajectories:
    """Record a batch of trajectories of a policy.

    Args:
        space: the problem.
        policy: what chooses edges.
        key: PRNG key.
        exponent: of the reward, float32 [].
        sharpness: float32 [batch]; trajectory `i` follows the policy to the power of `sharpness[i]`,
            normalised: 1 is the policy itself, less explores.
    """

    def choose(key: Array, observation: Observation, sharpness: Array) -> Array:
        log_stop, log_edges = policy(observation)
        return draw_action(key, sharpness * log_stop, sharpness * log_edges)

    return _record(space, choose, key, exponent, sharpness)


def reordered(space: EdgeSpace, graphs: Array, key: Array, *, exponent: Array) -> Trajectories:
    """Record trajectories to given DAGs, bool [batch, d, d], by the uniform backward policy read forwards.

    Edges are added in a random order. A policy of its own accord seldom starts with an edge that only pays
    together with a later one; here it sees every order.
    """

    def choose(key: Array, observation: Observation, plan: tuple[Array, Array]) -> Array:
        del key
        graph, priority = plan
        left = graph & ~observation.adjacency
        best = jnp.argmax(jnp.where(left, priority, -1.0)).astype(jnp.int32)
        return jnp.where(left.any(), best, left.size)

    priority = jax.random.uniform(key, graphs.shape, jnp.float32)
    return _record(space, choose, key, exponent, (graphs, priority))


def final_graphs(trajectories: Trajectories) -> Array:
    """The graphs in which trajectories stopped, bool [batch, d, d]."""
    at_end = trajectories.stopped[..., None, None]
    return (trajectories.observation.adjacency & at_end).any(axis=0)


def _record(space: EdgeSpace, choose: Callable, key: Array, exponent: Array, plans: Any) -> Trajectories:
    """Trajectories with actions `choose(key, observation, plan)`; every one of them ends in a stop.

    The loop ends with the longest trajectory of the batch, not with the longest possible one.
    """
    steps, batch = space.max_steps, jax.tree.leaves(plans)[0].shape[0]

    def decide(state: DAGState, done: Array, key: Array, plan: Any) -> tuple[DAGState, Array, Trajectories]:
        observation = observe(space, state, exponent)
        action = choose(key, observation, plan)
        after, ends, backward = _apply(space, state, done, action)
        return after, ends, Trajectories(observation, action, ~done, state.gain, backward)

    def body(carry):
        t, states, done, record = carry
        keys = jax.random.split(jax.random.fold_in(key, t), batch)
        states, done, row = jax.vmap(decide)(states, done, keys, plans)
        return t + 1, states, done, jax.tree.map(lambda rows, row: rows.at[t].set(row), record, row)

    states, done = _starts(space, batch)
    row = jax.eval_shape(jax.vmap(decide), states, done, jax.random.split(key, batch), plans)[2]
    record = jax.tree.map(lambda leaf: jnp.zeros((steps, *leaf.shape), leaf.dtype), row)
    carry = (0, states, done, record)
    return jax.lax.while_loop(lambda carry: (carry[0] < steps) & ~carry[2].all(), body, carry)[3]


def draw(space: EdgeSpace, policy: Policy, key: Array, batch: int) -> Samples:
    """Draw `batch` independent DAGs from the policy, each with its trajectory's probability ratio."""

    def decide(state: DAGState, done: Array, ratio: Array, key: Array):
        log_stop, log_edges = policy(observe(space, state, jnp.ones((), jnp.float32)))
        action = draw_action(key, log_stop, log_edges)
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


def sample_dags(
    space: EdgeSpace, policy: Policy, key: Array, num_samples: int, *, batch: int = 1000
) -> Samples:
    """`num_samples` independent DAGs.

    They are drawn in whole batches and counted off in the order of drawing, never in that of finishing, which
    would favour short trajectories.
    """
    batches = [
        jax.device_get(_draw_batch(space, policy, part, batch))
        for part in jax.random.split(key, -(-num_samples // batch))
    ]
    return jax.tree.map(lambda *parts: jnp.concatenate(parts)[:num_samples], *batches)


_draw_batch = eqx.filter_jit(draw)


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
