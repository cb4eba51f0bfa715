"""Trajectories backwards, from graphs that a policy did not draw: to learn from, or to weigh."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gflowdag.gflownet.edges import (
    NEVER,
    DAGState,
    Decision,
    EdgeSpace,
    Observation,
    Policy,
    draw_action,
    observe,
    remove_edge,
    state_of,
)
from gflowdag.gflownet.rollout import Trajectories
from gflowdag.runtime.devices import split


def walk_back(
    space: EdgeSpace, policy: Policy, key: Array, graphs: Array, *, exponent: Array
) -> Trajectories:
    """Record a trajectory to each of given DAGs, its order by the backward policy.

    Args:
        space: the problem.
        policy: what chooses edges backwards.
        key: PRNG key.
        graphs: bool [n, d, d], each with all required edges.
        exponent: of the reward, float32 [].
    """
    steps, batch = space.max_steps, len(graphs)

    def undo(state: DAGState, done: Array, taken: Array, key: Array):
        observation = observe(space, state, exponent)
        before, ends, edge = _step_back(space, state, done, key, observation, policy(observation))
        return before, ends, edge, Trajectories(observation, taken, ~done, state.gain)

    def body(carry):
        t, states, done, taken, record = carry
        num_added = states.graph.num_edges - space.required.sum(dtype=jnp.int32)
        place = jnp.where(done, steps, num_added), jnp.arange(batch)  # out of range: not stored
        keys = split(jax.random.split(jax.random.fold_in(key, t), batch))
        states, done, taken, row = jax.vmap(undo)(states, done, taken, keys)
        record = jax.tree.map(lambda rows, new: rows.at[place].set(new, mode="drop"), record, row)
        return t + 1, states, done, taken, record

    states, done, stop = _ends(space, graphs)
    row = jax.eval_shape(jax.vmap(undo), states, done, stop, jax.random.split(key, batch))[-1]
    record = jax.tree.map(lambda leaf: jnp.zeros((steps, *leaf.shape), leaf.dtype), row)
    carry = (0, states, done, stop, split(record._replace(action=record.action + stop), axis=1))
    _, states, *_, record = jax.lax.while_loop(lambda carry: ~carry[2].all(), body, carry)
    return record._replace(gain=record.gain - states.gain)  # counted from the graph, until here


@eqx.filter_jit
def retrace(space: EdgeSpace, policy: Policy, key: Array, graphs: Array | np.ndarray) -> Array:
    """Walk back from given DAGs by the backward policy; say how likely the forward policy is to come there.

    Args:
        space: the problem.
        policy: what chooses edges, forwards and backwards.
        key: PRNG key.
        graphs: bool [n, d, d], each with all required edges.

    Returns:
        Σ log P_B − Σ log P_F over one trajectory to each graph, the final stop included, float64 [n]. Added
        to the log score of the graph it is the trajectory's log importance weight.
    """

    def undo(state: DAGState, done: Array, taken: Array, ratio: Array, key: Array):
        observation = observe(space, state, jnp.ones((), jnp.float32))
        decision = policy(observation)
        forward = jnp.append(decision.log_edges.reshape(-1), decision.log_stop)[taken]
        before, ends, edge = _step_back(space, state, done, key, observation, decision)
        backward = jnp.where(ends, 0.0, decision.log_removals.reshape(-1)[edge])
        return before, ends, edge, ratio + jnp.where(done, 0.0, backward - forward)

    def body(carry):
        t, states, done, taken, ratio = carry
        keys = jax.random.split(jax.random.fold_in(key, t), len(graphs))
        return t + 1, *jax.vmap(undo)(states, done, taken, ratio, keys)

    carry = (0, *_ends(space, jnp.asarray(graphs)), jnp.zeros(len(graphs), jnp.float64))
    return jax.lax.while_loop(lambda carry: ~carry[2].all(), body, carry)[-1]


def _ends(space: EdgeSpace, graphs: Array) -> tuple[DAGState, Array, Array]:
    """The states of given graphs, that none is back at the start, and the stop that was taken in each."""
    states = jax.vmap(lambda graph: state_of(space, graph))(graphs)
    stop = jnp.full(len(graphs), space.num_variables**2, jnp.int32)
    return split(states), split(jnp.zeros(len(graphs), bool)), split(stop)


def _step_back(
    space: EdgeSpace, state: DAGState, done: Array, key: Array, observation: Observation, decision: Decision
) -> tuple[DAGState, Array, Array]:
    """The state before an edge that the backward policy draws, whether it was the start, and the edge."""
    ends = done | ~observation.removable.any()
    edge = jnp.where(ends, 0, draw_action(key, jnp.float32(2 * NEVER), decision.log_removals))
    before = remove_edge(space, state, edge)
    return jax.tree.map(lambda new, old: jnp.where(ends, old, new), before, state), ends, edge
