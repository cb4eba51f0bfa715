"""The layered layout: causes above effects, nothing on top of anything else, always the same."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from gflowdag.display.layout import layered_layout
from gflowdag.graph import erdos_renyi

GRAPHS = [
    erdos_renyi(d, edges, np.random.default_rng(seed))
    for seed, (d, edges) in enumerate([(5, 5), (20, 60), (50, 70)])
]


@pytest.mark.parametrize("graph", GRAPHS)
def test_every_edge_points_down_and_bends_in_every_layer_it_crosses(graph):
    layout = layered_layout(graph)
    y = layout.positions[:, 1]
    for i, j in np.argwhere(graph):
        assert y[i] < y[j]
        between = layout.bends.get((i, j), np.empty((0, 2)))[:, 1]
        assert np.array_equal(between, np.arange(y[i] + 1, y[j]))


@pytest.mark.parametrize("graph", GRAPHS)
def test_nodes_and_bends_of_a_layer_do_not_overlap(graph):
    widths = np.random.default_rng(1).uniform(1, 4, len(graph))
    layout = layered_layout(graph, widths=widths.tolist())
    bend = 0.15 * widths.mean()  # a line needs less room than a node
    places = [(*position, width) for position, width in zip(layout.positions, widths, strict=True)]
    places += [(x, y, bend) for points in layout.bends.values() for x, y in points]
    for (x0, y0, w0), (x1, y1, w1) in combinations(places, 2):
        assert y0 != y1 or abs(x0 - x1) >= (w0 + w1) / 2 - 1e-9


def test_a_tree_is_drawn_without_crossings():
    children = {0: (1, 2, 3), 1: (4, 5), 2: (6,), 3: (7, 8)}
    label = np.random.default_rng(0).permutation(9)
    graph = np.zeros((9, 9), dtype=bool)
    for parent, below in children.items():
        graph[label[parent], label[list(below)]] = True
    positions = layered_layout(graph).positions
    edges = [(positions[i, 0], positions[j, 0], positions[i, 1]) for i, j in np.argwhere(graph)]
    crossings = [a for a, b in combinations(edges, 2) if a[2] == b[2] and (a[0] - b[0]) * (a[1] - b[1]) < 0]
    assert crossings == []


def test_layers_stay_narrow_where_one_cause_has_many_effects():
    graph = np.zeros((41, 41), dtype=bool)
    graph[0, 1:] = True
    rows = layered_layout(graph).positions[:, 1]
    assert np.unique(rows, return_counts=True)[1].max() <= 10  # 1.5 sqrt(41), rounded up


def test_graphs_without_edges_and_single_nodes_have_a_layout():
    for d in (1, 2, 30):
        positions = layered_layout(np.zeros((d, d), dtype=bool)).positions
        assert len(np.unique(positions, axis=0)) == d


def test_the_same_graph_is_always_drawn_alike():
    first, second = layered_layout(GRAPHS[1]), layered_layout(GRAPHS[1].copy())
    assert np.array_equal(first.positions, second.positions)
