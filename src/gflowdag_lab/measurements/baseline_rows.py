"""The bars that the baselines share: the paper's twenty-variable problems and continuous Sachs.

Options: `exact=yes` measures the error to the exact posterior at d = 20 too (half a minute for each new
table, kept in the folder of references); `seeds=3,4` and `scaling=raw` choose among the problems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from gflowdag import metrics
from gflowdag.estimators import StructureLearner
from gflowdag.exact import reference
from gflowdag_lab.measurements.harness import Options, Row
from gflowdag_lab.model import paper_score
from gflowdag_lab.paper import problems
from gflowdag_lab.paper.judge import misaligned

QUICK_EXACT = 12  # variables up to which the exact posterior takes a second
Learner = Callable[[int], StructureLearner]  # from the seed to an estimator
MEASURES = ("edges", "expected_shd", "auroc", "max_error", "mean_error", "seconds")


def twenty(learner: Learner, options: Options) -> Iterator[Row]:
    """ER2, d = 20, N = 100, five networks, raw and standardised, then the medians."""
    d = 6 if options.quick else 20
    seeds = [
        int(seed) for seed in options.extra.get("seeds", "0,1" if options.quick else "0,1,2,3,4").split(",")
    ]
    for scaling in options.extra.get("scaling", "raw,standardised").split(","):
        standardize = scaling == "standardised"
        rows = []
        for seed in seeds:
            problem = problems.linear_gaussian(d, 100, seed, standardize=standardize)
            rows.append(row(problem, problem.truth, learner(options.seed), options))
            yield rows[-1]
        medians = {key: float(np.median([r[key] for r in rows])) for key in MEASURES if key in rows[0]}
        yield {"problem": f"median {scaling}", **medians}


def sachs(learner: Learner, options: Options) -> Iterator[Row]:
    """Continuous Sachs, the graph matched by name and, as the published tables may have it, by position."""
    problem = problems.sachs_continuous()
    fitted = learner(options.seed).fit(problem.data)
    for alignment, truth in (("by name", problem.truth), ("by position", misaligned(problem.truth))):
        yield {"alignment": alignment, **row(problem, truth, fitted, options)}


def row(
    problem: problems.Problem, truth: pd.DataFrame | np.ndarray, learner: StructureLearner, options: Options
) -> Row:
    """Recovery, fidelity where the exact posterior is at hand, trust and seconds of one fit."""
    posterior = getattr(learner, "posterior_", None) or learner.fit(problem.data).posterior_
    measures = posterior.diagnostics()
    found: Row = {
        "problem": problem.name,
        "edges": metrics.expected_edges(posterior),
        "expected_shd": metrics.expected_shd(posterior, truth),
        "auroc": metrics.auroc(posterior, truth),
        "verdict": measures["verdict"],
        **{key: measures[key] for key in ("r_hat", "num_failures", "num_conflicts") if key in measures},
        "seconds": measures["seconds"],
    }
    if problem.data.num_variables <= QUICK_EXACT or options.extra.get("exact") == "yes":
        table = paper_score(problem.data, prior=learner.prior).dense_table()
        error = np.abs(
            reference(table, options.references).edge_probabilities
            - posterior.edge_probabilities().to_numpy()
        )
        d = len(error)
        found |= {"max_error": float(error.max()), "mean_error": float(error.sum() / (d * (d - 1)))}
    return found
