"""Points of the curves whose areas `metrics.auroc` and `metrics.auprc` are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gflowdag.posterior.metrics import labelled_edges
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.truth import Truth


def roc_points(posterior: Posterior, truth: Truth) -> NDArray[np.float64]:
    """False and true positive rate of "edge where probability ≥ t", from the strictest t on: [k, 2].

    There are none where the true graph has no edge.
    """
    probability, true = labelled_edges(posterior, truth)
    if not true.any():
        return np.empty((0, 2))
    from sklearn.metrics import roc_curve

    rates = roc_curve(true, probability, drop_intermediate=False)[:2]
    return np.column_stack(rates)


def precision_recall_points(posterior: Posterior, truth: Truth) -> NDArray[np.float64]:
    """Recall and precision of "edge where probability ≥ t", from the strictest t on: [k, 2].

    There are none where the true graph has no edge.
    """
    probability, true = labelled_edges(posterior, truth)
    if not true.any():
        return np.empty((0, 2))
    from sklearn.metrics import precision_recall_curve

    precision, recall, _ = precision_recall_curve(true, probability)
    return np.column_stack([recall, precision])[-2::-1]  # the last point is not a threshold's
