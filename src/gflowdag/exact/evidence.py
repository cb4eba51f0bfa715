"""The weight of all DAGs that hold some edges and not others."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.errors import KnowledgeError
from gflowdag.exact.recurrence import weigh_dags
from gflowdag.exact.scaled import LOG2, potentials, subset_sums
from gflowdag.exact.size import checked_table
from gflowdag.graph.closure import is_acyclic
from gflowdag.runtime.progress import silent
from gflowdag.runtime.threads import num_cores


def log_evidence(table: ArrayLike, *, threads: int | None = None) -> float:
    """The log evidence alone, in a third of the time of `posterior`; −inf where no DAG is allowed.

    Args:
        table: log scores of all parent sets, float64 [d, 2^(d−1)], compressed index; −inf is forbidden.
        threads: number of threads; all available cores by default.
    """
    table = checked_table(table)
    shift = table.max(axis=1, keepdims=True)
    if np.isneginf(shift).any():
        return -np.inf
    sums = subset_sums(table - shift)
    potential = potentials(sums.log)
    weight = weigh_dags(sums, potential, threads or num_cores(), silent)[-1]
    if weight <= 0.0:
        return -np.inf
    return float(np.log(weight) + potential.before[-1] * LOG2 + shift.sum())


def given_edges(
    table: NDArray[np.float64], required: NDArray[np.bool_], forbidden: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """The table with −inf for sets that lack a required parent or hold a forbidden one, both bool [d, d].

    Raises:
        KnowledgeError: the required edges have a cycle, or one is forbidden too.
    """
    if (required & forbidden).any() or not is_acyclic(required):
        raise KnowledgeError("no DAG has all of the required edges and none of the forbidden ones")
    given = table.copy()
    for node in range(len(table)):
        for bit, parent in enumerate(np.delete(np.arange(len(table)), node)):
            split = given[node].reshape(-1, 2, 1 << bit)
            if required[parent, node]:
                split[:, 0] = -np.inf
            if forbidden[parent, node]:
                split[:, 1] = -np.inf
    return given
