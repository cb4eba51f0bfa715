"""The edge-wise state space: DAGs that grow by one legal edge at a time and may stop anywhere.

Functions here take one state; `jax.vmap` makes batches. A policy is any callable from an `Observation` to a
`Decision`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.errors import TooLargeError
from gflowdag.graph import incremental
from gflowdag.graph.incremental import EdgeState
from gflowdag.score.base import Score

NEVER = -1e9  # log probability of what cannot happen: finite, so that gradients of masked entries are zero
MAX_MEMORY = 8 * 2**30  # bytes that the trajectories of one iteration may take on a device

Policy = Callable[["Observation"], "Decision"]


class EdgeSpace(NamedTuple):
    """A problem: the score's deltas and what knowledge allows. Spaces of equal `d` can be stacked."""

    deltas: Any  # `score.deltas.Deltas`
    required: Array  # bool [d, d], edges of the start state
    forbidden: Array  # bool [d, d]
    max_parents: Array  # int32 []

    @property
    def num_variables(self) -> int:
        """Number of nodes, `d`."""
        return self.required.shape[-1]

    @property
    def max_steps(self) -> int:
        """The longest trajectory: a complete DAG, then stop."""
        return self.num_variables * (self.num_variables - 1) // 2 + 1


class DAGState(NamedTuple):
    """A partially built DAG."""

    graph: EdgeState
    scores: Any  # state of the deltas
    gain: Array  # float64 [], log score minus that of the start state


class Observation(NamedTuple):
    """What a policy sees of a state."""

    adjacency: Array  # bool [d, d]
    ancestors: Array  # bool [d, d]
    legal: Array  # bool [d, d], edges that may be added
    removable: Array  # bool [d, d], edges that may be taken back
    deltas: Array  # float32 [d, d], change of the tempered log reward by each legal edge, else 0
    exponent: Array  # float32 [], exponent of the reward, 1 for the posterior itself


class Decision(NamedTuple):
    """What a policy says about a state: log probabilities, forwards and backwards."""

    log_stop: Array  # float32 []
    log_edges: Array  # float32 [d, d], of adding each edge; with stop they sum to one
    log_removals: Array  # float32 [d, d], of each edge to be the one that was added last


def edge_space(score: Score) -> EdgeSpace:
    """The state space of a score with its knowledge."""
    required, forbidden, limit = score.constraints
    d = score.num_variables
    return EdgeSpace(
        jax.tree.map(jnp.asarray, score.deltas()),
        jnp.asarray(required, bool),
        jnp.asarray(forbidden, bool),
        jnp.asarray(d if limit is None else limit, jnp.int32),
    )


def start(space: EdgeSpace) -> DAGState:
    """The DAG of the required edges."""
    return state_of(space, space.required)


def state_of(space: EdgeSpace, adjacency: Array) -> DAGState:
    """A given DAG, bool [d, d]; its gain counts from here."""
    graph = incremental.from_adjacency(adjacency)
    return DAGState(graph, space.deltas.init(adjacency), jnp.zeros((), jnp.float64))


def legal_edges(space: EdgeSpace, graph: EdgeState) -> Array:
    """Edges that close no cycle and that knowledge allows, bool [d, d]."""
    room = graph.adjacency.sum(axis=0) < space.max_parents
    return incremental.legal_edges(graph) & ~space.forbidden & room


def observe(space: EdgeSpace, state: DAGState, exponent: Array) -> Observation:
    """What the policy sees of `state`."""
    legal = legal_edges(space, state.graph)
    deltas = tempered(space.num_variables, space.deltas.all(state.scores), 1, exponent)
    deltas = jnp.where(legal, deltas, 0.0).astype(jnp.float32)
    removable = state.graph.adjacency & ~space.required
    return Observation(state.graph.adjacency, state.graph.ancestors, legal, removable, deltas, exponent)


def tempered(d: int, gain: Array, num_added: Array | int, exponent: Array) -> Array:
    """Log reward, relative to the start state, on the way from an easy target (exponent 0) to the posterior.

    The easy target is a sparse random graph of about d/2 edges, `P(G) ∝ (2(d − 1))^−|G|`: pairs of nodes
    hardly interact in it, and trajectories are short. The flat distribution has about d²/4 edges and is hard
    to learn.

    Args:
        d: number of nodes.
        gain: change of the log score.
        num_added: number of edges that were added.
        exponent: of the reward, float32 [].
    """
    return exponent * gain - (1.0 - exponent) * math.log(2 * (d - 1)) * num_added


def add_edge(space: EdgeSpace, state: DAGState, edge: Array) -> DAGState:
    """Add the legal edge with flat index `edge` = source · d + target."""
    source, target = jnp.divmod(edge, space.num_variables)
    delta = space.deltas.all(state.scores)[source, target]
    return DAGState(
        incremental.add_edge(state.graph, source, target),
        space.deltas.add(state.scores, source, target),
        state.gain + delta,
    )


def remove_edge(space: EdgeSpace, state: DAGState, edge: Array) -> DAGState:
    """Take back the edge with flat index `edge`; the closure is computed anew, in O(d³)."""
    source, target = jnp.divmod(edge, space.num_variables)
    delta = space.deltas.all_removals(state.scores)[source, target]
    return DAGState(
        incremental.from_adjacency(state.graph.adjacency.at[source, target].set(False)),
        space.deltas.remove(state.scores, source, target),
        state.gain + delta,
    )


def uniform_removals(removable: Array) -> Array:
    """Log probabilities of the uniform backward policy, float32 [d, d]."""
    return jnp.where(removable, -jnp.log(jnp.maximum(removable.sum(), 1).astype(jnp.float32)), NEVER)


def draw_action(key: Array, log_stop: Array, log_edges: Array) -> Array:
    """An edge's flat index, or d² to stop, int32 []; the probabilities need not be normalised."""
    logits = jnp.append(log_edges.reshape(-1), log_stop)
    return jnp.argmax(logits + jax.random.gumbel(key, logits.shape, jnp.float32)).astype(jnp.int32)


def uniform_policy(observation: Observation) -> Decision:
    """The policy that takes every legal edge, and stop, with equal probability."""
    log_share = -jnp.log(observation.legal.sum() + 1.0).astype(jnp.float32)
    log_edges = jnp.where(observation.legal, log_share, NEVER)
    return Decision(log_share, log_edges, uniform_removals(observation.removable))


def check_memory(d: int, batch: int, *, limit: int = MAX_MEMORY) -> int:
    """Bytes of the stored trajectories of one batch.

    Raises:
        TooLargeError: they are more than `limit`.
    """
    steps = d * (d - 1) // 2 + 1
    needed = steps * batch * d * d * 8  # four boolean matrices and one of float32 per state
    if needed > limit:
        raise TooLargeError(
            f"{batch} trajectories of up to {steps} steps on {d} variables take {needed / 2**30:.1f} GiB, "
            f"more than the allowed {limit / 2**30:.1f} GiB: use a batch_size of at most "
            f"{int(batch * limit / needed)}"
        )
    return needed
