"""Drawing of many variables: connected blocks, each drawn in layers, packed side by side.

A layered drawing of more than about forty variables is many times wider than a page. Here the variables are
split into blocks with most edges inside, each block gets a layered drawing of its own, and the blocks are
packed into a box so that blocks with edges between them are near. The same graph gets the same drawing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from gflowdag.display.layout import Layout, fitted_layout, place_in_rows

MAX_LAYERED = 40  # variables; beyond, the drawing is made of blocks
_MAX_BLOCK = 24  # variables in a block
_MARGIN = 0.5  # of a block above its first and below its last layer, in layers
_TRIALS_PER_BLOCK, _MAX_TRIALS = 60, 1200  # of the search for an arrangement
_CELLS = 150  # across the strip into which blocks are packed
_BLOCK_SHAPE = (1.0, 1.0)  # so small that nothing fits: the ratio alone counts


class Block(NamedTuple):
    """Variables that are drawn together."""

    members: NDArray[np.int64]  # the most connected first
    box: NDArray[np.float64]  # left, top, right, bottom; x in the unit of the widths, y in layers
    connected: bool  # whether its variables have likely edges at all


class BlockLayout(NamedTuple):
    """A layout, and its blocks; none where all variables are in one drawing."""

    layout: Layout
    blocks: list[Block]


def graph_layout(
    graph: ArrayLike,
    *,
    widths: ArrayLike,
    weights: ArrayLike,
    layer_height: float,
    box: tuple[float, float],
    gap: float = 30.0,
) -> BlockLayout:
    """Lay out a DAG: in layers, or beyond `MAX_LAYERED` variables in blocks of layers.

    Args:
        graph: bool [d, d], acyclic, rows are sources.
        widths: room that each node takes, [d].
        weights: importance of each edge [d, d], such as its probability.
        layer_height: distance of two layers in the unit of the widths.
        box: width and height of the place to be filled, in the unit of the widths.
        gap: between two blocks; a third of it between the sides of a block and its nodes.
    """
    graph, width = np.asarray(graph, dtype=bool), np.asarray(widths, dtype=np.float64)
    weight = np.asarray(weights, dtype=np.float64)
    if len(graph) <= MAX_LAYERED:
        return BlockLayout(
            fitted_layout(graph, widths=width, weights=weight, layer_height=layer_height, box=box), []
        )
    members = find_blocks(np.where(graph, weight, 0.0))
    drawings = [
        fitted_layout(
            graph[np.ix_(m, m)],
            widths=width[m],
            weights=weight[np.ix_(m, m)],
            layer_height=layer_height,
            box=_BLOCK_SHAPE,
        )
        for m in members
    ]
    extents = np.array([one.extent(width[m]) for one, m in zip(drawings, members, strict=True)])
    extents = extents.reshape(-1, 4) + np.array([-gap / 3, -_MARGIN, gap / 3, _MARGIN])
    sizes = (extents[:, 2:] - extents[:, :2]) * [1.0, layer_height]
    corners = _arrange(sizes + gap, _between(graph, weight, members), box) / [1.0, layer_height]

    positions = np.zeros((len(graph), 2))
    bends: dict[tuple[int, int], NDArray[np.float64]] = {}
    blocks = []
    for m, one, extent, corner in zip(members, drawings, extents, corners, strict=True):
        shift = corner - extent[:2]
        positions[m] = one.positions + shift
        bends |= {(int(m[i]), int(m[j])): points + shift for (i, j), points in one.bends.items()}
        blocks.append(Block(m, np.append(corner, corner + extent[2:] - extent[:2]), True))
    alone = np.flatnonzero(~np.any(graph | graph.T, axis=1))
    if alone.size:
        blocks.append(_below(positions, alone, width, blocks, layer_height, box, gap))
    return BlockLayout(Layout(positions, bends), blocks)


def find_blocks(weights: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """Blocks of variables with most of the weight inside, by modularity (Louvain), the largest first.

    Variables without a weight are in none.

    Args:
        weights: importance of each edge [d, d], zero where there is none.
    """
    import networkx as nx

    weight = weights + weights.T
    graph: nx.Graph[int] = nx.Graph()
    pairs = np.argwhere(np.triu(weight))
    graph.add_weighted_edges_from((int(i), int(j), float(weight[i, j])) for i, j in pairs)
    found: list[NDArray[np.int64]] = []
    waiting = [(set(graph), 1.0)]
    while waiting:
        nodes, resolution = waiting.pop()
        parts = nx.community.louvain_communities(
            graph.subgraph(sorted(nodes)), weight="weight", resolution=resolution, seed=0
        )
        for part in parts:
            if len(part) > _MAX_BLOCK and resolution < 100:
                waiting.append((part, 1.5 * resolution if len(parts) == 1 else 1.0))
            else:
                found.append(np.array(sorted(part, key=lambda i: (-weight[i].sum(), i))))
    return sorted(found, key=lambda members: (-len(members), int(members[0])))


def _between(
    graph: NDArray[np.bool_], weight: NDArray[np.float64], members: list[NDArray[np.int64]]
) -> NDArray[np.float64]:
    """Weight of the edges from each block to each other, [k, k]."""
    inside = np.zeros((len(members), len(graph)))
    for block, nodes in enumerate(members):
        inside[block, nodes] = 1
    total = inside @ np.where(graph, weight, 0.0) @ inside.T
    np.fill_diagonal(total, 0)
    return total


def _arrange(
    sizes: NDArray[np.float64], affinity: NDArray[np.float64], box: tuple[float, float]
) -> NDArray[np.float64]:
    """Left upper corners of the blocks: compact, those with edges between them near, causes rather above.

    A random search over the order in which blocks are packed, always from the same seed. The sizes include
    the gap to the next block.
    """
    count = len(sizes)
    if count == 0:
        return np.zeros((0, 2))
    room = float(np.sqrt(1.15 * sizes.prod(axis=1).sum() * box[0] / box[1]))
    room = max(room, float(sizes[:, 0].max()))
    source, target = np.nonzero(affinity)
    mass = affinity[source, target]
    reference = room * max(float(mass.sum()), 1e-12)

    def cost(corners: NDArray[np.float64]) -> float:
        centres = corners + sizes / 2
        across, down = (centres[target] - centres[source]).T
        length = mass @ (np.hypot(across, down) + 0.5 * np.maximum(-down, 0)) / reference
        return float(length + 0.7 * (corners + sizes).max(axis=0)[1] * box[0] / box[1] / room)

    order = np.argsort(affinity.sum(axis=0) - affinity.sum(axis=1), kind="stable")
    best = _pack(sizes, order, room)
    least = cost(best)
    rng = np.random.default_rng(0)
    for _ in range(min(_TRIALS_PER_BLOCK * count, _MAX_TRIALS) if count > 1 else 0):
        changed = order.copy()
        i, j = rng.choice(count, size=2, replace=False)
        if rng.random() < 0.5:
            changed[[i, j]] = changed[[j, i]]
        else:
            changed = np.insert(np.delete(changed, i), j, order[i])
        corners = _pack(sizes, changed, room)
        if (found := cost(corners)) <= least:
            order, best, least = changed, corners, found
    return best


def _pack(sizes: NDArray[np.float64], order: NDArray[np.int64], room: float) -> NDArray[np.float64]:
    """Corners of boxes that are placed one by one, each as high as it fits into a strip `room` wide."""
    corners = np.zeros((len(sizes), 2))
    lowest = np.zeros(_CELLS)  # free y of each cell across the strip
    cells = np.minimum(np.ceil(sizes[:, 0] / room * _CELLS - 1e-9).astype(int), _CELLS)
    for index in order:
        levels = sliding_window_view(lowest, cells[index]).max(axis=1)
        first = int(levels.argmin())
        corners[index] = first * room / _CELLS, levels[first]
        lowest[first : first + cells[index]] = levels[first] + sizes[index, 1]
    return corners


def _below(
    positions: NDArray[np.float64],
    alone: NDArray[np.int64],
    width: NDArray[np.float64],
    blocks: list[Block],
    layer_height: float,
    box: tuple[float, float],
    gap: float,
) -> Block:
    """Put the variables without likely edges into rows below the blocks; changes `positions`."""
    boxes = np.array([block.box for block in blocks]).reshape(-1, 4)
    bottom = float(boxes[:, 3].max()) + gap / layer_height if blocks else 0.0
    alone_across = float(np.sqrt(0.6 * width.sum() * layer_height * box[0] / box[1]))
    across = float(boxes[:, 2].max()) if blocks else alone_across
    lines = np.zeros((len(alone) + 1, 2))
    # A first box as wide as the drawing says how long the rows may be.
    room = np.append(across - 2 * gap / 3, width[alone])
    lines[0] = across / 2, 0
    place_in_rows(lines, np.arange(1, len(lines)), room, 0)
    positions[alone] = lines[1:] * [1, 0.6] + [0, bottom + _MARGIN]
    last = float(positions[alone, 1].max())
    return Block(alone, np.array([0.0, bottom, across, last + _MARGIN]), False)
