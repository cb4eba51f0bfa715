"""Canonical orders: the weight of all DAGs that share one, without subtraction.

Every DAG has exactly one canonical order: always place the smallest-labelled node whose parents are all placed.
An order is the canonical one of a DAG iff every node has a parent among the nodes placed since the last placed
node with a larger label (that node included): its *window*. Where no larger label was placed there is no
condition. Summing over the parent sets that fulfil it gives each node a weight, and their product over an order is
the total of `R(G)` over the DAGs with that canonical order. Nothing is counted twice, so nothing is biased.

The weights follow from `A_j(v, U)`, the log-sum over the parent sets of `j` inside `U` that contain `v`: with `U`
the nodes placed up to `v`, that is the total of the parent sets of `j` whose *last placed* member is `v`. So the
weight of `j` is a sum over the members of its window, and nothing cancels.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.graph.bits import compress


class OrderTable(NamedTuple):
    """Sums over the parent sets of every node: subsets of its candidates, and single outsiders.

    A dense table is the case in which all other nodes are candidates.
    """

    empty: Array  # float64 [d], log score of each node without parents
    sums: Array  # float64 [d, K, 2^(K−1)], A_j(v, U): node, slot of v, index of U without the bit of v
    outsiders: Array  # float64 [d, d], log score of node j (row) with the one parent v (column) that is no candidate
    slots: Array  # int32 [d, d], slot of v (column) among the candidates of j (row); −1: no candidate

    @property
    def bits(self) -> Array:
        """Bit of node v (column) in the subsets of node j (row), int32 [d, d]; 0 where v is no candidate."""
        return jnp.where(self.slots >= 0, jnp.left_shift(jnp.int32(1), jnp.maximum(self.slots, 0)), 0)


class OrderState(NamedTuple):
    """A partially built order."""

    placed: Array  # bool [d]
    seen: Array  # int32 [d], the placed candidates of each node
    log_weights: Array  # float64 [d], log-weight of each node, were it placed next
    log_totals: Array  # float64 [d], the same without the canonical condition


def empty_order(table: OrderTable) -> OrderState:
    """The order of no nodes."""
    d = table.empty.shape[0]
    return OrderState(jnp.zeros(d, bool), jnp.zeros(d, jnp.int32), table.empty, table.empty)


def place(table: OrderTable, labels: Array, state: OrderState, node: Array) -> OrderState:
    """Append a node, in O(d).

    Args:
        table: sums over parent sets.
        labels: int [d], a permutation; the canonical order prefers small labels.
        state: the order so far.
        node: int [], not placed yet.
    """
    seen = state.seen | table.bits[:, node]
    gained = containing(table, jnp.arange(labels.shape[0]), node, seen)
    smaller = labels < labels[node]
    return OrderState(
        state.placed.at[node].set(True),
        seen,
        jnp.where(smaller, gained, jnp.logaddexp(state.log_weights, gained)),
        jnp.logaddexp(state.log_totals, gained),
    )


def containing(table: OrderTable, child: Array, parent: Array, seen: Array) -> Array:
    """`A_child(parent, U)`, float64, of the broadcast shape of the integer arguments.

    Args:
        table: sums over parent sets.
        child: node.
        parent: node that the sets contain.
        seen: the candidates of `child` in `U`; the bit of `parent` is ignored.
    """
    slot = table.slots[child, parent]
    slot_or_zero = jnp.maximum(slot, 0)
    inside = table.sums[child, slot_or_zero, compress(seen, slot_or_zero)]
    return jnp.where(slot >= 0, inside, table.outsiders[child, parent])


class Windows(NamedTuple):
    """What a finished order says about the parents of each node; time is the position in the order."""

    seen: Array  # int32 [d, d], candidates of node j (row) placed up to and including time t (column)
    allowed: Array  # bool [d, d], whether the node placed at time t (column) is in the window of node j (row)
    free: Array  # bool [d], no condition: no larger label was placed before


def windows(table: OrderTable, labels: Array, order: Array) -> Windows:
    """The windows of all nodes of `order` [d]."""
    d = order.shape[0]
    time = jnp.arange(d)
    position = jnp.zeros(d, order.dtype).at[order].set(time.astype(order.dtype))
    earlier = time < position[:, None]
    larger = earlier & (labels[order] > labels[:, None])
    opening = jnp.max(jnp.where(larger, time, -1), axis=1)  # when the window opened
    seen = jnp.cumsum(table.bits[:, order], axis=1, dtype=jnp.int32)
    return Windows(seen, earlier & (time >= opening[:, None]), opening < 0)


def last_parent_log_weights(table: OrderTable, order: Array, window: Windows) -> Array:
    """Log total of the parent sets of node j (row) whose last placed member was placed at time t, float64 [d, d].

    −inf outside of the window; the empty set, where it is allowed, comes on top.
    """
    gained = containing(table, jnp.arange(order.shape[0])[:, None], order, window.seen)
    return jnp.where(window.allowed, gained, -jnp.inf)


def node_log_weights(table: OrderTable, labels: Array, order: Array) -> Array:
    """Log-weight of each node in the finished `order` [d], float64 [d]; −inf where nothing fulfils the condition.

    Their sum is the log total of the scores of all DAGs whose canonical order this is.
    """
    window = windows(table, labels, order)
    return _node_log_weights(table, order, window)


def _node_log_weights(table: OrderTable, order: Array, window: Windows) -> Array:
    empty = jnp.where(window.free, table.empty, -jnp.inf)
    terms = jnp.column_stack([empty, last_parent_log_weights(table, order, window)])
    return jax.nn.logsumexp(terms, axis=1)


def edge_probabilities_given_order(table: OrderTable, labels: Array, order: Array) -> Array:
    """Exact edge marginals over the DAGs whose canonical order is `order` [d], float64 [d, d].

    The sets with parent `i` that fulfil the condition weigh `A_j(i, U) − A_j(i, U outside of the window)`. Where
    nearly all sets with `i` violate the condition this cancels; there, the sets *without* `i` are summed instead,
    once more over last parents.
    """
    d = order.shape[0]
    window = windows(table, labels, order)
    total = _node_log_weights(table, order, window)[:, None]
    child, parent = jnp.arange(d)[:, None], jnp.arange(d)
    time = jnp.arange(d)
    position = jnp.zeros(d, time.dtype).at[order].set(time)
    earlier = position[None, :] < position[:, None]  # parent before child
    in_window = window.allowed[:, position]

    opening = jnp.where(window.free, 0, jnp.argmax(window.allowed, axis=1))
    before_window = jnp.where(opening > 0, window.seen[time, jnp.maximum(opening - 1, 0)], 0)
    before_child = jnp.where(position > 0, window.seen[time, jnp.maximum(position - 1, 0)], 0)
    with_parent = containing(table, child, parent, before_child[:, None])
    violating = containing(table, child, parent, before_window[:, None]) - with_parent
    log_fulfilled = jnp.where(in_window, 0.0, jnp.log(-jnp.expm1(jnp.minimum(violating, 0.0))))
    direct = jnp.exp(with_parent + log_fulfilled - total)

    seen = window.seen[:, None, :] & ~table.bits[:, :, None]  # [child, absent parent, time]
    last = containing(table, child[..., None], order, seen)
    last = jnp.where(window.allowed[:, None, :] & (order != parent[:, None]), last, -jnp.inf)
    empty = jnp.where(window.free, table.empty, -jnp.inf)[:, None, None]
    without = jax.nn.logsumexp(jnp.concatenate([jnp.broadcast_to(empty, (d, d, 1)), last], axis=2), axis=2)
    indirect = -jnp.expm1(jnp.minimum(without - total, 0.0))

    accurate = in_window | (violating < -1e-6)
    probability = jnp.where(accurate, direct, indirect)
    return jnp.where(earlier, probability, 0.0).T
