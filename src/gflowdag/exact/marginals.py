"""The exact posterior over all DAGs: evidence, and the marginals of edges, parent sets and paths."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.exact.recurrence import weigh_completions, weigh_dags
from gflowdag.exact.saved import Saved
from gflowdag.exact.scaled import LOG2, expand, potentials, subset_sums, unite
from gflowdag.exact.size import MAX_VARIABLES, check_size, checked_table, no_dag
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.threads import map_threads, num_cores
from gflowdag.score.subsets import zeta_in_place


class Exact(NamedTuple):
    """The exact posterior; in every matrix rows are sources."""

    log_evidence: float
    edge_probabilities: NDArray[np.float64]  # [d, d], of i → j
    path_probabilities: NDArray[np.float64]  # [d, d], of a directed path from i to j
    parent_set_log_probabilities: NDArray[np.float64]  # [d, 2^(d−1)], compressed index
    log_completions: NDArray[np.float64]  # [2^d], log H(W), with the best set of each node weighing 1
    discrepancy: float  # between the log evidence of the two recurrences: rounding, seen from outside


def posterior(
    table: ArrayLike,
    *,
    progress: Progress = silent,
    threads: int | None = None,
    max_variables: int = MAX_VARIABLES,
    saved: Saved | None = None,
) -> Exact:
    """Sum over all DAGs with these local scores, in O(3^d) time and O(d 2^d) memory.

    Args:
        table: log scores of all parent sets, float64 [d, 2^(d−1)], compressed index; −inf is forbidden.
        progress: told how far it is.
        threads: number of threads; all available cores by default. The result does not depend on it.
        max_variables: refuse more variables than this, with the time and memory that they would take.
        saved: where the state is kept, and continued from.

    Raises:
        TooLargeError: d > max_variables.
        KnowledgeError: every DAG holds a forbidden parent set.
    """
    table = checked_table(table)
    d = len(table)
    check_size(d, max_variables)
    threads = threads or num_cores()
    shift = table.max(axis=1, keepdims=True)  # the best parent set of each node weighs 1: nothing overflows
    if np.isneginf(shift).any():
        raise no_dag()
    sums = subset_sums(table - shift)
    potential = potentials(sums.log)
    keep_dags: dict[str, Any] = {}
    keep_completions: dict[str, Any] = {}
    if saved is not None:
        keep_dags = {"begun": saved.dags, "after_layer": saved.after_dags}
    weight = weigh_dags(sums, potential, threads, _half(progress, 0), **keep_dags)
    if weight[-1] == 0.0:
        raise no_dag()
    if saved is not None:
        keep_completions = {"begun": saved.completions, "after_layer": saved.after_completions}
    completions, only_root = weigh_completions(
        sums, potential, threads, _half(progress, 1), **keep_completions
    )
    log_sums = sums.log
    del sums  # mantissas and exponents
    log_total = np.log(completions[0]) + potential.after[0] * LOG2
    log_weight = unite(weight, potential.before) - log_total
    log_scale = log_weight + potential.after * LOG2  # of the weights in `only_root`
    log_roots, paths, edges = only_root, np.zeros((d, d)), np.zeros((d, d))

    def finish(j: int) -> None:
        _nondescendants(j, log_scale, log_sums[j], log_roots[j], paths[j])
        # P(Pa_j = P) = exp score(j, P) · Σ_{W ⊇ P} P(W are the non-descendants of j) / β_j(W). Supersets are
        # the subsets of the table read backwards.
        backwards = log_roots[j][::-1].copy()
        zeta_in_place(backwards)
        np.add(table[j] - shift[j], backwards[::-1], out=log_roots[j])
        edges[:, j] = _edges_to(j, np.exp(log_roots[j]))

    map_threads(finish, range(d))
    return Exact(
        log_evidence=float(log_total + shift.sum()),
        edge_probabilities=np.minimum(edges, 1.0),  # sums of parent sets, 1 + 1e-14 where an edge is certain
        path_probabilities=np.minimum(paths, 1.0),
        parent_set_log_probabilities=log_roots,
        log_completions=unite(completions, potential.after),
        discrepancy=float(abs(log_weight[-1])),
    )


def _half(progress: Progress, half: int) -> Progress:
    def report(done: float, total: float, /, **values: float) -> None:
        progress(half * total + done, 2 * total, **values)

    return report


@numba.njit(cache=True, nogil=True)
def _nondescendants(j, log_scale, log_sums, only_root, paths):
    """Turn `only_root` into log P(non-descendants of j = W) − log β_j(W), and add up the paths from j."""
    d = paths.size
    for position in range(only_root.size):
        placed = expand(position, j)
        if only_root[position] <= 0.0 or log_scale[placed] == -np.inf:  # nothing, or the rounding of nothing
            only_root[position] = -np.inf
            continue
        log_probability = np.log(only_root[position]) + log_scale[placed]
        only_root[position] = log_probability - log_sums[position]
        probability = np.exp(log_probability)
        for i in range(d):
            if i != j and not placed >> i & 1:
                paths[i] += probability


def _edges_to(j: int, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(i → j) for all i, [d], from the probabilities of the parent sets of j, [2^(d−1)]."""
    edges = []
    while len(probabilities) > 1:  # the upper half holds the sets with the last node; then sum it out
        without, with_last = np.split(probabilities, 2)
        edges.append(with_last.sum())
        probabilities = without + with_last
    return np.insert(edges[::-1], j, 0.0)
