"""One good DAG, by hill climbing: adding, removing or reversing the best edge until nothing helps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gflowdag.graph.closure import legal_edges, transitive_closure
from gflowdag.score.base import Score

_SMALLEST_GAIN = 1e-6  # nats; ends cycles among equivalent DAGs


def iterated_climb(score: Score, rng: np.random.Generator, *, rounds: int = 10) -> NDArray[np.bool_]:
    """The best of several climbs, each from a DAG that has lost a third of its edges, bool [d, d]."""
    required = score.constraints.required
    best = climb(score, required)
    best_score = score.log_score(best[None])[0]
    for _ in range(rounds):
        graph = climb(score, (best & (rng.random(best.shape) < 2 / 3)) | required)
        if (value := score.log_score(graph[None])[0]) > best_score:
            best, best_score = graph, value
    return best


def climb(score: Score, start: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The local optimum of the score that is reached from a DAG, bool [d, d]."""
    graph = start.copy()
    d = len(graph)
    add = np.empty((d, d))
    remove = np.full((d, d), -np.inf)
    changed = range(d)
    while True:
        for node in changed:
            add[:, node], remove[:, node] = _changes(score, node, graph[:, node])
        paths = transitive_closure(graph)
        reversible = graph & ~((graph.astype(np.float32) @ paths.astype(np.float32)) > 0)
        gains = np.stack(
            [
                np.where(legal_edges(graph), add, -np.inf),
                np.where(graph, remove, -np.inf),
                np.where(reversible, remove + add.T, -np.inf),
            ]
        )
        kind, source, target = np.unravel_index(np.argmax(gains), gains.shape)
        if gains[kind, source, target] < _SMALLEST_GAIN:
            return graph
        graph[source, target] = kind == 0
        if kind == 2:
            graph[target, source] = True
        changed = (int(source), int(target))


def _changes(score: Score, node: int, parents: NDArray[np.bool_]):
    """Change of a node's score by adding each parent, and by removing it, [d] each; −inf where impossible."""
    now = score.local(node, parents[None])[0]
    add = score.extended_local(node, parents[None])[0] - now
    members = np.flatnonzero(parents)
    smaller = np.repeat(parents[None], len(members), axis=0)
    smaller[np.arange(len(members)), members] = False
    remove = np.full(len(parents), -np.inf)
    remove[members] = score.local(node, smaller) - now
    return add, remove
