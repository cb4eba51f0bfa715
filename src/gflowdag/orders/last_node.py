"""A potential for dense tables that looks at the placed set and at the node placed last."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from numba import njit
from numpy.typing import NDArray

from gflowdag.graph.bits import compress, popcount
from gflowdag.orders.weights import OrderWeights
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.threads import map_threads, num_cores
from gflowdag.score.subsets import log_subset_sums

_SMALL_LAYER = 2000  # sets that are done before threads would have started
_compress = njit(cache=True, nogil=True, inline="always")(compress)


class LastNodeState(NamedTuple):
    """The placed set, and the estimate for it."""

    index: Array  # int32 [d], compressed index of the placed set for each node
    to_come: Array  # float64 [], G(U, v)


class LastNodePotential(NamedTuple):
    """Completions of an order, counted under a weaker condition by dynamic programming.

    A canonical order asks of each node a parent in its window. Asking it only of nodes that follow a larger
    label *immediately* makes what is to come depend on the placed set `U` and the last placed node `v` alone:
    `G(U, v) = log Σ_{j ∉ U} exp(w_j + G(U ∪ j, j))`, with `w_j` the log-sum over all parent sets in `U` where
    `j` has a larger label than `v`, and over those with `v` where it has a smaller one. The potential is
    `−G`. It serves any score, prior, knowledge and intervention, and is −inf where nothing can follow. Exact
    it is not: orders in which a node was passed over earlier are counted too often, which is what is left to
    learn.
    """

    table: Array  # float64 [d, 2^(d−1)], G(U ∪ j, j) at the compressed index of U
    first: Array  # float64 [], G of the empty order

    def start(self) -> LastNodeState:
        """Nothing is placed."""
        return LastNodeState(jnp.zeros(self.table.shape[0], jnp.int32), self.first)

    def place(self, state: LastNodeState, node: Array) -> LastNodeState:
        """State after `node` was placed."""
        nodes = jnp.arange(self.table.shape[0], dtype=jnp.int32)
        bit = jnp.where(nodes == node, 0, 1 << (node - (node > nodes)))
        return LastNodeState(state.index | bit.astype(jnp.int32), self._after(state)[node])

    def gains(self, state: LastNodeState) -> Array:
        """What the potential gains by placing each node, float64 [d]; +inf where nothing can follow."""
        return state.to_come - self._after(state)

    def _after(self, state: LastNodeState) -> Array:
        return self.table[jnp.arange(self.table.shape[0]), state.index]


def last_node_potential(
    weights: OrderWeights, table: NDArray[np.float64], labels: NDArray, progress: Progress = silent
) -> LastNodePotential:
    """The potential of a dense table, in O(d² 2^d) time.

    Args:
        weights: order weights of `table`.
        table: dense scores, float64 [d, 2^(d−1)].
        labels: int [d].
        progress: told about the layers of sets done.
    """
    to_come, first = _completions(table, log_subset_sums(table), np.asarray(weights.table), labels, progress)
    return LastNodePotential(jnp.asarray(to_come), jnp.asarray(first))


def tighter_labels(
    weights: OrderWeights,
    table: NDArray[np.float64],
    labels: NDArray[np.int32],
    rng: np.random.Generator,
    *,
    max_terms: float = 2e8,
) -> NDArray[np.int32]:
    """Labels under which the potential is closer to the truth, int32 [d].

    `G` of the empty order is at least the log evidence, because the weaker condition only adds orders: the
    smaller it is, the less is left to learn. Climbs by moving one label at a time.

    Args:
        weights: order weights of `table`.
        table: dense scores, float64 [d, 2^(d−1)].
        labels: where to start, int32 [d].
        rng: decides which label is moved next.
        max_terms: terms of the dynamic programs that may be summed in all.
    """
    d = len(table)
    evaluations = int(max_terms / (d * d * 2**d / 4))
    if evaluations <= d:  # not enough for moving a single label
        return labels
    totals, containing = log_subset_sums(table), np.asarray(weights.table)

    def bound(order: NDArray) -> float:
        return _completions(table, totals, containing, np.argsort(order), silent)[1]

    order = np.argsort(labels)
    best, last_improved = bound(order), None
    while evaluations > d:
        for node in rng.permutation(d):
            if node == last_improved or evaluations <= d:  # a whole round without a better place, or the end
                return np.argsort(order).astype(np.int32)
            last_improved = node if last_improved is None else last_improved
            others = order[order != node]
            for place in range(d):
                moved = np.insert(others, place, node)
                value = bound(moved)
                if value < best - 1e-9:
                    order, best, last_improved = moved, value, node
            evaluations -= d
    return np.argsort(order).astype(np.int32)


def _completions(table, totals, containing, labels, progress: Progress) -> tuple[NDArray[np.float64], float]:
    """`G` after each placed set and next node [d, 2^(d−1)], and of the empty order."""
    d = len(table)
    labels = np.asarray(labels, np.int64)
    to_come = np.full_like(totals, -np.inf)
    to_come[:, -1] = 0.0  # nothing is left to place
    sizes = popcount(np.arange(1 << d))
    for size in range(d - 1, 0, -1):
        layer = np.flatnonzero(sizes == size)
        if len(layer) < _SMALL_LAYER:
            _fill(layer, totals, containing, labels, to_come)
        else:
            parts = np.array_split(layer, num_cores())

            def fill(part: int, parts=parts) -> None:
                _fill(parts[part], totals, containing, labels, to_come)

            map_threads(fill, range(len(parts)))
        progress(d - size, d)
    return to_come, float(np.logaddexp.reduce(table[:, 0] + to_come[:, 0]))


@njit(cache=True, nogil=True)
def _fill(placed_sets, totals, containing, labels, to_come):
    d = labels.shape[0]
    terms = np.empty(d)
    for placed in placed_sets:
        for last in range(d):
            if not placed >> last & 1:
                continue
            top = -np.inf
            for node in range(d):
                terms[node] = -np.inf
                if placed >> node & 1:
                    continue
                index = _compress(placed, node)
                terms[node] = to_come[node, index]
                if labels[node] > labels[last]:
                    terms[node] += totals[node, index]
                else:
                    bit = last - (last > node)
                    terms[node] += containing[node, bit, _compress(index, bit)]
                top = max(top, terms[node])
            if top > -np.inf:
                total = 0.0
                for node in range(d):
                    total += np.exp(terms[node] - top)
                to_come[last, _compress(placed & ~(1 << last), last)] = top + np.log(total)
