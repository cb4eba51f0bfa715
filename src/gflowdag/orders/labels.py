"""Labels for canonical orders: any are right, good ones make the orders easy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gflowdag.graph.order import canonical_order
from gflowdag.orders.candidates import CandidateTable
from gflowdag.score.subsets import log_subset_sums

_MAX_SWEEPS = 20
_CLIMBS = 10


def likely_order(table: CandidateTable, rng: np.random.Generator) -> NDArray[np.int32]:
    """An order under which the nodes find good parents before them, int32 [d].

    Climbs by moving one node at a time to its best place, until no move helps. The weight of an order is the
    product over the nodes of the sum over all parent sets before them: every DAG counts once for each of its
    orders, which is wrong for a posterior and good enough for labels. Knowledge counts: orders that it
    forbids are left first.
    """
    d = table.num_variables
    sums = log_subset_sums(table.scores)
    bits = np.zeros((d, d), np.int64)
    np.put_along_axis(
        bits, table.candidates.astype(np.int64), 1 << np.arange(table.num_candidates)[None], axis=1
    )
    singles = table.singles

    def log_weights(orders: NDArray) -> NDArray[np.float64]:
        """Of each order, int [m, d] -> [m]."""
        in_order = bits[
            orders[:, :, None], orders[:, None, :]
        ]  # [m, node, parent], both in the order's sequence
        before = np.tri(d, k=-1, dtype=bool)
        index = np.where(before, in_order, 0).sum(axis=2)
        alone = np.where(before, singles[orders[:, :, None], orders[:, None, :]], -np.inf).max(
            axis=2, initial=-np.inf
        )
        weights = np.logaddexp(sums[orders, index], alone)
        # Finite for what is forbidden, so that a climb can leave it step by step.
        return np.where(np.isfinite(weights), weights, -1e9).sum(axis=1)

    order = rng.permutation(d)
    best = log_weights(order[None])[0]
    for _ in range(_MAX_SWEEPS):
        before_sweep = best
        for node in rng.permutation(d):
            others = order[order != node]
            moved = np.array([np.insert(others, place, node) for place in range(d)])
            values = log_weights(moved)
            if values.max() > best + 1e-9:
                order, best = moved[values.argmax()], values.max()
        if best == before_sweep:
            break
    return order.astype(np.int32)


def order_along_edges(edges: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int32]:
    """An order against which few edges are expected to point, int32 [d].

    Climbs from several random orders by moving one node at a time to its best place, until no move helps.

    Args:
        edges: probabilities, [d, d], rows are sources.
        rng: source of randomness.
    """
    climbs = [_climbed(edges, rng) for _ in range(_CLIMBS)]
    return min(climbs, key=lambda order: np.tril(edges[np.ix_(order, order)], -1).sum()).astype(np.int32)


def _climbed(edges: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    order = rng.permutation(len(edges))
    for _ in range(_MAX_SWEEPS):
        before = order
        for node in rng.permutation(len(edges)):
            others = order[order != node]
            into_earlier = np.append(0.0, edges[node, others].cumsum())
            from_later = np.append(edges[others, node][::-1].cumsum()[::-1], 0.0)
            order = np.insert(others, np.argmin(into_earlier + from_later), node)
        if (order == before).all():
            break
    return order


def labels_along(order: NDArray) -> NDArray[np.int32]:
    """Labels under which `order` is ascending, int32 [d]."""
    return np.argsort(order).astype(np.int32)


def canonical_orders(graphs: NDArray[np.bool_], labels: NDArray) -> NDArray[np.int32]:
    """The canonical order of each graph under its own labels.

    Args:
        graphs: DAGs, bool [n, d, d].
        labels: int [n, d], each a permutation; or [d], the same for all.

    Returns:
        int32 [n, d].
    """
    by_label = np.argsort(np.broadcast_to(labels, graphs.shape[:2]), axis=1)
    row = np.arange(len(graphs))[:, None, None]
    relabelled = graphs[row, by_label[:, :, None], by_label[:, None, :]]
    return np.take_along_axis(by_label, canonical_order(relabelled), axis=1).astype(np.int32)
