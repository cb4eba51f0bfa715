"""d-separation: whether a DAG makes two sets of variables independent given a third."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import ArrayLike, NDArray


def d_separated(
    adjacency: ArrayLike, first: Collection[int], second: Collection[int], given: Collection[int] = ()
) -> NDArray[np.bool_]:
    """Whether each DAG d-separates the sets `first` and `second` by the set `given`.

    Follows all active trails at once (Koller & Friedman 2009, algorithm 3.1): a trail that comes from a child
    goes on to parents and children unless the node is given; one that comes from a parent goes on to children
    unless the node is given, and to parents if the node or a descendant of it is.

    Args:
        adjacency: bool [..., d, d].
        first: indices of nodes.
        second: indices of nodes; the three sets have none in common.
        given: indices of nodes.

    Returns:
        bool [...].
    """
    graphs = np.asarray(adjacency, dtype=bool)
    d = graphs.shape[-1]
    blocked = np.zeros(d, dtype=bool)
    blocked[list(given)] = True
    observed = reaches(graphs, given)  # or with an observed descendant
    from_child = np.zeros(graphs.shape[:-1], dtype=bool)  # active trails that leave a node's edge from below
    from_child[..., list(first)] = True
    from_parent = np.zeros_like(from_child)
    while True:
        upwards = from_child & ~blocked | from_parent & observed
        downwards = (from_child | from_parent) & ~blocked
        more_from_child = from_child | (graphs & upwards[..., None, :]).any(axis=-1)
        more_from_parent = from_parent | (graphs & downwards[..., :, None]).any(axis=-2)
        if (more_from_child == from_child).all() and (more_from_parent == from_parent).all():
            reached = (from_child | from_parent)[..., list(second)].any(axis=-1)
            return np.logical_not(reached)
        from_child, from_parent = more_from_child, more_from_parent


def reaches(adjacency: ArrayLike, targets: Collection[int]) -> NDArray[np.bool_]:
    """Whether a directed path leads from each node to one of `targets`, themselves included.

    Args:
        adjacency: bool [..., d, d].
        targets: indices of nodes.

    Returns:
        bool [..., d].
    """
    graphs = np.asarray(adjacency, dtype=bool)
    reached = np.zeros(graphs.shape[:-1], dtype=bool)
    reached[..., list(targets)] = True
    while True:
        more = reached | (graphs & reached[..., None, :]).any(axis=-1)
        if (more == reached).all():
            return reached
        reached = more
