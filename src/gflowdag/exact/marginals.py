"""The exact posterior over all DAGs: evidence, and the marginals of edges, parent sets and paths."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.exact.recurrence import weigh_completions, weigh_dags
from gflowdag.exact.scaled import LOG2, compress, potentials, subset_sums
from gflowdag.exact.size import MAX_VARIABLES, check_size, checked_table, no_dag
from gflowdag.progress import Progress, silent
from gflowdag.score.subsets import log_subset_sums
from gflowdag.score.threads import num_cores


class Exact(NamedTuple):
    """The exact posterior; in every matrix rows are sources."""

    log_evidence: float
    edge_probabilities: NDArray[np.float64]  # [d, d], of i → j
    path_probabilities: NDArray[np.float64]  # [d, d], of a directed path from i to j
    parent_set_log_probabilities: NDArray[np.float64]  # [d, 2^(d−1)], compressed index
    log_completions: NDArray[np.float64]  # [2^d], log weight of all ways to add the other nodes to a set
    discrepancy: float  # between the log evidence of the two recurrences: rounding, seen from outside


def posterior(
    table: ArrayLike,
    *,
    progress: Progress = silent,
    threads: int | None = None,
    max_variables: int = MAX_VARIABLES,
) -> Exact:
    """Sum over all DAGs with these local scores, in O(3^d) time and O(d 2^d) memory.

    Args:
        table: log scores of all parent sets, float64 [d, 2^(d−1)], compressed index; −inf is forbidden.
        progress: told how far it is.
        threads: number of threads; all available cores by default. The result does not depend on it.
        max_variables: refuse more variables than this, with the time and memory that they would take.

    Raises:
        TooLargeError: d > max_variables.
        KnowledgeError: every DAG holds a forbidden parent set.
    """
    table = checked_table(table)
    check_size(len(table), max_variables)
    threads = threads or num_cores()
    shift = table.max(axis=1, keepdims=True)  # the best parent set of each node weighs 1: nothing overflows
    if np.isneginf(shift).any():
        raise no_dag()
    shifted = table - shift
    sums = subset_sums(shifted)
    potential = potentials(sums.log)
    weight = weigh_dags(sums, potential, threads, _part(progress, 0))
    if weight[-1] == 0.0:
        raise no_dag()
    completions, only_root = weigh_completions(sums, potential, threads, _part(progress, 1))
    log_total = np.log(completions[0]) + potential.after[0] * LOG2
    log_roots = only_root  # turned into logarithms in place
    paths = _nondescendants(weight, log_roots, potential.before, potential.after, sums.log, log_total)
    # P(Pa_j = P) = exp score(j, P) · Σ_{W ⊇ P} P(W are the non-descendants of j) / β_j(W); supersets are the
    # subsets of the table read backwards.
    log_probabilities = log_subset_sums(np.ascontiguousarray(log_roots[:, ::-1]))[:, ::-1] + shifted
    with np.errstate(divide="ignore"):
        log_completions = np.log(completions) + potential.after * LOG2
    return Exact(
        log_evidence=float(log_total + shift.sum()),
        edge_probabilities=_edges(log_probabilities),
        path_probabilities=paths,
        parent_set_log_probabilities=log_probabilities,
        log_completions=log_completions,
        discrepancy=float(abs(np.log(weight[-1]) + potential.before[-1] * LOG2 - log_total)),
    )


def _part(progress: Progress, half: int) -> Progress:
    def report(done: float, total: float, /, **figures: float) -> None:
        progress(half * total + done, 2 * total, **figures)

    return report


@numba.njit(cache=True, nogil=True)
def _nondescendants(weight, only_root, before, after, log_sums, log_total):
    """Turn `only_root` into log P(non-descendants of j = W) − log β_j(W); returns the path marginals."""
    d = only_root.shape[0]
    paths = np.zeros((d, d))
    for j in range(d):
        for placed in range(1 << d):
            if placed >> j & 1:
                continue
            position = compress(placed, j)
            product = weight[placed] * only_root[j, position]
            if product <= 0.0:  # nothing, or the rounding of nothing
                only_root[j, position] = -np.inf
                continue
            log_probability = np.log(product) + (before[placed] + after[placed]) * LOG2 - log_total
            only_root[j, position] = log_probability - log_sums[j, position]
            for i in range(d):
                if i != j and not placed >> i & 1:
                    paths[j, i] += np.exp(log_probability)
    return paths


def _edges(log_probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    d = len(log_probabilities)
    edges = np.zeros((d, d))
    for j in range(d):
        probabilities = np.exp(log_probabilities[j])
        for i in range(d):
            if i != j:
                bit = i - (i > j)
                edges[i, j] = probabilities.reshape(-1, 2, 1 << bit)[:, 1].sum()
    return edges
