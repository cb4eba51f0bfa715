"""Exact posteriors against the sum over every DAG."""

from __future__ import annotations

import csv
from collections.abc import Iterator

import numpy as np
from scipy.special import logsumexp

import gflowdag as gd
from gflowdag.graph import all_dags
from gflowdag.runtime import atomic_write
from gflowdag_lab.measurements.cases.false_trust import FOLDER
from gflowdag_lab.measurements.hard_posteriors import ENUMERATED, hard_posterior
from gflowdag_lab.measurements.harness import Options, Row, case
from gflowdag_lab.paper.fits import commit

FILE = FOLDER / "enumerated.csv"


@case
def by_enumeration(options: Options) -> Iterator[Row]:
    """Exact posteriors of small hard problems, `problems` of each family, against the sum over every DAG."""
    problems = 2 if options.quick else int(options.extra.get("problems", 20))
    rows: list[Row] = []
    for family in ENUMERATED:
        for d in (3, 4):
            differences = np.array([_differences(family, seed, d) for seed in range(problems)])
            edges, evidence = differences.max(axis=0)
            rows.append(
                {
                    "family": family,
                    "variables": d,
                    "posteriors": problems,
                    "edges": f"{edges:.1g}",
                    "log_evidence": f"{evidence:.1g}",
                    "commit": commit(),
                }
            )
            yield rows[-1]
    if not options.quick:
        with atomic_write(FILE) as stream:
            writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def _differences(family: str, seed: int, d: int) -> tuple[float, float]:
    """The largest of an edge probability, and that of the log evidence in units of its size."""
    problem, graphs = hard_posterior(family, seed, d), all_dags(d)
    exact = gd.ExactPosterior(score=problem.score, num_samples=1, random_state=0).fit(problem.data)
    log_scores = exact.score_.log_score(graphs)
    log_evidence = logsumexp(log_scores)
    edges = np.tensordot(np.exp(log_scores - log_evidence), graphs, axes=1)
    found = exact.posterior_
    difference = np.abs(found.edge_probabilities().to_numpy() - edges).max()
    return float(difference), abs(float(found.log_evidence or 0.0) / float(log_evidence) - 1)
