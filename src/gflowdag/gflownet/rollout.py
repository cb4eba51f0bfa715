"""Whole trajectories under a policy: recorded for training, or only their ends for sampling."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.devices import gathered, split
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

# Draws the actions of a batch, int32 [n]: edges by their flat index, d² to stop. Told a key, the log
# probabilities [n, d² + 1], the graphs (leaves [n, …]) and which of them are finished, bool [n].
Chooser = Callable[[Array, Array, EdgeState, Array], Array]


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


def independent(key: Array, log_probabilities: Array, graphs: EdgeState, done: Array) -> Array:
    """Actions drawn independently of each other; see `Chooser`."""
    del graphs, done
    keys = split(jax.random.split(key, len(log_probabilities)))
    return jax.vmap(lambda key, row: draw_action(key, row[-1], row[:-1]))(keys, log_probabilities)


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


def draw(
    space: EdgeSpace, policy: Policy, key: Array, batch: int, *, choose: Chooser = independent
) -> Samples:
    """Draw `batch` DAGs from the policy, each with its trajectory's probability ratio.

    Args:
        space: the problem.
        policy: what chooses edges.
        key: PRNG key.
        batch: number of DAGs.
        choose: how the actions of one step are drawn; by default independently.
    """

    def look(state: DAGState, arrived: Array) -> tuple[Array, Array]:
        decision = policy(observe(space, state, jnp.ones((), jnp.float32)))
        actions = jnp.append(decision.log_edges.reshape(-1), decision.log_stop)
        return actions, jnp.append(decision.log_removals.reshape(-1), 0.0)[arrived]

    def body(carry):
        t, states, done, arrived, ratio = carry
        log_probabilities, backward = jax.vmap(look)(states, arrived)
        action = choose(jax.random.fold_in(key, t), log_probabilities, states.graph, done)
        forward = jnp.take_along_axis(log_probabilities, action[:, None], axis=1)[:, 0]
        after, ends = jax.vmap(lambda *row: _apply(space, *row))(states, done, action)
        return t + 1, after, ends, action, ratio + jnp.where(done, 0.0, backward - forward)

    states, done = _starts(space, batch)
    nowhere = jnp.full(batch, space.num_variables**2, jnp.int32)
    carry = (0, states, done, nowhere, jnp.zeros(batch, jnp.float64))
    _, states, _, _, ratio = jax.lax.while_loop(lambda carry: ~carry[2].all(), body, carry)
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


@eqx.filter_jit
def _draw_batch(space: EdgeSpace, policy: Policy, key: Array, batch: int) -> Samples:
    return gathered(draw(space, policy, key, batch))


def _starts(space: EdgeSpace, batch: int) -> tuple[DAGState, Array]:
    states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (batch, *leaf.shape)), start(space))
    return split(states), split(jnp.zeros(batch, bool))


def _apply(space: EdgeSpace, state: DAGState, done: Array, action: Array) -> tuple[DAGState, Array]:
    """The state after `action`, and whether it is final."""
    ends = done | (action == space.num_variables**2)
    after = add_edge(space, state, jnp.where(ends, 0, action))
    return jax.tree.map(lambda new, old: jnp.where(ends, old, new), after, state), ends
