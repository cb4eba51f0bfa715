"""DAGs that grow node after node along their canonical order: one path leads to each DAG.

Of a DAG, always place the smallest label whose parents are all placed: that is its *canonical order*. The
edge that came last is taken from the node that is placed last among those with parents: of its parents the
one with the smallest label, and in the end the parent that is placed latest. As long as that one stays, the
node keeps its place, and the nodes before it keep theirs anyhow. So each DAG has one path, the backward
policy is certain, and nodes get their parents one after another:

- the parents of the present node that may still come were placed before its latest parent and have smaller
  labels than those it has beside that one. What they are worth is a sum over parent sets (`parent_sums`);
- or a node without neighbours gets its first parent, its latest one, if it is then placed last.

Nodes are numbered by their labels here, also in actions.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from gflowdag.gflownet.spaces.dags import DAGSpace
from gflowdag.graph.bits import compress

NUM_FEATURES = 14
_STEEPEST = 20.0  # nats; beyond, a feature says "as good as certain"
_SUREST = 12.0  # nats by which sums of scores may prefer an action: they do not know what is to come


class CanonicalState(NamedTuple):
    """A DAG on its way."""

    adjacency: Array  # bool [d, d], by labels
    gain: Array  # float64 [], log score minus that of the graph it began with


class Observation(NamedTuple):
    """What a policy sees of a state, with log-weights that sums of scores give its actions."""

    nodes: Array  # float32 [d, NUM_FEATURES]
    further: (
        Array  # float32 [d], of a further parent of the present node, relative to none; −inf: not allowed
    )
    starts: (
        Array  # float32 [d, d], of the first edge of another node, each column sums to 1; −inf: not allowed
    )
    present: Array  # int32 [], the node that gets its parents; d in the empty graph
    latest: Array  # int32 [], the action that led here; 0 in the empty graph


class CanonicalSpace(DAGSpace):
    """A problem; arrays, so that it can be traced."""

    sums: Array  # float64 [d, d, 2^(d−1)], see `parent_sums`
    nodes: Array  # int32 [d], the node of each label

    @property
    def num_variables(self) -> int:
        """Number of nodes, `d`."""
        return self.nodes.shape[0]

    def start(self) -> CanonicalState:
        """The empty graph."""
        d = self.num_variables
        return CanonicalState(jnp.zeros((d, d), bool), jnp.zeros((), jnp.float64))

    def state_of(self, built: Array) -> CanonicalState:
        """A given DAG, bool [d, d]; its reward counts from here."""
        return CanonicalState(built[self.nodes][:, self.nodes], jnp.zeros((), jnp.float64))

    def built(self, state: CanonicalState) -> Array:
        """The adjacency matrix, bool [d, d]."""
        labels = jnp.argsort(self.nodes)
        return state.adjacency[labels][:, labels]

    def size(self, state: CanonicalState) -> Array:
        """Number of edges."""
        return state.adjacency.sum(dtype=jnp.int32)

    def observe(self, state: CanonicalState) -> Observation:
        """What each action would be worth, and what is known of the nodes."""
        return _observe(self.sums, state.adjacency)

    def legal(self, state: CanonicalState) -> Array:
        """The edges from which the path leads back here, and always stop."""
        observation = self.observe(state)
        return jnp.append(jnp.isfinite(edge_log_weights(observation)).reshape(-1), True)

    def step(self, state: CanonicalState, action: Array) -> CanonicalState:
        """Add an edge."""
        return self._changed(state, action, True)

    def undo(self, state: CanonicalState, action: Array) -> CanonicalState:
        """Take back an edge."""
        return self._changed(state, action, False)

    def on_the_way(self, key: Array, built: Array) -> tuple[CanonicalState, Array, Array]:
        """A random state on the only path."""
        end = self.state_of(built)
        when, size = times(end.adjacency), self.size(end)
        time = jax.random.randint(key, (), 0, size + 1, jnp.int32)
        state = end._replace(adjacency=end.adjacency & (when < time))
        return state, jnp.append(when.reshape(-1) == time, time == size), size

    def log_paths(self, num_added: Array) -> Array:
        """There is one."""
        return jnp.zeros_like(num_added)

    def _changed(self, state: CanonicalState, action: Array, present: bool) -> CanonicalState:
        source, target = jnp.divmod(action, self.num_variables)
        changed = state.adjacency.at[source, target].set(present)
        bits = 1 << jnp.arange(self.num_variables, dtype=jnp.int32)
        before, after = (
            self.sums[target, 0, compress(jnp.where(graph[:, target], bits, 0).sum(dtype=jnp.int32), target)]
            for graph in (state.adjacency, changed)
        )
        return CanonicalState(changed, state.gain + after - before)


def canonical_space(table: NDArray[np.float64], order: NDArray) -> CanonicalSpace:
    """The state space of a dense score table.

    Args:
        table: float64 [d, 2^(d−1)] (`Score.dense_table`), without required edges.
        order: the nodes by their labels, int [d]. Any is right; one that is nearly causal makes it easy.
    """
    return CanonicalSpace(jnp.asarray(parent_sums(table, order)), jnp.asarray(order, jnp.int32))


def parent_sums(table: NDArray[np.float64], order: NDArray) -> NDArray[np.float64]:
    """Log-sums over parent sets of which the larger labels are fixed, float64 [d, d, 2^(d−1)].

    `out[j, k, P]` sums the scores of node `j` over all sets that agree with `P` but for the `k` smallest
    other labels, and hold some of those of `P` among these: the stages of one zeta transform. Nodes are
    numbered by their labels, parent sets are compressed as in the table.
    """
    order = np.asarray(order)
    d = len(order)
    out = np.empty((d, d, 1 << (d - 1)))
    for label, node in enumerate(order):
        others = np.delete(order, label)
        # Axis 0 of the cube is the highest bit. Bit k of the result is the k-th smallest other label.
        bits = others - (others > node)
        cube = table[node].reshape((2,) * (d - 1))
        out[label, 0] = cube.transpose(d - 2 - bits[::-1]).reshape(-1)
        for stage in range(d - 1):
            sums = out[label, stage].reshape(-1, 2, 1 << stage)
            summed = out[label, stage + 1].reshape(-1, 2, 1 << stage)
            summed[:, 0] = sums[:, 0]
            summed[:, 1] = np.logaddexp(sums[:, 0], sums[:, 1])
    return out


def edge_log_weights(observation: Observation) -> Array:
    """The log-weights of all edges in one matrix, float32 [d, d]; −inf where not allowed."""
    column = jnp.arange(len(observation.further)) == observation.present
    return jnp.where(column, observation.further[:, None], observation.starts)


def times(adjacency: Array) -> Array:
    """When each edge comes on the path to a DAG, int32 [d, d], counted from 0; −1 where there is none."""
    nodes = jnp.arange(adjacency.shape[0], dtype=jnp.int32)
    position, _ = canonical_positions(adjacency)
    latest = jnp.argmax(jnp.where(adjacency, position[:, None], -1), axis=0)
    others = adjacency & (nodes[:, None] != latest)
    count = adjacency.sum(axis=0, dtype=jnp.int32)
    before = jnp.where(position[:, None] < position, count[:, None], 0).sum(axis=0, dtype=jnp.int32)
    larger = jnp.cumsum(others[::-1], axis=0, dtype=jnp.int32)[::-1]  # the edge itself included
    return jnp.where(adjacency, before + jnp.where(others, larger, 0), -1)


def canonical_positions(adjacency: Array) -> tuple[Array, Array]:
    """The place of each node in the canonical order, int32 [d], and the order itself, int32 [d]."""
    d = adjacency.shape[0]

    def place(time: Array | int, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        missing, position, order = carry
        node = jnp.argmax((missing == 0) & (position == d)).astype(jnp.int32)
        time = jnp.asarray(time, jnp.int32)
        return missing - adjacency[node], position.at[node].set(time), order.at[time].set(node)

    missing = adjacency.sum(axis=0, dtype=jnp.int32)
    carry = missing, jnp.full(d, d, jnp.int32), jnp.zeros(d, jnp.int32)
    return jax.lax.fori_loop(0, d, place, carry)[1:]


class _Frontier(NamedTuple):
    """Where a path has come to."""

    position: Array  # int32 [d], in the canonical order
    order: Array  # int32 [d]
    alone: Array  # bool [d], nodes without neighbours
    present: Array  # int32 [], the last node that has parents; 0 in the empty graph
    reached: Array  # int32 [], its position; −1 in the empty graph
    parents: Array  # bool [d], its parents
    first: Array  # int32 [], the latest of them


def _observe(sums: Array, adjacency: Array) -> Observation:
    d = adjacency.shape[0]
    nodes = jnp.arange(d, dtype=jnp.int32)
    position, order = canonical_positions(adjacency)
    has_parents, has_children = adjacency.any(axis=0), adjacency.any(axis=1)
    alone = ~(has_parents | has_children)
    begun = has_parents.any()
    present = jnp.argmax(jnp.where(has_parents, position, -1)).astype(jnp.int32)
    reached = jnp.where(begun, position[present], -1)
    parents = adjacency[:, present]
    first = jnp.argmax(jnp.where(parents, position, -1)).astype(jnp.int32)
    at = _Frontier(position, order, alone, present, reached, parents, first)

    starts, waiting, open_sums = _starts(sums, at)
    # A node without neighbours that becomes a parent stays without parents: it gives up what it waits for.
    given_up = jnp.where(alone, jnp.logaddexp(waiting, 0.0), 0.0)
    further, lowest = _further(sums, at)
    shares = starts - given_up[:, None]
    shares = shares - jax.nn.logsumexp(shares, axis=0, where=jnp.isfinite(shares))
    latest = jnp.where(begun, lowest * d + present, 0)

    passed_over = alone & (position <= reached)
    is_first, is_present = parents & (nodes == first), begun & (nodes == present)
    flags = [has_parents, has_children, alone, passed_over, parents, is_first, is_present]
    now = jax.nn.logsumexp(starts, axis=0)
    values = [further, further - given_up, waiting, now, open_sums - now, given_up]
    columns = [*flags, position / d, *(_feature(value) for value in values)]
    return Observation(
        jnp.stack([column.astype(jnp.float32) for column in columns], axis=-1),
        _bounded(jnp.append(further - given_up, 0.0))[:-1],
        _bounded(shares),
        jnp.where(begun, present, d),
        latest.astype(jnp.int32),
    )


def _further(sums: Array, at: _Frontier) -> tuple[Array, Array]:
    """Log-weights of further parents of the present node, relative to the parents it has; and its last one.

    Of each: the sum over all sets that go on with it, float64 [d].
    """
    d = len(at.position)
    nodes = jnp.arange(d, dtype=jnp.int32)
    bits = 1 << nodes
    others = at.parents & (nodes != at.first)
    lowest = jnp.where(others.any(), jnp.argmax(others), d)
    free = at.parents.any() & (at.position < at.position[at.first]) & ~at.parents & (nodes < lowest)
    free_bits = jnp.where(free, bits, 0)
    has = jnp.where(at.parents, bits, 0).sum(dtype=jnp.int32)
    index = has | bits | (jnp.cumsum(free_bits, dtype=jnp.int32) - free_bits)
    stage = nodes - (nodes > at.present)

    def total(index: Array) -> Array:
        return sums[at.present, stage, compress(index, at.present)]

    # Among the smaller labels the sums hold sets without the latest parent too: these do not count.
    stays = log_difference(total(index), total(index & ~(1 << at.first)))
    weights = (
        jnp.where(at.first < nodes, stays, total(index)) - sums[at.present, 0, compress(has, at.present)]
    )
    return jnp.where(free, weights, -jnp.inf), jnp.where(others.any(), lowest, at.first)


def _starts(sums: Array, at: _Frontier) -> tuple[Array, Array, Array]:
    """Log-weights of first edges, float64 [d, d]: of each, all parent sets with this latest parent.

    Also, for nodes without neighbours, the log-sums of the parent sets that they may have at once, [d], and
    of all parent sets, [d]. All are relative to the empty set.
    """
    d = len(at.position)
    nodes = jnp.arange(d, dtype=jnp.int32)
    bits = 1 << nodes
    prefixes = jnp.append(0, jnp.cumsum(bits[at.order], dtype=jnp.int32))
    totals = sums[nodes[:, None], d - 1, compress(prefixes & ~bits[:, None], nodes[:, None])]  # [node, time]
    totals = totals - sums[:, 0, 0][:, None]
    latest = log_difference(totals[:, 1:], totals[:, :-1])[:, at.position].T  # [parent, node]
    before = at.position <= at.reached
    # A node that was passed over by a larger label needs it, or a later node, as a parent.
    passed = jnp.where(before[:, None] & (nodes[:, None] > nodes), at.position[:, None], -1).max(axis=0)
    latest = jnp.where(at.alone & (at.position[:, None] >= passed), latest, -jnp.inf)
    waiting = jax.nn.logsumexp(jnp.where(before[:, None], latest, -jnp.inf), axis=0)
    return latest, waiting, jnp.where(at.alone, totals[:, -1], -jnp.inf)


def log_difference(larger: Array, smaller: Array) -> Array:
    """`log(exp larger − exp smaller)`; −inf where they are equal."""
    ratio = jnp.where(smaller < larger, smaller - larger, -jnp.inf)
    return jnp.where(smaller < larger, larger + jnp.log(-jnp.expm1(ratio)), -jnp.inf)


def _bounded(log_weights: Array) -> Array:
    """Log-weights within `_SUREST` nats of the largest, in each column; −inf stays."""
    largest = log_weights.max(axis=0)
    bounded = jnp.maximum(log_weights, jnp.where(jnp.isfinite(largest), largest - _SUREST, 0.0))
    return jnp.where(jnp.isfinite(log_weights), bounded, -jnp.inf).astype(jnp.float32)


def _feature(value: Array) -> Array:
    bounded = jnp.clip(value, -_STEEPEST, _STEEPEST)
    return jnp.where(jnp.isfinite(value), bounded, -_STEEPEST) / 5
