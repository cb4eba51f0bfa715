"""The best DAG (Silander and Myllymäki, 2006): every DAG has a sink, so peel the best one from every set."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.exact.scaled import compress
from gflowdag.exact.size import checked_table, no_dag
from gflowdag.graph.bits import expand, graphs_from_masks


def map_graph(table: ArrayLike) -> tuple[NDArray[np.bool_], float]:
    """The DAG of highest score, in O(d² 2^d).

    Args:
        table: log scores of all parent sets, float64 [d, 2^(d−1)], compressed index; −inf is forbidden.

    Returns:
        The graph, bool [d, d], rows are sources, and its score; of equals, any.

    Raises:
        KnowledgeError: every DAG holds a forbidden parent set.
    """
    table = checked_table(table)
    d = len(table)
    sinks, best = _best_sinks(_best_within(table.copy()))
    if best == -np.inf:
        raise no_dag()
    masks = np.zeros(d, dtype=np.int64)
    rest = (1 << d) - 1
    while rest:
        sink = int(sinks[rest])
        rest ^= 1 << sink
        parents = expand(np.arange(table.shape[1]), sink)
        masks[sink] = parents[np.argmax(np.where(parents & ~rest == 0, table[sink], -np.inf))]
    return graphs_from_masks(masks, d), float(best)


@numba.njit(cache=True)
def _best_within(table):
    """Replace each score by the highest score among the subsets of the set."""
    for row in table:
        step = 1
        while step < row.size:
            for start in range(0, row.size, 2 * step):
                for r in range(start, start + step):
                    row[r + step] = max(row[r + step], row[r])
            step *= 2
    return table


@numba.njit(cache=True)
def _best_sinks(best_within):
    """The sink of the best DAG on every set, int8 [2^d], and the score of the best DAG on all nodes."""
    d = best_within.shape[0]
    score = np.full(1 << d, -np.inf)
    score[0] = 0.0
    sinks = np.zeros(1 << d, dtype=np.int8)
    for nodes in range(1, 1 << d):
        for j in range(d):
            if nodes >> j & 1:
                rest = nodes ^ (1 << j)
                candidate = score[rest] + best_within[j, compress(rest, j)]
                if candidate > score[nodes]:
                    score[nodes], sinks[nodes] = candidate, j
    return sinks, score[-1]
