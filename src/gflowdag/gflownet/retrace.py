"""Trajectories backwards: how likely a policy is to come to graphs that it did not draw."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gflowdag.gflownet.edges import (
    NEVER,
    DAGState,
    EdgeSpace,
    Policy,
    draw_action,
    observe,
    remove_edge,
    state_of,
)


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
        ends = done | ~observation.removable.any()
        edge = jnp.where(ends, 0, draw_action(key, jnp.float32(2 * NEVER), decision.log_removals))
        backward = jnp.where(ends, 0.0, decision.log_removals.reshape(-1)[edge])
        before = remove_edge(space, state, edge)
        before = jax.tree.map(lambda new, old: jnp.where(ends, old, new), before, state)
        return before, ends, edge, ratio + jnp.where(done, 0.0, backward - forward)

    def body(carry):
        t, states, done, taken, ratio = carry
        keys = jax.random.split(jax.random.fold_in(key, t), len(graphs))
        return t + 1, *jax.vmap(undo)(states, done, taken, ratio, keys)

    states = jax.vmap(lambda graph: state_of(space, graph))(jnp.asarray(graphs))
    stop = jnp.full(len(graphs), space.num_variables**2, jnp.int32)
    carry = (0, states, jnp.zeros(len(graphs), bool), stop, jnp.zeros(len(graphs), jnp.float64))
    return jax.lax.while_loop(lambda carry: ~carry[2].all(), body, carry)[-1]
