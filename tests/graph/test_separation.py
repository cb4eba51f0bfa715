"""d-separation against the definition, by all simple trails of every small graph."""

from __future__ import annotations

from itertools import combinations, pairwise, permutations

import networkx as nx
import numpy as np
import pytest

from gflowdag.graph import all_dags
from gflowdag.graph.random import erdos_renyi
from gflowdag.graph.separation import d_separated


def _has_active_trail(graph: np.ndarray, a: int, b: int, given: set[int]) -> bool:
    """Pearl's definition: each collider is given or has a descendant that is, no other node is given."""
    d = len(graph)
    descendants = np.linalg.matrix_power(graph.astype(int) + np.eye(d, dtype=int), d) > 0
    between = [node for node in range(d) if node not in (a, b)]
    for size in range(len(between) + 1):
        for middle in permutations(between, size):
            trail = (a, *middle, b)
            if not all(graph[i, j] or graph[j, i] for i, j in pairwise(trail)):
                continue
            steps = zip(trail, trail[1:], trail[2:], strict=False)
            if all(
                bool(set(np.flatnonzero(descendants[j])) & given)
                if graph[i, j] and graph[k, j]
                else j not in given
                for i, j, k in steps
            ):
                return True
    return False


@pytest.mark.parametrize("d", [2, 3, 4])
def test_pairs_are_separated_as_the_definition_says(d: int) -> None:
    graphs = all_dags(d)
    for a, b in combinations(range(d), 2):
        rest = [node for node in range(d) if node not in (a, b)]
        for size in range(len(rest) + 1):
            for given in combinations(rest, size):
                expected = [not _has_active_trail(graph, a, b, set(given)) for graph in graphs]
                assert d_separated(graphs, [a], [b], given).tolist() == expected


def test_sets_are_separated_as_networkx_says() -> None:
    rng = np.random.default_rng(4)
    for _ in range(60):
        graph = erdos_renyi(9, 12, rng)
        parts = rng.integers(0, 4, 9)
        first, second, given = (np.flatnonzero(parts == part).tolist() for part in range(3))
        if first and second:
            expected = nx.is_d_separator(nx.DiGraph(graph), set(first), set(second), set(given))
            assert bool(d_separated(graph, first, second, given)) == expected
