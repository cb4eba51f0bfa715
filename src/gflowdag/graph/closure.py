"""Reachability: transitive closure, acyclicity, and which edges may still be added."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.graph.bits import bools_of, words_of

_WORD = 64  # bits; of larger graphs a row is some words


def transitive_closure(adjacency: ArrayLike) -> NDArray[np.bool_]:
    """Which node reaches which by a path of at least one edge.

    Args:
        adjacency: bool [..., d, d].

    Returns:
        bool [..., d, d]; the diagonal is set exactly at the nodes that lie on a cycle.
    """
    reach = np.array(adjacency, dtype=bool)
    d = reach.shape[-1]
    passed = (reach.any(axis=-2) & reach.any(axis=-1)).reshape(-1, d).any(axis=0)
    through = np.flatnonzero(passed)  # Warshall; through a node without both no path leads
    if d <= _WORD:
        for via in through:
            reach |= reach[..., :, via, None] & reach[..., None, via, :]
        return reach
    words = words_of(reach)  # [..., d, words]
    for via in through.tolist():
        leads = words[..., via // _WORD] >> np.uint64(via % _WORD) & np.uint64(1)
        words |= (np.uint64(0) - leads)[..., None] & words[..., None, via, :]
    return bools_of(words, d)


def is_acyclic(adjacency: ArrayLike) -> NDArray[np.bool_]:
    """Whether each graph is a DAG: bool [..., d, d] to bool [...]."""
    on_cycle = np.diagonal(transitive_closure(adjacency), axis1=-2, axis2=-1)
    return np.logical_not(on_cycle.any(axis=-1))


def legal_edges(adjacency: ArrayLike) -> NDArray[np.bool_]:
    """Edges `i -> j` that each DAG lacks and that would close no cycle, bool [..., d, d]."""
    adjacency = np.asarray(adjacency, dtype=bool)
    reached_from = np.swapaxes(transitive_closure(adjacency), -1, -2)
    return ~(adjacency | reached_from | np.eye(adjacency.shape[-1], dtype=bool))
