"""Greedy equivalence search on a table: the Gaussian BIC of continuous columns, BDeu of discrete ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gflowdag.data import Dataset
from gflowdag.data.columns import Column
from gflowdag.score.bdeu import BDeu
from gflowdag.score.bge import log_minors
from gflowdag.search.greedy_equivalence import SetFunction, greedy_equivalence_search

_LEAST_VARIANCE = np.finfo(np.float64).eps  # left of a standardised column by those that determine it


def search(values: np.ndarray, *, discrete: bool, max_parents: int | None, penalty: float) -> np.ndarray:
    """The CPDAG that GES finds.

    Args:
        values: observations, float64 [n, d] with d ≤ 62; codes 0 … r−1 where discrete.
        discrete: BDeu instead of the Gaussian BIC.
        max_parents: limit on the parents during the search.
        penalty: weight of the BIC's penalty, 1 for the usual ½ log n for each parameter.

    Returns:
        bool [d, d], both entries set for an undirected edge.
    """
    n, d = values.shape
    if discrete:
        function, edge_weight = bdeu(values), _sparse_edge_weight(d)
    else:
        function, edge_weight = gaussian_log_likelihood(values), -0.5 * penalty * np.log(n)
    return greedy_equivalence_search(function, d, edge_weight=edge_weight, max_parents=max_parents)


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

    def function(sets: NDArray[np.int64]) -> NDArray[np.float64]:
        return -0.5 * n * log_minors(correlations, _members(sets, d), _LEAST_VARIANCE)

    return function


def bdeu(values: np.ndarray) -> SetFunction:
    """BDeu with equivalent sample size 1 of the levels that occur, each set computed once.

    Args:
        values: codes, float64 [n, d].
    """
    d = values.shape[1]
    columns, codes = [], np.empty_like(values, order="C")
    for j in range(d):
        levels, codes[:, j] = np.unique(values[:, j], return_inverse=True)
        columns.append(Column(str(j), "discrete", levels=tuple(levels.tolist())))
    likelihood = BDeu().bind(Dataset(tuple(columns), codes))
    known: dict[int, float] = {}

    def function(sets: NDArray[np.int64]) -> NDArray[np.float64]:
        new = np.array([key for key in sets.tolist() if key not in known], np.int64)
        known.update(zip(new.tolist(), likelihood.log_marginals(0, _members(new, d)).tolist(), strict=True))
        return np.array([known[key] for key in sets.tolist()])

    return function


def _members(sets: NDArray[np.int64], d: int) -> NDArray[np.bool_]:
    """Bit masks [m] as bool [m, d]."""
    return (sets[:, None] >> np.arange(d) & 1).astype(bool)


def _sparse_edge_weight(d: int) -> float:
    """Log odds of an edge where one parent is expected: p = 1 / (d − 1), at most a half."""
    p = min(0.5, 1 / max(d - 1, 1))
    return float(np.log(p / (1 - p)))
