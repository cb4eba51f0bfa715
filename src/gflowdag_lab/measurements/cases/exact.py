"""The exact engine: time, memory and rounding."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from gflowdag import exact
from gflowdag.graph import popcount
from gflowdag.runtime import num_cores, silent
from gflowdag_lab.measurements.harness import Options, Row, case
from gflowdag_lab.model import paper_score
from gflowdag_lab.paper import problems

T = TypeVar("T")


@case
def exact_posterior(options: Options) -> Iterator[Row]:
    """CPU seconds from a score table to evidence, marginals, 1000 samples and the best graph."""
    _warm_up()
    for d in (8, 11) if options.quick else (11, 14, 16, 18, 20):
        for standardize in (True, False):
            problem = problems.linear_gaussian(d, 100, options.seed, standardize=standardize)
            table, table_seconds = _timed(paper_score(problem.data).dense_table)
            answer, posterior_seconds = _timed(exact.posterior, table)
            rng = np.random.default_rng(options.seed)
            _, sample_seconds = _timed(exact.sample, table, 1000, rng, exact=answer)
            _, best_seconds = _timed(exact.map_graph, table)
            yield {
                "problem": problem.name,
                "table_s": table_seconds,
                "posterior_s": posterior_seconds,
                "samples_s": sample_seconds,
                "best_s": best_seconds,
                "peak_gib": _peak_gib(),
                "edges": float(answer.edge_probabilities.sum()),
                "log_evidence": answer.log_evidence,
                **_rounding(answer),
            }


@case
def exact_stages(options: Options) -> Iterator[Row]:
    """Where the CPU seconds of the exact posterior go."""
    _warm_up()
    for d in (11,) if options.quick else (16, 20):
        table = paper_score(
            problems.linear_gaussian(d, 100, options.seed, standardize=True).data
        ).dense_table()
        for threads in sorted({1, num_cores()}):
            sums, sums_seconds = _timed(exact.subset_sums, table)
            potential, potential_seconds = _timed(exact.potentials, sums.log)
            _, forward_seconds = _timed(exact.weigh_dags, sums, potential, threads, silent)
            _, backward_seconds = _timed(exact.weigh_completions, sums, potential, threads, silent)
            _, total = _timed(exact.posterior, table, threads=threads)
            yield {
                "d": d,
                "threads": threads,
                "subset_sums_s": sums_seconds,
                "potentials_s": potential_seconds,
                "forward_s": forward_seconds,
                "backward_s": backward_seconds,
                "posterior_s": total,
                "ns_per_pair": (forward_seconds + backward_seconds) / 2 / 3**d * 1e9,
            }


@case
def exact_rounding(options: Options) -> Iterator[Row]:
    """Rounding where it is worst: every edge alike and improbable, so that the alternating sums cancel."""
    for d in (8, 11) if options.quick else (12, 16, 20):
        for log_edge_weight in (-1.0, -3.0, -8.0, -60.0):
            sizes = popcount(np.arange(1 << (d - 1)))
            answer = exact.posterior(np.tile(log_edge_weight * sizes, (d, 1)))
            edges = answer.edge_probabilities[~np.eye(d, dtype=bool)]
            yield {
                "d": d,
                "log_edge_weight": log_edge_weight,
                "edge_probability": float(edges.mean()),
                "edge_spread": float(np.ptp(edges) / edges.mean()),  # they are equal
                **_rounding(answer),
            }


def _rounding(answer: exact.Exact) -> Row:
    """How far two ways to the evidence differ, and how far parent-set probabilities from summing to 1."""
    totals = np.exp(answer.parent_set_log_probabilities).sum(axis=1)
    return {"evidence_gap": answer.discrepancy, "normalisation_gap": float(np.abs(totals - 1).max())}


def _warm_up() -> None:
    table = np.zeros((3, 4))
    exact.sample(table, 2, np.random.default_rng(0))
    exact.map_graph(table)


def _timed(function: Callable[..., T], *arguments: Any, **options: Any) -> tuple[T, float]:
    """The result, and the CPU seconds of all threads, which a busy machine hardly changes."""
    started = time.process_time()
    result = function(*arguments, **options)
    return result, time.process_time() - started


def _peak_gib() -> float:
    """Peak memory of the process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30
