"""Greedy equivalence search (Chickering 2002), by causal-learn."""

from __future__ import annotations

import numpy as np

from gflowdag.baseline.causal_learn import edge_matrix, import_causal_learn


def search(values: np.ndarray, *, discrete: bool, max_parents: int | None, penalty: float) -> np.ndarray:
    """The CPDAG that GES finds.

    Args:
        values: observations, float64 [n, d]; codes 0 … r−1 where discrete.
        discrete: BDeu instead of the Gaussian BIC.
        max_parents: limit on the parents during the search.
        penalty: weight of the BIC's penalty, 1 for the usual ½ log n for each parameter.

    Returns:
        bool [d, d], both entries set for an undirected edge.
    """
    ges = import_causal_learn("search.ScoreBased.GES").ges
    limit = values.shape[1] if max_parents is None else max_parents
    if discrete:
        return edge_matrix(ges(values.astype(int), score_func="local_score_BDeu", maxP=limit)["G"].graph)
    result = ges(values, score_func="local_score_BIC", maxP=limit, lambda_value=0.5 * penalty)
    return edge_matrix(result["G"].graph)
