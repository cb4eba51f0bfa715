"""Weights of canonical orders: all DAGs with one canonical topological order, summed without subtraction.

Every DAG has one *canonical* order: always place the smallest label whose parents are all placed. Build an
order node by node and carry, for each node `j`, the log-weight `D_j` of the parent sets that `j` may have if
it is placed next and the order is to stay canonical. It starts at `LS(j, ∅)`. On placing `v` after the set
`U`, with

    A_j(v, U) = log Σ_{P ⊆ U} exp LS(j, P ∪ v)      (sets whose latest member is v),

`D_j ← A_j(v, U)` where `j` has a smaller label than `v` (it was passed over, so it must now have `v` or a
later node as a parent), else `D_j ← log(exp D_j + exp A_j(v, U))`. The sum over an order of the `D_j` at the
moment at which `j` is placed is the log of the summed weight of all DAGs with that canonical order.

    weights = order_weights(dense_candidates(score.dense_table()))    # d ≤ 20 or so
    weights = order_weights(candidate_table(score, 14))               # any d
    state = start(weights, labels); state = place(weights, state, v)  # JAX, pure; state.log_weights is D

Use in double precision.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from gflowdag.errors import TooLargeError
from gflowdag.graph.bits import compress
from gflowdag.orders.candidates import CandidateTable
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.threads import map_threads
from gflowdag.score.base import MEMORY_LIMIT
from gflowdag.score.subsets import sums_containing


class OrderWeights(NamedTuple):
    """All `A_j(v, U)`; arrays, so that the weights of several data sets can be stacked.

    `table[j, k, compress(u, k)]` is `A_j(v, U)` for the candidate `v = candidates[j, k]` and the local index
    `u` of the placed candidates, bit `k` squeezed out. For an outsider `v` it is `singles[j, v]`, whatever
    `U`.
    """

    empty: Any  # float64 [d], LS(j, ∅)
    table: Any  # float64 [d, K, 2^(K−1)]
    singles: Any  # float64 [d (node), d (outsider)], −inf for candidates and the node itself
    position: (
        Any  # int32 [d (node), d (parent)], place among the node's candidates; K for outsiders and itself
    )


class OrderState(NamedTuple):
    """A canonical order that is being built."""

    placed: Array  # bool [d]
    index: Array  # int32 [d], local index of the placed candidates of each node
    log_weights: Array  # float64 [d], D_j; of placed nodes: meaningless
    labels: Array  # int32 [d], distinct; which order is canonical depends on them


def order_weights(
    table: CandidateTable, progress: Progress = silent, *, memory_limit: int = MEMORY_LIMIT
) -> OrderWeights:
    """Sum the scores of a (dense or restricted) table for all `A_j(v, U)`: `d K 2^(K−1)` numbers."""
    d, num_candidates = table.candidates.shape
    half = 1 << max(num_candidates - 1, 0)
    memory = 8 * d * num_candidates * half
    if memory > memory_limit:
        raise TooLargeError(
            f"Order weights of {d} variables with {num_candidates} candidate parents each take "
            f"{memory / 2**30:.1f} GiB, more than the allowed {memory_limit / 2**30:.1f} GiB: use fewer "
            "candidates, or raise memory_limit."
        )
    sums = np.empty((d, num_candidates, half))
    if num_candidates:
        map_threads(lambda node: sums_containing(table.scores[node], sums[node]), range(d), progress)
    position = np.full((d, d), num_candidates, np.int32)
    np.put_along_axis(position, table.candidates, np.arange(num_candidates, dtype=np.int32)[None], axis=1)
    return OrderWeights(table.scores[:, 0].copy(), sums, table.singles, position)


def start(weights: OrderWeights, labels: ArrayLike) -> OrderState:
    """Nothing placed yet; `labels` int [d]."""
    empty = jnp.asarray(weights.empty)
    d = empty.shape[0]
    return OrderState(jnp.zeros(d, bool), jnp.zeros(d, jnp.int32), empty, jnp.asarray(labels, jnp.int32))


def latest_parent(weights: OrderWeights, state: OrderState, node: Array) -> Array:
    """`A_j(node, placed)` for all `j`, float64 [d]: the parent sets whose latest member is `node`."""
    table = jnp.asarray(weights.table)
    d, num_candidates, _ = table.shape
    position = jnp.asarray(weights.position)[:, node]
    bit = jnp.minimum(position, num_candidates - 1)
    listed = table[jnp.arange(d), bit, compress(state.index, bit)]
    return jnp.where(position < num_candidates, listed, jnp.asarray(weights.singles)[:, node])


def place(weights: OrderWeights, state: OrderState, node: Array) -> OrderState:
    """Place one more node, in O(d)."""
    added = latest_parent(weights, state, node)
    passed_over = state.labels < state.labels[node]
    position = jnp.asarray(weights.position)[:, node]
    bit = jnp.where(position < jnp.asarray(weights.table).shape[1], 1 << position, 0)
    return OrderState(
        placed=state.placed.at[node].set(True),
        index=state.index | bit.astype(jnp.int32),
        log_weights=jnp.where(passed_over, added, jnp.logaddexp(state.log_weights, added)),
        labels=state.labels,
    )
