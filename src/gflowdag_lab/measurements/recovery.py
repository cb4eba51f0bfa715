"""One row about one posterior: recovery of the true graph, fidelity to the exact one where that is quick.

Small edge probabilities decide the AUROC, so all of them are kept unrounded.
"""

from __future__ import annotations

import numpy as np

from gflowdag import exact, metrics
from gflowdag.posterior import Posterior
from gflowdag.score import Score
from gflowdag_lab.measurements.harness import Row
from gflowdag_lab.paper import problems

QUICK_EXACT = 12  # variables up to which the exact posterior takes a second


def recovery_row(problem: problems.Problem, score: Score, posterior: Posterior) -> Row:
    """E-#edges, E-SHD, AUROC, all edge probabilities, and mean and largest error of those where d ≤ 12."""
    probabilities = posterior.edge_probabilities()
    row: Row = {
        "problem": problem.name,
        "edges": metrics.expected_edges(probabilities),
        "expected_shd": metrics.expected_shd(posterior, problem.truth),
        "auroc": metrics.auroc(probabilities, problem.truth),
        "distinct": posterior.diagnostics()["num_distinct"],
        "median_log_score": float(np.median(np.asarray(posterior.log_scores))),
        "edge_probabilities": probabilities.to_numpy().tolist(),
    }
    if score.num_variables <= QUICK_EXACT:
        difference = np.abs(
            exact.posterior(score.dense_table()).edge_probabilities - probabilities.to_numpy()
        )
        row |= {"mean_error": float(difference.mean()), "max_error": float(difference.max())}
    return row


def medians(rows: list[Row], scaling: str) -> Row:
    """Medians over the data sets of one scaling, `"raw"` or `"standardised"`."""
    chosen = [row for row in rows if row["problem"].endswith(scaling)]
    measures = ("edges", "expected_shd", "auroc")
    return {
        "problem": f"median {scaling}",
        **{key: float(np.median([r[key] for r in chosen])) for key in measures},
    }
