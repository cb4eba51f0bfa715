"""Random DAGs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gflowdag.errors import DataError


def erdos_renyi(d: int, edges: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """An Erdős–Rényi DAG: a uniformly random order, then each forward edge with one probability.

    Args:
        d: number of nodes.
        edges: expected number of edges, at most d(d − 1)/2. ("ERk" of the literature is `k * d`.)
        rng: source of randomness.

    Returns:
        bool [d, d].
    """
    pairs = math.comb(d, 2)
    if not 0 <= edges <= pairs:
        raise DataError(f"a DAG on {d} nodes has between 0 and {pairs} edges: {edges} cannot be expected")
    forward = np.triu(rng.random((d, d)) * pairs < edges, 1)
    return _relabelled(forward, rng)


def scale_free(d: int, m: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """A scale-free DAG by preferential attachment (Barabási–Albert), labelled at random.

    Nodes arrive one by one and take `m` parents (all earlier nodes while there are fewer) with probability
    proportional to degree + 1: a few nodes become common causes of many, and none has more than m parents.

    Args:
        d: number of nodes.
        m: parents of each new node, at least 1.
        rng: source of randomness.

    Returns:
        bool [d, d] with m·d − m(m + 1)/2 edges if d > m.
    """
    if m < 1:
        raise DataError(f"each new node of a scale-free graph needs at least one parent, got m = {m}")
    graph = np.zeros((d, d), dtype=bool)
    attraction = np.ones(d)
    for node in range(1, d):
        weight = attraction[:node] / attraction[:node].sum()
        parents = rng.choice(node, size=min(m, node), replace=False, p=weight)
        graph[parents, node] = True
        attraction[parents] += 1
        attraction[node] += len(parents)
    return _relabelled(graph, rng)


def _relabelled(graph: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
    label = rng.permutation(len(graph))
    return graph[np.ix_(label, label)]
