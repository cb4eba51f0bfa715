"""What the benchmark cases on orders share."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.graph import distinct_parent_sets, legal_edges
from gflowdag.score import Score
from gflowdag_lab.measurements.harness import Options


def setting(options: Options, name: str, default: int, quick: int) -> int:
    """A number that the command line may set, with one default for each size of run."""
    return int(options.extra.get(name, quick if options.quick else default))


def peak_memory() -> float:
    """Peak memory of the device so far in GiB; NaN where it does not say."""
    statistics = jax.devices()[0].memory_stats() or {}
    return statistics.get("peak_bytes_in_use", float("nan")) / 2**30


def outsider_odds(
    score: Score, candidates: NDArray[np.integer[Any]], graphs: ArrayLike
) -> NDArray[np.float64]:
    """What the restriction leaves out, seen from DAGs that it allows.

    Args:
        score: of the graphs.
        candidates: of each node, int [d, K].
        graphs: DAGs whose parents are candidates or a single outsider, bool [n, d, d].

    Returns:
        float64 [n]: weight of all DAGs that have one edge more, from an outsider, relative to the DAG itself.
        The mean over posterior samples is the posterior odds of needing one outsider beside the candidates.
    """
    graphs = np.asarray(graphs, bool)
    d = score.num_variables
    legal = np.asarray(legal_edges(graphs))
    odds = np.zeros(len(graphs))
    for node in range(d):
        outsider = np.ones(d, bool)
        outsider[candidates[node]] = False
        outsider[node] = False
        parent_sets, inverse = distinct_parent_sets(graphs, node)
        extendable = parent_sets.any(axis=1, keepdims=True)  # the outsider alone is in the table
        gains = score.extended_local(node, parent_sets) - score.local(node, parent_sets)[:, None]
        with np.errstate(over="ignore"):  # from a DAG of no weight, infinite odds are right
            gains = np.exp(np.where(outsider & extendable, gains, -np.inf))
        odds += np.where(legal[:, :, node], gains[inverse], 0.0).sum(axis=1)
    return odds
