"""Bootstrap GES and PC on the paper's problems. Options: `bootstraps=N`, `exact=yes`."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from gflowdag.estimators import BootstrapGES, BootstrapPC
from gflowdag.search import ges
from gflowdag_lab.measurements import baseline_rows
from gflowdag_lab.measurements.harness import Options, Row, case
from gflowdag_lab.model import PRIOR
from gflowdag_lab.paper import problems


def _number(options: Options) -> int:
    return int(options.extra.get("bootstraps", 2 if options.quick else 100))


@case
def bootstrap_ges_twenty(options: Options) -> Iterator[Row]:
    """Bootstrap GES: ER2, d = 20, N = 100, five networks, raw and standardised."""
    number = _number(options)
    return baseline_rows.twenty(
        lambda seed: BootstrapGES(prior=PRIOR, num_bootstraps=number, random_state=seed), options
    )


@case
def bootstrap_ges_fifty(options: Options) -> Iterator[Row]:
    """Bootstrap GES: ER2, d = 50, N = 100, five networks; the BIC does not see the scale."""
    number = _number(options)
    rows = []
    for seed in range(2 if options.quick else 5):
        problem = problems.linear_gaussian(12 if options.quick else 50, 100, seed, standardize=True)
        learner = BootstrapGES(prior=PRIOR, num_bootstraps=number, random_state=options.seed)
        rows.append(baseline_rows.row(problem, problem.truth, learner, options))
        yield rows[-1]
    measures = ("edges", "expected_shd", "auroc", "seconds")
    yield {"problem": "median", **{key: float(np.median([r[key] for r in rows])) for key in measures}}


@case
def ges_speed(options: Options) -> Iterator[Row]:
    """Seconds of one search on a resampled table, ER2, N = 100: median and longest of ten, compiled."""
    for d in (5, 10) if options.quick else (20, 50):
        seconds, edges = [], []
        for seed in range(11):
            values = problems.linear_gaussian(d, 100, seed, standardize=True).data.values
            rows = np.random.default_rng(options.seed).integers(len(values), size=len(values))
            started = time.perf_counter()
            found = ges.search(values[rows], discrete=None, max_parents=None, penalty=1.0)
            seconds.append(time.perf_counter() - started)
            edges.append(int(np.triu(found | found.T).sum()))
        yield {
            "d": d,
            "edges": float(np.median(edges[1:])),
            "median_seconds": float(np.median(seconds[1:])),  # the first one compiles
            "longest_seconds": max(seconds[1:]),
        }


@case
def bootstrap_ges_sachs(options: Options) -> Iterator[Row]:
    """Bootstrap GES on continuous Sachs, in both alignments."""
    number = _number(options)
    return baseline_rows.sachs(
        lambda seed: BootstrapGES(prior=PRIOR, num_bootstraps=number, random_state=seed), options
    )


@case
def bootstrap_pc_twenty(options: Options) -> Iterator[Row]:
    """Bootstrap PC: ER2, d = 20, N = 100, five networks, raw and standardised."""
    number = _number(options)
    return baseline_rows.twenty(
        lambda seed: BootstrapPC(prior=PRIOR, num_bootstraps=number, random_state=seed), options
    )


@case
def bootstrap_pc_sachs(options: Options) -> Iterator[Row]:
    """Bootstrap PC on continuous Sachs, in both alignments."""
    number = _number(options)
    return baseline_rows.sachs(
        lambda seed: BootstrapPC(prior=PRIOR, num_bootstraps=number, random_state=seed), options
    )
