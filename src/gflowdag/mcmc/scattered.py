"""Graphs for chains to start at, far apart: chains that began at one graph agree whether they mix or not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gflowdag.graph.closure import is_acyclic
from gflowdag.score import Score


def scattered_graphs(score: Score, num_graphs: int, seed: int) -> NDArray[np.bool_]:
    """Random graphs of about one edge a node, along random orders that knowledge allows, bool [n, d, d]."""
    rng = np.random.default_rng(seed)
    return np.stack([_random_graph(score, rng) for _ in range(num_graphs)])


def _random_graph(score: Score, rng: np.random.Generator) -> NDArray[np.bool_]:
    required, forbidden, limit = score.constraints
    d = len(required)
    if not is_acyclic(required):
        raise ValueError("the required edges have a cycle")
    graph = required.copy()
    share = min(2 / max(d - 1, 1), 0.5)
    placed, missing = np.zeros(d, bool), required.sum(axis=0)
    for _ in range(d):
        node = rng.choice(np.flatnonzero(~placed & (missing == 0)))
        further = rng.permutation(
            np.flatnonzero(placed & ~forbidden[:, node] & ~graph[:, node] & (rng.random(d) < share))
        )
        room = d if limit is None else max(limit - graph[:, node].sum(), 0)
        graph[further[:room], node] = True
        placed[node] = True
        missing = missing - required[node]
    for node in range(d):  # the limit on cells may rule out what the knowledge says nothing of
        if not score.allows(node, graph[:, node][None])[0]:
            graph[:, node] = required[:, node]
    return graph
