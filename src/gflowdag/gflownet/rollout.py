"""Whole trajectories under a policy: recorded for training, or only their ends for sampling."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

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
    observe,
    start,
)
from gflowdag.graph.incremental import EdgeState
from gflowdag.runtime.devices import gathered, split

# Draws the actions of a batch, int32 [n]: edges by their flat index, d² to stop. Told a key, the log
# probabilities [n, d² + 1], the graphs (leaves [n, …]) and which of them are finished, bool [n].
Chooser = Callable[[Array, Array, EdgeState, Array], Array]

_PART = 32  # batches in one compiled run, whose graphs are on the device together


class Trajectories(NamedTuple):
    """A batch of recorded trajectories, padded to the longest possible."""

    observation: Observation  # leaves [steps, batch, …]
    action: Array  # int32 [steps, batch], flat index of the edge, d² to stop
    active: Array  # bool [steps, batch], a decision was taken here
    gain: Array  # float64 [steps, batch], log score minus that of the start state

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
    """Record a batch of trajectories; every one of them ends in a stop.

    The loop ends with the longest trajectory of the batch, not with the longest possible one.

    Args:
        space: the problem.
        policy: what chooses edges.
        key: PRNG key.
        exponent: of the reward, float32 [].
        sharpness: float32 [batch]; trajectory `i` follows the policy to the power of `sharpness[i]`,
            normalised: 1 is the policy itself, less explores.
    """
    steps, batch = space.max_steps, len(sharpness)

    def decide(state: DAGState, done: Array, key: Array, sharpness: Array):
        observation = observe(space, state, exponent)
        decision = policy(observation)
        action = draw_action(key, sharpness * decision.log_stop, sharpness * decision.log_edges)
        after, ends = _apply(space, state, done, action)
        return after, ends, Trajectories(observation, action, ~done, state.gain)

    def body(carry):
        t, states, done, record = carry
        keys = split(jax.random.split(jax.random.fold_in(key, t), batch))
        states, done, row = jax.vmap(decide)(states, done, keys, sharpness)
        return t + 1, states, done, jax.tree.map(lambda rows, row: rows.at[t].set(row), record, row)

    states, done = _starts(space, batch)
    row = jax.eval_shape(jax.vmap(decide), states, done, jax.random.split(key, batch), sharpness)[2]
    record = jax.tree.map(lambda leaf: jnp.zeros((steps, *leaf.shape), leaf.dtype), row)
    carry = (0, states, done, split(record, axis=1))
    return jax.lax.while_loop(lambda carry: (carry[0] < steps) & ~carry[2].all(), body, carry)[3]


def draw_together(space: EdgeSpace, policy: Policy, key: Array, batch: int, choose: Chooser) -> Samples:
    """Draw `batch` DAGs step by step, all of them at once.

    Args:
        space: the problem.
        policy: what gives edges their probabilities.
        key: PRNG key.
        batch: number of DAGs.
        choose: how the actions of one step are drawn.
    """

    def body(carry):
        t, states, done, arrived, ratio = carry
        log_probabilities, backward = jax.vmap(partial(_look, space, policy))(states, arrived)
        action = choose(jax.random.fold_in(key, t), log_probabilities, states.graph, done)
        forward = jnp.take_along_axis(log_probabilities, action[:, None], axis=1)[:, 0]
        after, ends = jax.vmap(partial(_apply, space))(states, done, action)
        return t + 1, after, ends, action, ratio + jnp.where(done, 0.0, backward - forward)

    states, done = _starts(space, batch)
    nowhere = jnp.full(batch, space.num_variables**2, jnp.int32)
    carry = (0, states, done, nowhere, jnp.zeros(batch, jnp.float64))
    _, states, _, _, ratio = jax.lax.while_loop(lambda carry: ~carry[2].all(), body, carry)
    return _samples(space, states, ratio)


def sample_dags(
    space: EdgeSpace, policy: Policy, key: Array, num_samples: int, *, batch: int | None = None
) -> Samples:
    """`num_samples` independent DAGs.

    Where one trajectory ends the next one begins, so that short ones do not wait for long ones. They are
    numbered as they begin, all of them are finished, and each has random numbers of its own: which graphs
    come out does not depend on `batch`, and none is favoured for being short.

    Args:
        space: the problem.
        policy: what chooses edges.
        key: PRNG key.
        num_samples: number of DAGs.
        batch: trajectories side by side; by default 250 on a CPU and 1000 on a GPU.
    """
    batch = batch or (250 if jax.default_backend() == "cpu" else 1000)
    part = min(num_samples, _PART * batch)
    parts = [
        jax.device_get(_draw_part(space, policy, key, jnp.asarray(first, jnp.int32), part, min(batch, part)))
        for first in range(0, num_samples, part)
    ]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[:num_samples], *parts)


class _Lane(NamedTuple):
    """A trajectory on its way."""

    number: Array  # int32 [], which one it is
    state: DAGState
    arrived: Array  # int32 [], the action that led here
    ratio: Array  # float64 [], so far


@eqx.filter_jit
def _draw_part(
    space: EdgeSpace, policy: Policy, key: Array, first: Array, num_samples: int, batch: int
) -> Samples:
    """Trajectories number `first` to `first + num_samples - 1`, `batch` of them side by side."""

    origin, stop = start(space), jnp.asarray(space.num_variables**2, jnp.int32)

    def begin(number: Array) -> _Lane:
        return _Lane(number, origin, stop, jnp.zeros((), jnp.float64))

    def step(lane: _Lane) -> tuple[_Lane, Array]:
        log_probabilities, backward = _look(space, policy, lane.state, lane.arrived)
        own = jax.random.fold_in(jax.random.fold_in(key, lane.number), lane.state.graph.num_edges)
        action = draw_action(own, log_probabilities[-1], log_probabilities[:-1])
        state, ends = _apply(space, lane.state, jnp.zeros((), bool), action)
        return _Lane(lane.number, state, action, lane.ratio + backward - log_probabilities[action]), ends

    def body(carry):
        num_done, following, lanes, found = carry
        lanes, ends = jax.vmap(step)(lanes)
        place = jnp.where(ends, lanes.number - first, num_samples)  # out of range: not stored
        ended = _samples(space, lanes.state, lanes.ratio)
        found = jax.tree.map(lambda rows, new: rows.at[place].set(new, mode="drop"), found, ended)
        fresh = jax.vmap(begin)(following + jnp.cumsum(ends, dtype=jnp.int32) - 1)
        lanes = jax.tree.map(
            lambda new, old: jnp.where(ends.reshape(-1, *(1,) * (new.ndim - 1)), new, old), fresh, lanes
        )
        num_done += (place < num_samples).sum(dtype=jnp.int32)
        return num_done, following + ends.sum(dtype=jnp.int32), lanes, found

    lanes = split(jax.vmap(begin)(first + jnp.arange(batch, dtype=jnp.int32)))
    example = jax.eval_shape(lambda lanes: _samples(space, lanes.state, lanes.ratio), lanes)
    found = jax.tree.map(lambda leaf: jnp.zeros((num_samples, *leaf.shape[1:]), leaf.dtype), example)
    carry = (jnp.zeros((), jnp.int32), first + batch, lanes, found)
    return gathered(jax.lax.while_loop(lambda carry: carry[0] < num_samples, body, carry)[3])


def _look(space: EdgeSpace, policy: Policy, state: DAGState, arrived: Array) -> tuple[Array, Array]:
    """Log-probabilities of all actions, stop last, [d² + 1], and of undoing the one that led here, []."""
    decision = policy(observe(space, state, jnp.ones((), jnp.float32)))
    actions = jnp.append(decision.log_edges.reshape(-1), decision.log_stop)
    return actions, jnp.append(decision.log_removals.reshape(-1), 0.0)[arrived]


def _samples(space: EdgeSpace, states: DAGState, ratio: Array) -> Samples:
    added = states.graph.num_edges - space.required.sum(dtype=jnp.int32)
    return Samples(states.graph.adjacency, states.gain, ratio, added)


def _starts(space: EdgeSpace, batch: int) -> tuple[DAGState, Array]:
    states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), start(space))
    return split(states), split(jnp.zeros(batch, bool))


def _apply(space: EdgeSpace, state: DAGState, done: Array, action: Array) -> tuple[DAGState, Array]:
    """The state after `action`, and whether it is final."""
    ends = done | (action == space.num_variables**2)
    after = add_edge(space, state, jnp.where(ends, 0, action))
    return jax.tree.map(lambda new, old: jnp.where(ends, old, new), after, state), ends
