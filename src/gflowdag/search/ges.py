"""Greedy equivalence search on a table: by the Gaussian BIC, by BDeu, or by a score object."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gflowdag.data import Dataset
from gflowdag.data.columns import Column
from gflowdag.score import LocalScore, UnboundScore
from gflowdag.score.bge import log_minors
from gflowdag.score.known_values import KnownValues
from gflowdag.score.local_score import local_values
from gflowdag.score.set_function import SetFunctionScore
from gflowdag.score.structure_prior import StructurePrior
from gflowdag.search.greedy_equivalence import (
    EdgeGains,
    SetFunction,
    greedy_equivalence_search,
    second_differences,
)

_LEAST_VARIANCE = np.finfo(np.float64).eps  # left of a standardised column by those that determine it


def search(
    values: np.ndarray, *, discrete: UnboundScore | None, max_parents: int | None, penalty: float
) -> np.ndarray:
    """The CPDAG that GES finds with the usual scores.

    Args:
        values: observations, float64 [n, d]; codes 0 … r−1 where discrete.
        discrete: this score, BDeu for example, of the levels that occur, instead of the Gaussian BIC; it has
            to be a difference of one set function.
        max_parents: limit on the parents during the search.
        penalty: weight of the BIC's penalty, 1 for the usual ½ log n for each parameter.

    Returns:
        bool [d, d], both entries set for an undirected edge.
    """
    n, d = values.shape
    if discrete is not None:
        likelihood = of_levels(values, discrete)
        assert isinstance(likelihood, SetFunctionScore)
        function = _each_once(d, lambda sets: likelihood.log_marginals(0, sets))
        gains = _within(likelihood, second_differences(function, _sparse_edge_weight(d)))
    else:
        gains = second_differences(gaussian_log_likelihood(values), -0.5 * penalty * np.log(n))
    return greedy_equivalence_search(gains, d, max_parents=max_parents)


def search_by(
    values: np.ndarray,
    *,
    data: Dataset,
    score: UnboundScore,
    prior: StructurePrior,
    max_parents: int | None,
) -> np.ndarray:
    """The CPDAG that GES finds with a score of one's own choice, structure prior included.

    Args:
        values: observations, float64 [n, d].
        data: what the columns are; its own rows do not count.
        score: any score.
        prior: of the structure.
        max_parents: limit on the parents during the search.

    Returns:
        bool [d, d], both entries set for an undirected edge.
    """
    d = values.shape[1]
    local = score.bind(replace(data, values=np.ascontiguousarray(values)))

    def compute(node: int, parents: NDArray[np.bool_]) -> NDArray[np.float64]:
        return (local_values(local, node, parents) + prior.of_sets(node, parents))[:, None]

    gains = _within(local, _local_gains(KnownValues(d, 1, compute)))
    return greedy_equivalence_search(gains, d, max_parents=max_parents)


def _within(score: LocalScore, gains: EdgeGains) -> EdgeGains:
    """Gains of −∞ where the limit of a score on the cells of a family does not allow the edge."""
    limit = score.cell_limit(np.zeros((score.num_variables, score.num_variables), bool))
    if limit is None:
        return gains

    def limited(
        sources: NDArray[np.int64], targets: NDArray[np.int64], given: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        larger = given.copy()
        larger[np.arange(len(given)), sources] = True
        return np.where(limit.allows(targets, larger), gains(sources, targets, given), -np.inf)

    return limited


def _local_gains(local: KnownValues) -> EdgeGains:
    def gains(
        sources: NDArray[np.int64], targets: NDArray[np.int64], given: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        larger = given.copy()
        larger[np.arange(len(given)), sources] = True
        return (local(targets, larger) - local(targets, given))[:, 0]

    return gains


def gaussian_log_likelihood(values: np.ndarray) -> SetFunction:
    """`M(S) = −½ n log |R_SS|` of the correlations `R`: the greatest log likelihood, up to a sum over nodes.

    Args:
        values: observations, float64 [n, d].
    """
    n, d = values.shape
    centred = values - values.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    scaled = centred / np.where(norms > 0, norms, 1.0)
    correlations = scaled.T @ scaled
    np.fill_diagonal(correlations, 1.0)  # a constant column is independent of all others
    return _each_once(d, lambda sets: -0.5 * n * log_minors(correlations, sets, _LEAST_VARIANCE))


def of_levels(values: np.ndarray, score: UnboundScore) -> LocalScore:
    """A score of the levels that occur in a table of codes, float64 [n, d]."""
    columns, codes = [], np.empty_like(values, order="C")
    for j in range(values.shape[1]):
        levels, codes[:, j] = np.unique(values[:, j], return_inverse=True)
        columns.append(Column(str(j), "discrete", levels=tuple(levels.tolist())))
    return score.bind(Dataset(tuple(columns), codes))


def _each_once(d: int, function: SetFunction) -> SetFunction:
    """The same function, which remembers what it was asked."""
    known = KnownValues(d, 1, lambda _, sets: function(sets)[:, None])
    return lambda sets: known(np.zeros(len(sets), np.int64), sets)[:, 0]


def _sparse_edge_weight(d: int) -> float:
    """Log odds of an edge where one parent is expected: p = 1 / (d − 1), at most a half."""
    p = min(0.5, 1 / max(d - 1, 1))
    return float(np.log(p / (1 - p)))
