"""Enumeration of all DAGs, and their topological orders."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from gflowdag import graph
from gflowdag.errors import TooLargeError


@pytest.mark.parametrize(("d", "count"), [(1, 1), (2, 3), (3, 25), (4, 543), (5, 29281)])
def test_all_dags_are_there_once_each(d: int, count: int):
    graphs = graph.all_dags(d)
    assert graphs.shape == (count, d, d)
    assert graph.is_acyclic(graphs).all()
    assert len(np.unique(graph.graph_keys(graphs))) == count


def test_more_than_five_nodes_are_refused():
    with pytest.raises(TooLargeError, match="1 to 5"):
        graph.all_dags(6)


def _slow_canonical_order(adjacency: list[list[bool]]) -> list[int]:
    nodes = range(len(adjacency))
    order: list[int] = []
    while len(order) < len(adjacency):
        ready = (j for j in nodes if j not in order and all(i in order for i in nodes if adjacency[i][j]))
        order.append(next(ready))
    return order


@pytest.mark.parametrize("d", [4, 5])
def test_the_canonical_order_is_the_one_of_its_definition(d: int):
    graphs = graph.all_dags(d)
    expected = [_slow_canonical_order(adjacency) for adjacency in graphs.tolist()]
    np.testing.assert_array_equal(graph.canonical_order(graphs), expected)


@pytest.mark.parametrize("function", [graph.canonical_order, graph.topological_order])
def test_orders_of_all_dags_on_five_nodes_are_topological(function):
    graphs = graph.all_dags(5)
    order = function(graphs)
    np.testing.assert_array_equal(np.sort(order, axis=1), np.broadcast_to(np.arange(5), order.shape))
    position = np.argsort(order, axis=1)
    assert not (graphs & (position[:, :, None] >= position[:, None, :])).any()


def test_an_order_is_canonical_iff_each_node_has_a_parent_since_the_last_larger_label():
    graphs = graph.all_dags(5)
    orders = graph.canonical_order(graphs)
    # All orders of every 53rd DAG: exactly one of them may fulfil the condition.
    for adjacency, canonical in zip(graphs[::53], orders[::53], strict=True):
        fulfilling = [p for p in permutations(range(5)) if _is_canonical(adjacency, p)]
        assert fulfilling == [tuple(canonical)]


def _is_canonical(adjacency: np.ndarray, order: tuple[int, ...]) -> bool:
    for position, j in enumerate(order):
        placed = order[:position]
        parents = set(np.flatnonzero(adjacency[:, j]))
        if not parents <= set(placed):
            return False
        larger = [k for k, node in enumerate(placed) if node > j]
        if larger and not parents & set(placed[larger[-1] :]):
            return False
    return True


@pytest.mark.parametrize("function", [graph.canonical_order, graph.topological_order])
def test_cycles_have_no_order(function):
    with pytest.raises(ValueError, match="acyclic"):
        function(np.array([[[0, 1], [0, 0]], [[0, 1], [1, 0]]]))
