"""Recovery of whole networks of 8 to 37 variables: the default of discrete tables against that of 0.2.

The bar, from before anything was measured: over ten samples or more of one network, paired, the log loss of
the default is no worse than that of version 0.2 (prior `uniform`, BDeu of equivalent sample size 1 without a
limit)
by more than two standard errors. Both by parent-set MCMC of equally many sweeps, or both exact where the
network has at most 11 variables. Log loss as in
`cases.discrete_noise`: the sum over ordered pairs, probabilities kept 1e-6 away from 0 and 1. A chain that
visits an edge never, or always, would pay 13.8 nats for being wrong there, so 1e-3 stands beside.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import gflowdag as gd
from gflowdag_lab.measurements.discrete_tables import sample
from gflowdag_lab.measurements.harness import Options, Row, case

EXACT = 11  # variables up to which posteriors are exact
MODELS = {"default": ("auto", "fair"), "version 0.2": ("bde", "uniform")}


@case
def whole_networks(options: Options) -> Iterator[Row]:
    """Log loss on samples of whole networks; `networks`, `rows`, `repeats`, `sweeps` choose."""
    networks = options.extra.get("networks", "asia,sachs,child,insurance,alarm").split(",")
    num_rows = int(options.extra.get("rows", 500))
    repeats = 1 if options.quick else int(options.extra.get("repeats", 10))
    sweeps = 64 if options.quick else int(options.extra.get("sweeps", 300))
    for network in networks:
        differences = []
        for repeat in range(repeats):
            rng = np.random.default_rng([options.seed, *network.encode(), num_rows, repeat])
            data, truth = sample(f"{network}-whole", num_rows, rng)
            losses = {}
            for model, (score, prior) in MODELS.items():
                started = time.process_time()
                chains: dict[str, Any] = {"method": "parent-set-mcmc", "iterations": sweeps}
                how: dict[str, Any] = {"method": "exact"} if len(truth) <= EXACT else chains
                posterior = gd.fit(data, score=score, prior=prior, random_state=repeat, **how)
                edges = posterior.edge_probabilities().to_numpy()
                losses[model] = np.array([_log_loss(edges, truth, least) for least in (1e-6, 1e-3)])
                yield {
                    "network": network,
                    "rows": num_rows,
                    "sample": repeat,
                    "model": model,
                    "log_loss": losses[model][0],
                    "log_loss_1e-3": losses[model][1],
                    "edges": float(edges.sum()),
                    "true": int(truth.sum()),
                    "verdict": posterior.diagnosis.verdict,
                    "r_hat": posterior.diagnosis.r_hat,
                    "cpu_seconds": round(time.process_time() - started, 1),
                }
            differences.append(losses["default"] - losses["version 0.2"])
        mean = np.mean(differences, axis=0)
        error = np.std(differences, axis=0, ddof=1) / np.sqrt(repeats) if repeats > 1 else mean * np.nan
        yield {
            "network": network,
            "rows": num_rows,
            "model": "difference",
            "samples": repeats,
            "log_loss": mean[0],
            "log_loss_error": error[0],
            "log_loss_1e-3": mean[1],
            "log_loss_1e-3_error": error[1],
        }


def _log_loss(edges: np.ndarray, truth: np.ndarray, least: float) -> float:
    p = np.clip(edges, least, 1 - least)[~np.eye(len(truth), dtype=bool)]
    there = truth[~np.eye(len(truth), dtype=bool)]
    return float(-np.where(there, np.log(p), np.log1p(-p)).sum())
