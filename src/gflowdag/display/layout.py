"""Layered drawing of a directed graph (Sugiyama et al., 1981): causes above effects, few crossings.

Longest-path layers of bounded width, orders by weighted barycentres, coordinates by least squares. The same
graph always gets the same drawing. `block_layout` makes larger drawings of several of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.graph.order import topological_order

_SWEEPS = 16
_SHAPES = (0.6, 0.8, 1.0, 1.25, 1.5)  # nodes in a layer that are tried, in roots of their number
_BEND_WIDTH = 0.15  # of the mean width of a node
_STRAIGHTNESS = 4.0  # how much more a bend resists than a node: long edges should run straight


class Layout(NamedTuple):
    """Where to draw the nodes and the edges of one graph."""

    positions: NDArray[np.float64]  # [d, 2]: x in the unit of the widths, y the layer, counted downwards
    bends: dict[tuple[int, int], NDArray[np.float64]]  # [k, 2] points of the edges that cross k layers

    def extent(self, width: ArrayLike) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of what is drawn; `width` are the widths of the nodes, [d]."""
        half = np.asarray(width, dtype=np.float64) / 2
        x, y = self.positions.T
        bends = np.concatenate([np.empty((0, 2)), *self.bends.values()])[:, 0]
        left, right = np.append(x - half, bends), np.append(x + half, bends)
        return float(left.min()), float(y.min()), float(right.max()), float(y.max())


class _Layered(NamedTuple):
    """Nodes and bends as vertices in layers; every link joins neighbouring layers."""

    layers: list[list[int]]  # vertices of each layer, in order from left to right
    links: list[list[tuple[int, int, float]]]  # from each layer to the next: (upper, lower, weight)


def layered_layout(
    graph: ArrayLike,
    *,
    widths: Sequence[float] | None = None,
    weights: ArrayLike | None = None,
    most_in_a_layer: int | None = None,
) -> Layout:
    """Lay out a DAG from top to bottom; nodes without edges go to rows of their own below.

    Args:
        graph: bool [d, d], acyclic, rows are sources.
        widths: room that each node takes, [d]; one by default.
        weights: importance of each edge [d, d], such as its probability; one by default.
        most_in_a_layer: the most nodes side by side; by default 1.5 times the root of their number.
    """
    graph = np.asarray(graph, dtype=bool)
    d = len(graph)
    width = np.ones(d) if widths is None else np.asarray(widths, dtype=np.float64)
    weight = np.ones((d, d)) if weights is None else np.asarray(weights, dtype=np.float64)
    connected = np.any(graph | graph.T, axis=1)
    limit = most_in_a_layer or max(5, int(np.ceil(1.5 * np.sqrt(d))))

    layer = _assign_layers(graph, connected, limit)
    layered, bends, widths_all = _split_long_edges(graph, layer, width, weight)
    layered = _order(layered)
    x = _coordinates(layered, widths_all, num_nodes=d)
    positions = np.zeros((d, 2))
    positions[connected, 0], positions[connected, 1] = x[:d][connected], layer[connected]
    place_in_rows(positions, np.flatnonzero(~connected), width, layer.max(initial=-1) + 1)
    routes = {
        edge: np.array([(x[vertex], layer[edge[0]] + step) for step, vertex in enumerate(vertices, start=1)])
        for edge, vertices in bends.items()
    }
    return Layout(positions, routes)


def fitted_layout(
    graph: ArrayLike, *, widths: ArrayLike, weights: ArrayLike, layer_height: float, box: tuple[float, float]
) -> Layout:
    """The layered layout whose picture fills a box best: of several widths of the layers, the largest scale.

    Args:
        graph: bool [d, d], acyclic.
        widths: room that each node takes, [d].
        weights: importance of each edge, [d, d].
        layer_height: distance of two layers in the unit of the widths.
        box: its width and height, in the unit of the widths. Where several pictures fit into it in their
            natural size, it is the widest, which has the shortest edges.
    """
    width, d = np.asarray(widths, dtype=np.float64), len(np.asarray(graph))
    limits = sorted({max(2, round(factor * np.sqrt(d))) for factor in _SHAPES}, reverse=True)
    found = [
        layered_layout(graph, widths=width.tolist(), weights=weights, most_in_a_layer=limit)
        for limit in limits
    ]

    def scale(layout: Layout) -> float:
        left, top, right, bottom = layout.extent(width)
        return min(1.0, box[0] / (right - left), box[1] / ((bottom - top + 1) * layer_height))

    return max(found, key=scale)


def _assign_layers(graph: NDArray[np.bool_], connected: NDArray[np.bool_], limit: int) -> NDArray[np.int64]:
    """Layer of each connected node, −1 for the others: below all parents, at most `limit` in a layer."""
    d = len(graph)
    layer = np.full(d, -1)
    count = np.zeros(2 * d + 1, dtype=np.int64)
    order = [node for node in topological_order(graph) if connected[node]]
    for node in order:
        level = int(layer[graph[:, node]].max(initial=-1)) + 1
        while count[level] >= limit:
            level += 1
        layer[node] = level
        count[level] += 1
    for node in reversed(order):  # causes move down to their first effect: short edges
        children = layer[graph[node]]
        if children.size and graph[node].sum() > graph[:, node].sum():
            level = int(children.min()) - 1
            while count[level] >= limit and level > layer[node]:
                level -= 1
            count[layer[node]] -= 1
            count[level] += 1
            layer[node] = level
    used = np.unique(layer[connected])
    layer[connected] = np.searchsorted(used, layer[connected])
    return layer


def _split_long_edges(
    graph: NDArray[np.bool_],
    layer: NDArray[np.int64],
    width: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> tuple[_Layered, dict[tuple[int, int], list[int]], NDArray[np.float64]]:
    """Put a vertex wherever an edge crosses a layer; returns also these vertices by edge, and all widths."""
    num_layers = int(layer.max(initial=-1)) + 1
    layers: list[list[int]] = [[] for _ in range(num_layers)]
    for node in _by_component(graph):
        if layer[node] >= 0:
            layers[layer[node]].append(node)
    links: list[list[tuple[int, int, float]]] = [[] for _ in range(num_layers)]
    bends: dict[tuple[int, int], list[int]] = {}
    free = len(graph)
    for i, j in np.argwhere(graph):
        chain = list(range(free, free + layer[j] - layer[i] - 1))
        free += len(chain)
        if chain:
            bends[int(i), int(j)] = chain
        path = [int(i), *chain, int(j)]
        for step, (upper, lower) in enumerate(pairwise(path)):
            links[layer[i] + step].append((upper, lower, float(weight[i, j])))
        for step, vertex in enumerate(chain, start=1):
            layers[layer[i] + step].append(vertex)
    bend_width = _BEND_WIDTH * float(width.mean()) if len(width) else 0.0
    return _Layered(layers, links), bends, np.concatenate([width, np.full(free - len(graph), bend_width)])


def _by_component(graph: NDArray[np.bool_]) -> list[int]:
    """All nodes, those of one connected component together, neighbours near each other."""
    neighbours = graph | graph.T
    seen: list[int] = []
    for root in topological_order(graph):
        waiting = [int(root)]
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.append(node)
                waiting.extend(int(other) for other in np.flatnonzero(neighbours[node])[::-1])
    return seen


def _order(layered: _Layered) -> _Layered:
    """The order of each layer with the fewest weighted crossings that the sweeps find."""
    layers = [list(layer) for layer in layered.layers]
    best, fewest = [list(layer) for layer in layers], _crossings(layers, layered.links)
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        for index in range(1, len(layers)) if downwards else range(len(layers) - 2, -1, -1):
            fixed = index - 1 if downwards else index + 1
            links = layered.links[min(index, fixed)]
            layers[index] = _sorted_by_barycentre(layers[index], layers[fixed], links, downwards)
        crossings = _crossings(layers, layered.links)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    return _Layered(best, layered.links)


def _sorted_by_barycentre(
    moving: list[int], fixed: list[int], links: list[tuple[int, int, float]], downwards: bool
) -> list[int]:
    place = {vertex: index for index, vertex in enumerate(fixed)}
    total = dict.fromkeys(moving, 0.0)
    mass = dict.fromkeys(moving, 0.0)
    for upper, lower, weight in links:
        vertex, anchor = (lower, upper) if downwards else (upper, lower)
        total[vertex] += weight * place[anchor]
        mass[vertex] += weight
    # A vertex without links on this side keeps its relative place.
    spread = max(len(fixed) - 1, 1) / max(len(moving) - 1, 1)
    key = {v: total[v] / mass[v] if mass[v] else index * spread for index, v in enumerate(moving)}
    return sorted(moving, key=lambda vertex: key[vertex])


def _crossings(layers: list[list[int]], links: list[list[tuple[int, int, float]]]) -> float:
    """Pairs of links that cross, weighted by both."""
    total = 0.0
    for index, between in enumerate(links[:-1]):
        if len(between) < 2:
            continue
        above = {vertex: place for place, vertex in enumerate(layers[index])}
        below = {vertex: place for place, vertex in enumerate(layers[index + 1])}
        u, v, w = np.array([(above[a], below[b], weight) for a, b, weight in between]).T
        cross = (u[:, None] - u) * (v[:, None] - v) < 0
        total += float((w[:, None] * w)[cross].sum()) / 2
    return total


def _coordinates(layered: _Layered, width: NDArray[np.float64], num_nodes: int) -> NDArray[np.float64]:
    """x of every vertex: near its neighbours, in the given order, without overlap."""
    x = np.zeros(len(width))
    offsets = []
    for layer in layered.layers:
        w = width[layer]
        offset = np.concatenate([[0.0], np.cumsum((w[1:] + w[:-1]) / 2)])
        offsets.append(offset)
        x[layer] = offset - offset.mean()
    firmness = np.where(np.arange(len(width)) < num_nodes, 1.0, _STRAIGHTNESS)
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        for index in range(len(layered.layers)) if downwards else range(len(layered.layers) - 1, -1, -1):
            layer, offset = layered.layers[index], offsets[index]
            total, mass = np.zeros(len(width)), np.zeros(len(width))
            around = (layered.links[index - 1] if index else []) + layered.links[index]
            for a, b, weight in around:
                for vertex, anchor in ((a, b), (b, a)):
                    pull = weight * firmness[vertex] * firmness[anchor]
                    total[vertex] += pull * x[anchor]
                    mass[vertex] += pull
            wanted = np.where(mass[layer] > 0, total[layer] / np.maximum(mass[layer], 1e-12), x[layer])
            # Least squares under "each at least its distance right of the one before" is isotonic
            # regression of what is left after the distances.
            x[layer] = _increasing(wanted - offset, mass[layer] + 1e-3) + offset
    return x


def _increasing(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Isotonic regression by pooling neighbours that are out of order; scipy's takes a while to load."""
    pools: list[tuple[float, float, int]] = []  # mean, weight and size
    for mean, weight in zip(values.tolist(), weights.tolist(), strict=True):
        size = 1
        while pools and pools[-1][0] >= mean:
            before, heavy, many = pools.pop()
            mean = (heavy * before + weight * mean) / (heavy + weight)
            weight, size = weight + heavy, size + many
        pools.append((mean, weight, size))
    return np.repeat([mean for mean, _, _ in pools], [size for _, _, size in pools])


def place_in_rows(
    positions: NDArray[np.float64], nodes: NDArray[np.int64], width: NDArray[np.float64], first_layer: float
) -> None:
    """Put nodes side by side below the drawing, in rows about as wide as it; changes `positions`."""
    placed = np.setdiff1d(np.arange(len(width)), nodes)
    left = float((positions[placed, 0] - width[placed] / 2).min()) if placed.size else 0.0
    right = float((positions[placed, 0] + width[placed] / 2).max()) if placed.size else 0.0
    limit = max(right - left, 5 * float(width.mean()) if len(width) else 0.0)
    x, y = left, float(first_layer)
    for node in nodes:
        if x > left and x + width[node] > left + limit:
            x, y = left, y + 1
        positions[node] = x + width[node] / 2, y
        x += width[node]
