"""Samples: the ends of trajectories, each with its importance weight; of any state space."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.rollout import Chooser, advance, draw_action, num_taken, starts
from gflowdag.gflownet.spaces import Decision, Policy, StateSpace
from gflowdag.runtime.devices import gathered, split

_PART = 32  # batches in one compiled run, whose objects are on the device together


class Samples(NamedTuple):
    """Ends of trajectories."""

    built: Any  # objects, leaves [n, …]
    log_reward: Array  # float64 [n], relative to the start state
    log_ratio: Array  # float64 [n], Σ log P_B − Σ log P_F over the trajectory, a final stop included
    num_steps: Array  # int32 [n], actions but stop

    @property
    def log_weights(self) -> Array:
        """Log importance weights, relative to the reward of the start state, float64 [n]."""
        return self.log_reward + self.log_ratio


class Defence(NamedTuple):
    """A second policy, known to be spread over everything that counts, in a small share of the trajectories.

    Weights are those of the mixture of both (in fixed shares: the balance heuristic of multiple importance
    sampling, Veach and Guibas 1995), so that what the first policy never draws shows in them.
    """

    policy: Policy  # with the backward policy of the first
    every: int  # one trajectory in so many follows it


def sample(
    space: StateSpace,
    policy: Policy,
    key: Array,
    num_samples: int,
    *,
    batch: int | None = None,
    defence: Defence | None = None,
) -> Samples:
    """The ends of `num_samples` independent trajectories.

    Where one trajectory ends the next one begins, so that short ones do not wait for long ones. They are
    numbered as they begin, all of them are finished, and each has random numbers of its own: what comes out
    does not depend on `batch`, and nothing is favoured for being short.

    Args:
        space: the problem.
        policy: what chooses actions.
        key: PRNG key.
        num_samples: number of trajectories.
        batch: trajectories side by side; by default 250 on a CPU and 1000 on a GPU.
        defence: a second policy for every so-manieth trajectory, the first one included.
    """
    batch = batch or (250 if jax.default_backend() == "cpu" else 1000)
    part = min(num_samples, _PART * batch)
    every = defence.every if defence else 0
    second = defence.policy if defence else None
    parts = [
        jax.device_get(
            _draw_part(
                space,
                policy,
                key,
                jnp.asarray(first, jnp.int32),
                part,
                min(batch, part),
                second,
                every,
            )
        )
        for first in range(0, num_samples, part)
    ]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[:num_samples], *parts)


class _Lane(NamedTuple):
    """A trajectory on its way."""

    number: Array  # int32 [], which one it is
    state: Any
    arrived: Array  # int32 [], the action that led here
    log_ratio: Array  # float64 [], so far
    log_excess: Array  # float64 [], log probability of the actions under the second policy less the first


@eqx.filter_jit
def _draw_part(
    space: StateSpace,
    policy: Policy,
    key: Array,
    first: Array,
    num_samples: int,
    batch: int,
    second: Policy | None,
    every: int,
) -> Samples:
    """Trajectories number `first` to `first + num_samples - 1`, `batch` of them side by side."""
    origin, nothing = space.start(), jnp.zeros((), jnp.float64)

    def begin(number: Array) -> _Lane:
        return _Lane(number, origin, jnp.zeros((), jnp.int32), nothing, nothing)

    def step(lane: _Lane) -> tuple[_Lane, Array]:
        observation = space.observe(lane.state)
        decision = policy(observation)
        own = jax.random.fold_in(jax.random.fold_in(key, lane.number), space.size(lane.state))
        followed, excess = decision.log_forward, jnp.zeros_like(decision.log_forward)
        if second is not None:
            other = second(observation).log_forward
            followed, excess = jnp.where(lane.number % every == 0, other, followed), other - followed
        action = draw_action(own, followed)
        state, ends = advance(space, lane.state, jnp.zeros((), bool), action)
        ratio = lane.log_ratio + _backward(space, decision, lane.state, lane.arrived)
        ratio = ratio - decision.log_forward[action]
        return _Lane(lane.number, state, action, ratio, lane.log_excess + excess[action]), ends

    def ended(lanes: _Lane) -> Samples:
        if second is None:
            return _samples(space, lanes.state, lanes.log_ratio)
        share = 1.0 / every
        mixed = jnp.logaddexp(jnp.log1p(-share), jnp.log(share) + lanes.log_excess)
        return _samples(space, lanes.state, lanes.log_ratio - mixed)

    def body(carry):
        num_done, following, lanes, found = carry
        lanes, ends = jax.vmap(step)(lanes)
        place = jnp.where(ends, lanes.number - first, num_samples)  # out of range: not stored
        found = jax.tree.map(lambda rows, new: rows.at[place].set(new, mode="drop"), found, ended(lanes))
        fresh = jax.vmap(begin)(following + jnp.cumsum(ends, dtype=jnp.int32) - 1)
        lanes = jax.tree.map(
            lambda new, old: jnp.where(ends.reshape(-1, *(1,) * (new.ndim - 1)), new, old), fresh, lanes
        )
        num_done += (place < num_samples).sum(dtype=jnp.int32)
        return num_done, following + ends.sum(dtype=jnp.int32), lanes, found

    lanes = split(jax.vmap(begin)(first + jnp.arange(batch, dtype=jnp.int32)))
    example = jax.eval_shape(ended, lanes)
    found = jax.tree.map(lambda leaf: jnp.zeros((num_samples, *leaf.shape[1:]), leaf.dtype), example)
    carry = (jnp.zeros((), jnp.int32), first + batch, lanes, found)
    return gathered(jax.lax.while_loop(lambda carry: carry[0] < num_samples, body, carry)[3])


def draw_together(space: StateSpace, policy: Policy, choose: Chooser, batch: int) -> Samples:
    """The ends of `batch` trajectories that go on step by step, all of them at once.

    Args:
        space: the problem.
        policy: what gives actions their probabilities.
        choose: how the actions of one step are drawn.
        batch: number of trajectories.
    """

    def look(state: Any, arrived: Array) -> tuple[Any, Decision, Array]:
        observation = space.observe(state)
        decision = policy(observation)
        return observation, decision, _backward(space, decision, state, arrived)

    def body(carry):
        t, states, done, arrived, ratio = carry
        observations, decisions, backward = jax.vmap(look)(states, arrived)
        action = choose(t, states, observations, decisions, done)
        forward = jnp.take_along_axis(decisions.log_forward, action[:, None], axis=1)[:, 0]
        after, ends = jax.vmap(lambda *lane: advance(space, *lane))(states, done, action)
        return t + 1, after, ends, action, ratio + jnp.where(done, 0.0, backward - forward)

    states, done = starts(space, batch)
    carry = (0, states, done, jnp.zeros(batch, jnp.int32), jnp.zeros(batch, jnp.float64))
    _, states, _, _, ratio = jax.lax.while_loop(lambda carry: ~carry[2].all(), body, carry)
    return _samples(space, states, ratio)


def _backward(space: StateSpace, decision: Decision, state: Any, arrived: Array) -> Array:
    """Log probability of undoing the action that led here; 0 in the start state."""
    return jnp.where(num_taken(space, state) == 0, 0.0, decision.log_backward[arrived])


def _samples(space: StateSpace, states: Any, log_ratio: Array) -> Samples:
    """The ends of a batch."""
    return Samples(
        jax.vmap(space.built)(states),
        jax.vmap(space.log_reward)(states),
        log_ratio,
        jax.vmap(lambda state: num_taken(space, state))(states),
    )
