"""The edge-wise state space: DAGs that grow by one legal edge at a time, in any order."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.errors import TooLargeError
from gflowdag.gflownet.spaces import NEVER, Decision
from gflowdag.gflownet.spaces.dags import DAGSpace
from gflowdag.graph import incremental
from gflowdag.graph.incremental import EdgeState
from gflowdag.score.base import Score
from gflowdag.score.room import Room, make_room

MAX_MEMORY = 8 * 2**30  # bytes that the trajectories of one iteration may take on a device


class DAGState(NamedTuple):
    """A partially built DAG."""

    graph: EdgeState
    scores: Any  # state of the deltas
    gain: Array  # float64 [], log score minus that of the graph it began with


class Observation(NamedTuple):
    """What a policy sees of a state."""

    adjacency: Array  # bool [d, d]
    ancestors: Array  # bool [d, d]
    legal: Array  # bool [d, d], edges that may be added
    removable: Array  # bool [d, d], edges that may be taken back
    deltas: Array  # float32 [d, d], change of the tempered log reward by each legal edge, else 0
    exponent: Array  # float32 [], exponent of the reward, 1 for the posterior itself


class EdgeSpace(DAGSpace):
    """A problem: the score's deltas and what knowledge allows.

    Spaces of equal `d` can be stacked.
    """

    deltas: Any  # `score.deltas.Deltas`
    required: Array  # bool [d, d], edges of the start state
    forbidden: Array  # bool [d, d]
    room: Room  # limits on parent sets
    exponent: Array  # float32 [], of the reward in what policies see: 1 for the posterior; see `tempered`

    @property
    def num_variables(self) -> int:
        """Number of nodes, `d`."""
        return self.required.shape[-1]

    def start(self) -> DAGState:
        """The DAG of the required edges."""
        return self.state_of(self.required)

    def state_of(self, built: Array) -> DAGState:
        """A given DAG, bool [d, d]; its reward counts from here."""
        graph = incremental.from_adjacency(built)
        return DAGState(graph, self.deltas.init(built), jnp.zeros((), jnp.float64))

    def built(self, state: DAGState) -> Array:
        """The adjacency matrix, bool [d, d]."""
        return state.graph.adjacency

    def size(self, state: DAGState) -> Array:
        """Number of edges, the required ones included."""
        return state.graph.num_edges

    def legal_edges(self, graph: EdgeState) -> Array:
        """Edges that close no cycle and that knowledge and limits allow, bool [d, d]."""
        return incremental.legal_edges(graph) & ~self.forbidden & self.room.one_more(graph.adjacency)

    def legal(self, state: DAGState) -> Array:
        """The legal edges, and always stop."""
        return jnp.append(self.legal_edges(state.graph).reshape(-1), True)

    def observe(self, state: DAGState) -> Observation:
        """The graph, the legal edges and their deltas."""
        legal = self.legal_edges(state.graph)
        deltas = tempered(self.num_variables, self.deltas.all(state.scores), 1, self.exponent)
        deltas = jnp.where(legal, deltas, 0.0).astype(jnp.float32)
        removable = state.graph.adjacency & ~self.required
        return Observation(
            state.graph.adjacency, state.graph.ancestors, legal, removable, deltas, self.exponent
        )

    def step(self, state: DAGState, action: Array) -> DAGState:
        """Add an edge."""
        source, target = jnp.divmod(action, self.num_variables)
        delta = self.deltas.all(state.scores)[source, target]
        return DAGState(
            incremental.add_edge(state.graph, source, target),
            self.deltas.add(state.scores, source, target),
            state.gain + delta,
        )

    def undo(self, state: DAGState, action: Array) -> DAGState:
        """Take back an edge; the closure is computed anew, in O(d³)."""
        source, target = jnp.divmod(action, self.num_variables)
        delta = self.deltas.all_removals(state.scores)[source, target]
        return DAGState(
            incremental.from_adjacency(state.graph.adjacency.at[source, target].set(False)),
            self.deltas.remove(state.scores, source, target),
            state.gain + delta,
        )

    def on_the_way(self, key: Array, built: Array) -> tuple[DAGState, Array, Array]:
        """Some of the edges: in random order, every set of them is met, uniform among those of its size."""
        free = built & ~self.required
        size_key, edge_key = jax.random.split(key)
        # Each edge is in the state with one common, uniform probability: their number is then uniform.
        share = jax.random.uniform(size_key, (), jnp.float32)
        present = jax.random.uniform(edge_key, built.shape, jnp.float32) < share
        missing = free & ~present
        state = self.state_of(self.required | (free & present))
        return state, jnp.append(missing.reshape(-1), ~missing.any()), free.sum(dtype=jnp.int32)

    def log_paths(self, num_added: Array) -> Array:
        """Edges are added in any order."""
        return jax.lax.lgamma(num_added + 1.0)


def edge_space(score: Score) -> EdgeSpace:
    """The state space of a score with its knowledge."""
    required, forbidden, _ = score.constraints
    return EdgeSpace(
        jax.tree.map(jnp.asarray, score.deltas()),
        jnp.asarray(required, bool),
        jnp.asarray(forbidden, bool),
        make_room(score),
        jnp.ones((), jnp.float32),
    )


def edge_decision(log_stop: Array, log_edges: Array, log_removals: Array) -> Decision:
    """A decision from log probabilities of stopping, [], of adding and of taking back each edge, [d, d].

    Where every state is complete, its flow is known up to the policy: `F(G) = R(G) / P(stop | G)`.
    """
    forward = jnp.append(log_edges.reshape(-1), log_stop)
    backward = jnp.append(log_removals.reshape(-1), jnp.float32(NEVER))  # stop leads to no other state
    return Decision(forward, backward, -log_stop)


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


def uniform_removals(removable: Array) -> Array:
    """Log probabilities of the uniform backward policy, float32 [d, d]."""
    return jnp.where(removable, -jnp.log(jnp.maximum(removable.sum(), 1).astype(jnp.float32)), NEVER)


def uniform_policy(observation: Observation) -> Decision:
    """The policy that takes every legal edge, and stop, with equal probability."""
    log_share = -jnp.log(observation.legal.sum() + 1.0).astype(jnp.float32)
    log_edges = jnp.where(observation.legal, log_share, NEVER)
    return edge_decision(log_share, log_edges, uniform_removals(observation.removable))


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
