"""Random DAGs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

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


def by_parent_counts(log_weights: ArrayLike, num_graphs: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Independent DAGs of a structure prior: each weighs `Π_j w(number of parents of j)`.

    Layer by layer from the roots: with m nodes placed, s of them in the last layer, a node of the next layer
    has its parents among the m, not all of them among the m − s before. Such parent sets weigh together
    `g(m, s) = Σ_k [C(m, k) − C(m − s, k)] w(k)`, and all ways to complete the graph

        H(m, s) = Σ_t C(d − m, t) g(m, s)^t H(m + t, t).

    Args:
        log_weights: log of `w(k)` for k = 0 … d − 1, −inf where so many parents are not allowed.
        num_graphs: n.
        rng: source of randomness.

    Returns:
        bool [n, d, d].
    """
    weights = np.asarray(log_weights, float)
    d = len(weights)
    parents = _laws_of_counts(weights)
    layers = _laws_of_layers(weights[0] if d else 0.0, parents.sets)
    graphs = np.zeros((num_graphs, d, d), dtype=bool)
    for graph in graphs:
        node = rng.permutation(d)
        placed = size = 0
        while placed < d:
            following = 1 + int(rng.choice(d - placed, p=layers[placed, size]))
            for child in node[placed : placed + following]:
                k = int(rng.choice(d, p=parents.counts[placed, size])) if placed else 0
                chosen = rng.permutation(placed)[:k]
                while k and chosen.max() < placed - size:  # one of the last layer must be among them
                    chosen = rng.permutation(placed)[:k]
                graph[node[chosen], child] = True
            placed, size = placed + following, following
    return graphs


class _ParentLaws(NamedTuple):
    sets: dict[tuple[int, int], float]  # log g(m, s)
    counts: dict[tuple[int, int], NDArray[np.float64]]  # of each number of parents, [d]


def _laws_of_counts(log_weights: NDArray[np.float64]) -> _ParentLaws:
    d = len(log_weights)
    sets: dict[tuple[int, int], float] = {}
    counts: dict[tuple[int, int], NDArray[np.float64]] = {}
    for placed in range(1, d):
        for size in range(1, placed + 1):
            number = [math.comb(placed, k) - math.comb(placed - size, k) for k in range(d)]
            logs = log_weights + [math.log(n) if n else -math.inf for n in number]
            sets[placed, size] = total = float(np.logaddexp.reduce(logs))
            if total > -math.inf:
                counts[placed, size] = np.exp(logs - total)
    return _ParentLaws(sets, counts)


def _laws_of_layers(
    log_root: float, log_sets: dict[tuple[int, int], float]
) -> dict[tuple[int, int], NDArray[np.float64]]:
    """Probabilities of 1, 2, … nodes in the next layer, for each number placed and in the last layer."""
    d = max((placed for placed, _ in log_sets), default=0) + 1
    completions = {(d, size): 0.0 for size in range(1, d + 1)}
    laws: dict[tuple[int, int], NDArray[np.float64]] = {}
    for placed in range(d - 1, -1, -1):
        for size in range(1, placed + 1) if placed else [0]:
            one = log_sets[placed, size] if placed else log_root
            logs = np.array(
                [
                    math.log(math.comb(d - placed, t)) + t * one + completions[placed + t, t]
                    for t in range(1, d - placed + 1)
                ]
            )
            completions[placed, size] = total = float(np.logaddexp.reduce(logs))
            if total > -math.inf:
                laws[placed, size] = np.exp(logs - total)
    return laws


def _relabelled(graph: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
    label = rng.permutation(len(graph))
    return graph[np.ix_(label, label)]
