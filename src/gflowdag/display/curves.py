"""Points of the curves whose areas `metrics.auroc` and `metrics.auprc` are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.truth import Truth, align


def roc_points(posterior: Posterior, truth: Truth) -> NDArray[np.float64]:
    """False and true positive rate of "edge where probability ≥ t", from the strictest t on: [k, 2]."""
    hits, false_alarms, true = _cumulative(posterior, truth)
    rates = np.column_stack([false_alarms / max((~true).sum(), 1), hits / max(true.sum(), 1)])
    return np.concatenate([np.zeros((1, 2)), rates])


def precision_recall_points(posterior: Posterior, truth: Truth) -> NDArray[np.float64]:
    """Recall and precision of "edge where probability ≥ t", from the strictest t on: [k, 2]."""
    hits, false_alarms, true = _cumulative(posterior, truth)
    return np.column_stack([hits / max(true.sum(), 1), hits / (hits + false_alarms)])


def _cumulative(posterior: Posterior, truth: Truth) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
    """Hits and false alarms at each distinct probability, from the highest down, and all labels."""
    between = ~np.eye(posterior.num_variables, dtype=bool)
    true = align(truth, posterior.names)[between]
    p = np.round(posterior.edge_probabilities().to_numpy()[between], 10)  # rounding must not break ties
    _, level, count = np.unique(-p, return_inverse=True, return_counts=True)
    hits = np.cumsum(np.bincount(level, weights=true))
    return hits, np.cumsum(count) - hits, true
