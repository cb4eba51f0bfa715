"""Methods on orders at 30 and 50 variables, beside chains over all DAGs of the same table.

Options: `variables=N;N`, `methods=NAME;NAME`, `reference=SECONDS` of the chains and their `max_error=NUMBER`,
`keep=FILE`, where their edge probabilities are written or read (`{}` stands for the number of variables), and
`budget=SECONDS` and `iterations=N` of the methods (their defaults without).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gflowdag as gd
from gflowdag_lab.measurements.harness import Options, Row, case

_METHODS = "order-gflownet;order-mcmc"


@case
def order_large(options: Options) -> Iterator[Row]:
    """Sparse linear-Gaussian tables of 300 rows, 1.5 edges for each variable, BGe, default options."""
    extra = options.extra
    for d in map(int, extra.get("variables", "8" if options.quick else "30;50").split(";")):
        frame = gd.simulate.linear_gaussian(d, 300, edges_per_node=1.5, random_state=options.seed).frame
        reference, row = _reference(frame, options)
        yield {"problem": f"d={d} N=300", "method": "parent-set-mcmc", **row}
        for method in extra.get("methods", _METHODS).split(";"):
            settings: dict[str, Any] = {}
            if method == "order-gflownet" and (options.quick or "iterations" in extra):
                settings["iterations"] = int(extra.get("iterations", 10))
            if method == "order-mcmc" and options.quick:
                settings |= {"iterations": 40, "num_chains": 4, "num_records": 8}
            if "budget" in extra:
                settings["budget"] = float(extra["budget"])
            yield {"problem": f"d={d} N=300", "method": method, **_row(frame, method, settings, reference)}


def _reference(frame: Any, options: Options) -> tuple[np.ndarray, Row]:
    """Edge probabilities of long chains over all DAGs."""
    keep = Path(options.extra["keep"].format(frame.shape[1])) if "keep" in options.extra else None
    if keep is not None and keep.exists():
        with np.load(keep) as archive:
            return archive["edges"], {"largest_error": float(archive["errors"].max())}
    started = time.process_time()
    posterior = gd.fit(
        frame,
        method="parent-set-mcmc",
        score="bge",
        max_error=float(options.extra.get("max_error", "0.003")),
        budget=float(options.extra.get("reference", "5" if options.quick else "900")),
    )
    edges, diagnosis = posterior.edge_probabilities().to_numpy(), posterior.diagnosis
    errors = diagnosis.edge_errors
    if errors is None:
        raise ValueError("the chains are too short to have errors: give more time")
    if keep is not None:
        np.savez_compressed(keep, edges=edges, errors=errors)
    return edges, {
        "cpu_seconds": time.process_time() - started,
        "verdict": diagnosis.verdict,
        "r_hat": diagnosis.r_hat,
        "largest_error": float(errors.max()),
    }


def _row(frame: Any, method: str, settings: dict[str, Any], reference: np.ndarray) -> Row:
    started = time.process_time()
    posterior = gd.fit(frame, method=method, score="bge", random_state=0, **settings)
    seconds, diagnosis = time.process_time() - started, posterior.diagnosis

    def difference(edges: np.ndarray | None) -> float | None:
        return None if edges is None else float(np.abs(edges - reference).max())

    return {
        "cpu_seconds": seconds,
        "seconds": diagnosis.seconds,
        "verdict": diagnosis.verdict,
        "iterations": diagnosis.iterations,
        "raw": difference(diagnosis.raw_edge_probabilities),
        "weighted": difference(
            posterior.marginals
            if diagnosis.weighted_edge_probabilities is None
            else diagnosis.weighted_edge_probabilities
        ),
        "ess": diagnosis.get("ess_of_weights", diagnosis.ess),
        "pareto_k": diagnosis.pareto_k,
        "log_evidence": posterior.log_evidence,
        "log_evidence_error": posterior.log_evidence_error,
        "unseen_share": diagnosis.unseen_share,
        "share_outside": diagnosis.get("share_outside"),
        "weighted_orders": diagnosis.get("weighted_orders"),
        "phases": dict(diagnosis.phases or {}),
    }
