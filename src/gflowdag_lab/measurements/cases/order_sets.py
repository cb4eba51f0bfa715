"""Order GFlowNet beyond dense tables: over all parent sets up to a limit; the length of certified lists."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

import gflowdag as gd
from gflowdag.orders import parent_lists
from gflowdag.score import make_score
from gflowdag_lab.measurements.harness import Options, Row, case


@case
def order_lists(options: Options) -> Iterator[Row]:
    """Lengths of lists of parent sets whose loss is bounded, on sparse tables: `sizes`, `exponents`."""
    for d in _numbers(options, "sizes", "12" if options.quick else "30,50"):
        data = gd.Dataset.as_dataset(_sparse(d, 0), standardize=True)
        score = make_score(data, score="bge", prior="fair")
        for exponent in _numbers(options, "exponents", "10" if options.quick else "15,10,7"):
            cpu = time.process_time()
            lists = parent_lists(score, epsilon=2.0**-exponent)
            yield {
                "d": d,
                "parents": lists.max_parents,
                "epsilon": f"2^-{exponent}",
                "scored sets of a node": lists.num_scored // d,
                "median kept": float(np.median(lists.lengths)),
                "largest kept": int(lists.lengths.max()),
                "bound": lists.total_variation,
                "CPU seconds": time.process_time() - cpu,
            }


@case
def order_all_sets(options: Options) -> Iterator[Row]:
    """The order GFlowNet on sparse tables beside parent-set MCMC: `sizes`, `budget`, `seeds`, `table`."""
    budget = float(options.extra.get("budget", 20 if options.quick else 240))
    for d in _numbers(options, "sizes", "22" if options.quick else "30,50"):
        frame = _sparse(d, int(options.extra.get("table", 0)))
        for seed in _numbers(options, "seeds", "0"):
            chains = gd.ParentSetMCMC(random_state=seed, budget=120).fit(frame).posterior_
            cpu, wall = time.process_time(), time.perf_counter()
            fit = gd.OrderGFlowNet(random_state=seed, budget=budget).fit(frame).posterior_
            seconds = {"CPU seconds": time.process_time() - cpu, "seconds": time.perf_counter() - wall}
            found = fit.edge_probabilities().to_numpy(), chains.edge_probabilities().to_numpy()
            errors = chains.diagnosis.edge_errors
            yield {
                "d": d,
                "seed": seed,
                "verdict": fit.diagnosis.verdict,
                "iterations": fit.diagnosis.iterations,
                "ESS": fit.diagnosis.ess,
                "k": fit.diagnosis.pareto_k,
                "log evidence": fit.log_evidence,
                "error": fit.log_evidence_error,
                "unseen": fit.diagnosis.unseen_share,
                "from chains": float(np.abs(found[0] - found[1]).max()),
                "chains": chains.diagnosis.verdict,
                "their error": None if errors is None else float(errors.max()),
                **seconds,
            }


def _sparse(d: int, table: int):
    return gd.simulate.linear_gaussian(d, 300, edges_per_node=1.5, random_state=table).frame


def _numbers(options: Options, name: str, default: str) -> list[int]:
    return [int(number) for number in options.extra.get(name, default).split(",")]
