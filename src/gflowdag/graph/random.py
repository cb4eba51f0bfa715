"""Random DAGs."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

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


def by_parent_counts(
    log_weights: ArrayLike,
    num_graphs: int,
    rng: np.random.Generator,
    *,
    groups: ArrayLike | None = None,
    log_factors: ArrayLike = 0.0,
) -> NDArray[np.bool_]:
    """Independent DAGs of a structure prior: each weighs `Π_j w(number of parents of j)`.

    With `groups` of nodes each edge multiplies that by a factor for the groups of its ends.

    Layer by layer from the roots: with m nodes placed, s of them in the last layer, a node of the next layer
    has its parents among the m, not all of them among the m − s before. Such parent sets weigh together
    `g(m, s) = Σ_k [C(m, k) − C(m − s, k)] w(k)`, and all ways to complete the graph

        H(m, s) = Σ_t C(d − m, t) g(m, s)^t H(m + t, t).

    With groups m, s, k and t have a number for each group, the binomial coefficients are products over them,
    and each group has a g of its own, in which `w(k)` is that of all parents times their factors.

    Args:
        log_weights: log of `w(k)` for k = 0 … d − 1, −inf where so many parents are not allowed.
        num_graphs: n.
        rng: source of randomness.
        groups: of each node, whole numbers [d]; None for one group.
        log_factors: log of the factor of an edge, by the group of its source and that of its target, [g, g].

    Returns:
        bool [n, d, d].
    """
    weights = np.asarray(log_weights, float)
    d = len(weights)
    named = np.zeros(d, int) if groups is None else np.asarray(groups).astype(int)
    present, group, sizes = np.unique(named, return_inverse=True, return_counts=True)
    factors = np.asarray(log_factors, float)
    if not factors.ndim:
        factors = np.full((int(present.max(initial=0)) + 1,) * 2, log_factors)
    laws = _layers(tuple(weights.tolist()), tuple(sizes.tolist()), tuple(factors[present].T[present].ravel()))
    graphs = np.zeros((num_graphs, d, d), dtype=bool)
    for graph in graphs:
        node = rng.permutation(d)
        members = [node[group[node] == number] for number in range(len(sizes))]
        placed = last = (0,) * len(sizes)
        while placed != laws.all_placed:
            choices, chances = laws.next_layer(placed, last)
            following = choices[int(rng.choice(len(choices), p=chances))]
            for own, count in enumerate(following):
                for child in members[own][placed[own] : placed[own] + count]:
                    chosen = laws.parents(own, placed, last, rng)
                    for others, places in zip(members, chosen, strict=True):
                        graph[others[places], child] = True
            placed, last = tuple(np.add(placed, following).tolist()), following
    return graphs


@lru_cache(maxsize=4)
def _layers(
    log_weights: tuple[float, ...], sizes: tuple[int, ...], factors_into: tuple[float, ...]
) -> _Layers:
    """Kept, since graphs are often asked for one by one."""
    into = np.array(factors_into).reshape(len(sizes), len(sizes))
    return _Layers(np.array(log_weights), sizes, into.T)


class _Layers:
    """The laws of layers of nodes and of their parents; see `by_parent_counts` for the formulas."""

    def __init__(
        self, log_weights: NDArray[np.float64], sizes: tuple[int, ...], factors: NDArray[np.float64]
    ) -> None:
        self.all_placed = sizes
        self._counts = np.indices([size + 1 for size in self.all_placed]).reshape(len(sizes), -1).T
        num_parents = self._counts.sum(axis=1)
        allowed = num_parents < len(log_weights)
        own = np.where(allowed, log_weights[num_parents * allowed], -np.inf)
        self._weights = own[:, None] + self._counts @ factors  # [k, group of the child]
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], _Law] = {}

    def next_layer(
        self, placed: tuple[int, ...], last: tuple[int, ...]
    ) -> tuple[list[tuple[int, ...]], NDArray[np.float64]]:
        """How many nodes of each group the next layer may have, and the probability of each."""
        law = self._law(placed, last)
        return law.layers, law.chances

    def parents(
        self, own: int, placed: tuple[int, ...], last: tuple[int, ...], rng: np.random.Generator
    ) -> list[NDArray[np.int64]]:
        """Places of the parents of a node of the next layer among the placed nodes of each group."""
        if not any(placed):
            return [np.zeros(0, np.int64) for _ in placed]
        law = self._law(placed, last).parents[:, own]
        counts = self._counts[int(rng.choice(len(law), p=law))]
        while True:
            chosen = [rng.permutation(m)[:k] for m, k in zip(placed, counts, strict=True)]
            # one of the last layer must be among them
            if any((at >= m - s).any() for at, m, s in zip(chosen, placed, last, strict=True)):
                return chosen

    def _law(self, placed: tuple[int, ...], last: tuple[int, ...]) -> _Law:
        if (placed, last) not in self._known:
            self._known[placed, last] = self._computed(placed, last)
        return self._known[placed, last]

    def _computed(self, placed: tuple[int, ...], last: tuple[int, ...]) -> _Law:
        if placed == self.all_placed:
            return _Law(0.0, [], np.zeros(0), np.zeros((0, len(placed))))
        one, parents = self._weights[0], np.zeros((0, len(placed)))
        if any(placed):
            before = np.subtract(placed, last)
            sets = _choices(placed, self._counts) - _choices(before, self._counts)
            number = np.log(sets, where=sets > 0, out=np.full(len(sets), -np.inf))
            logs = number[:, None] + self._weights
            one = np.logaddexp.reduce(logs, axis=0)
            parents = np.exp(logs - np.where(np.isfinite(one), one, 0.0))
        left = np.subtract(self.all_placed, placed)
        layers = [tuple(t) for t in np.ndindex(*(left + 1)) if any(t)]
        ways = np.log(_choices(left, layers))
        logs = np.empty(len(layers))
        for number, (many, layer) in enumerate(zip(ways, layers, strict=True)):
            after = self._law(tuple(np.add(placed, layer).tolist()), layer)
            logs[number] = many + sum(t * g for t, g in zip(layer, one, strict=True) if t) + after.total
        total = float(np.logaddexp.reduce(logs))
        return _Law(total, layers, np.exp(logs - total) if total > -np.inf else np.zeros(len(logs)), parents)


def _choices(sizes: ArrayLike, counts: ArrayLike) -> NDArray[np.float64]:
    """Ways to choose `counts` of groups of these sizes, [m, groups] -> [m]."""
    n, k = np.asarray(sizes, float), np.asarray(counts, float)
    logs = gammaln(n + 1) - gammaln(k + 1) - gammaln(np.maximum(n - k, 0) + 1)
    return np.prod(np.where(k <= n, np.exp(logs).round(), 0.0), axis=1)


class _Law(NamedTuple):
    total: float  # log H: what all ways to complete the graph weigh together
    layers: list[tuple[int, ...]]  # nodes of each group in the next layer
    chances: NDArray[np.float64]  # of each of them
    parents: NDArray[np.float64]  # [k, group of the child], of each number of parents by group


def _relabelled(graph: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
    label = rng.permutation(len(graph))
    return graph[np.ix_(label, label)]
