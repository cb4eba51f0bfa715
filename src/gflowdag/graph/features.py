"""Structural features of a DAG whose posterior probabilities are asked for (paper, sec. 6.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.graph.closure import transitive_closure


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
    blanket = adjacency | np.swapaxes(adjacency, -1, -2)
    for child in range(d):
        blanket |= adjacency[..., :, child, None] & adjacency[..., None, :, child]
    return blanket & ~np.eye(d, dtype=bool)
