"""Topological orders of DAGs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.graph.closure import transitive_closure


def canonical_order(adjacency: ArrayLike) -> NDArray[np.int64]:
    """The canonical topological order: always the smallest-labelled node whose parents are all placed.

    Every DAG has exactly one, so a distribution over DAGs is one over canonical orders and parent sets
    without counting a DAG once for each of its linear extensions.

    Args:
        adjacency: bool [..., d, d], all acyclic.

    Returns:
        int64 [..., d]: the nodes in order.
    """
    adjacency = np.asarray(adjacency, dtype=bool)
    *batch, d, _ = adjacency.shape
    graphs = adjacency.reshape(-1, d, d)
    row = np.arange(len(graphs))
    missing_parents = graphs.sum(axis=1, dtype=np.int64)
    order = np.empty((len(graphs), d), dtype=np.int64)
    for position in range(d):
        ready = missing_parents == 0
        node = ready.argmax(axis=1)
        if not ready[row, node].all():
            raise ValueError("only acyclic graphs have a topological order")
        order[:, position] = node
        missing_parents -= graphs[row, node]
        missing_parents[row, node] = -1  # placed
    return order.reshape(*batch, d)


def topological_order(adjacency: ArrayLike) -> NDArray[np.int64]:
    """A topological order by number of ancestors, ties by label: bool [..., d, d] to int64 [..., d]."""
    reach = transitive_closure(adjacency)
    if np.diagonal(reach, axis1=-2, axis2=-1).any():
        raise ValueError("only acyclic graphs have a topological order")
    return np.argsort(reach.sum(axis=-2), axis=-1, kind="stable")
