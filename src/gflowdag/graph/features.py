"""Structural features of a DAG whose posterior probabilities are asked for (paper, sec. 6.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.graph.closure import transitive_closure

_CHUNK = 2**22  # entries of adjacency matrices that are multiplied at a time


def path_features(adjacency: ArrayLike) -> NDArray[np.bool_]:
    """Whether a directed path leads from `i` to `j`: bool [..., d, d], diagonal unset for a DAG."""
    return transitive_closure(adjacency)


def markov_blanket_features(adjacency: ArrayLike) -> NDArray[np.bool_]:
    """Whether `i` is in the Markov blanket of `j`: a parent, a child, or another parent of a child.

    Args:
        adjacency: bool [..., d, d].

    Returns:
        bool [..., d, d], symmetric, diagonal unset.
    """
    adjacency = np.asarray(adjacency, dtype=bool)
    d = adjacency.shape[-1]
    graphs = adjacency.reshape(-1, d, d)
    blanket = graphs | np.swapaxes(graphs, -1, -2)
    step = max(1, _CHUNK // max(d * d, 1))
    for first in range(0, len(graphs), step):
        children = graphs[first : first + step].astype(np.float32)  # exact: counts far below 2^24
        blanket[first : first + step] |= children @ np.swapaxes(children, -1, -2) > 0
    return blanket.reshape(adjacency.shape) & ~np.eye(d, dtype=bool)
