"""Single graphs and equivalence classes that stand for a posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]

from gflowdag.graph.bits import graph_keys
from gflowdag.graph.closure import transitive_closure
from gflowdag.graph.equivalence import class_keys
from gflowdag.posterior.estimates import ROUNDING

if TYPE_CHECKING:
    from gflowdag.posterior.posterior import Posterior


def best_graph(posterior: Posterior) -> np.ndarray:
    """The graph of highest posterior probability that is known, bool [d, d]."""
    if posterior.best_graph is not None:
        return np.asarray(posterior.best_graph, dtype=bool)
    if posterior.log_scores is not None:
        return posterior.samples[int(np.argmax(posterior.log_scores))]
    first, mass = _distinct_graphs(posterior)
    return posterior.samples[first[int(np.argmax(mass))]]


def consensus_graph(p: np.ndarray, threshold: float) -> np.ndarray:
    """The edges of probability above `threshold` [d, d], without those that close a cycle, bool [d, d]."""
    graph = np.zeros(p.shape, dtype=bool)
    reach = np.eye(len(p), dtype=bool)
    for flat in np.argsort(-p, axis=None, kind="stable"):
        i, j = divmod(int(flat), len(p))
        if p[i, j] <= threshold + ROUNDING:
            break
        if not reach[j, i]:
            graph[i, j] = True
            reach = transitive_closure(graph) | np.eye(len(p), dtype=bool)
    return graph


def equivalence_classes(posterior: Posterior) -> pd.DataFrame:
    """Markov equivalence classes of the samples, the most probable first."""
    first, mass = _distinct_graphs(posterior)
    keys = np.asarray(class_keys(posterior.samples[first]), dtype=object)
    scores = posterior.log_scores
    with np.errstate(divide="ignore"):  # a mass of zero
        score = np.log(mass) if scores is None else scores[first]
    rows: Any = cast(Any, pd.DataFrame({"key": keys, "mass": mass, "score": score, "sample": first}))
    groups = rows.groupby("key", sort=False)
    best = rows.loc[groups["score"].idxmax()].set_index("key")
    table = pd.DataFrame({"probability": groups["mass"].sum(), "num_graphs": groups.size()})
    table["num_edges"] = posterior.samples[best.loc[table.index, "sample"]].sum(axis=(1, 2))
    table["log_score"] = np.nan if scores is None else best.loc[table.index, "score"]
    table["sample"] = best.loc[table.index, "sample"]
    return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)


def _distinct_graphs(posterior: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """The index of the first sample of each distinct graph, and the mass of that graph."""
    _, first, inverse = np.unique(graph_keys(posterior.samples), return_index=True, return_inverse=True)
    return first, np.bincount(inverse, weights=posterior.weights)
