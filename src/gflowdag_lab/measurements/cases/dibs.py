"""DiBS on the paper's problems: ten data sets of twenty variables at once, and Sachs.

Options: `particles=N`, `steps=N`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import jax
import numpy as np

from gflowdag.baselines import dibs
from gflowdag.estimators import dibs_posterior, dibs_target
from gflowdag.runtime import double_precision
from gflowdag_lab.measurements.harness import Options, Row, case
from gflowdag_lab.measurements.recovery import medians, recovery_row
from gflowdag_lab.model import paper_score
from gflowdag_lab.paper import problems


@case
def dibs_twenty(options: Options) -> Iterator[Row]:
    """ER2, d = 20, N = 100, five networks, raw and standardised, in one batch."""
    d = 6 if options.quick else 20
    tables = [
        problems.linear_gaussian(d, 100, seed, standardize=standardize)
        for standardize in (False, True)
        for seed in range(5)
    ]
    rows = _fit(tables, options)
    yield from rows
    for weighting in ("equal", "score"):
        chosen = [row for row in rows if row["weighting"] == weighting]
        for scaling in ("raw", "standardised"):
            yield {"weighting": weighting, **medians(chosen, scaling)}


@case
def dibs_sachs(options: Options) -> Iterator[Row]:
    """Sachs: continuous with BGe, interventional with BDeu."""
    for problem in (problems.sachs_continuous(), problems.sachs_interventional(options.data)):
        yield from _fit([problem], options)


@double_precision
def _fit(tables: list[problems.Problem], options: Options) -> list[Row]:
    config = dibs.Config(
        num_particles=int(options.extra.get("particles", 4 if options.quick else 100)),
        num_steps=int(options.extra.get("steps", 20 if options.quick else 3000)),
    )
    scores = [paper_score(problem.data) for problem in tables]
    targets = jax.tree.map(lambda *leaves: np.stack(leaves), *[dibs_target(score) for score in scores])
    keys = jax.random.split(jax.random.key(options.seed), len(tables))
    started = time.perf_counter()
    latents, _ = dibs.run(keys, jax.device_put(targets), config)
    seconds = time.perf_counter() - started
    rows = []
    for problem, score, particles in zip(tables, scores, latents, strict=True):
        for weighting in ("equal", "score"):
            rng = np.random.default_rng(options.seed)
            posterior = dibs_posterior(score, particles, weighting, 1000, rng)
            rows.append(
                {
                    "weighting": weighting,
                    **recovery_row(problem, score, posterior),
                    "cyclic_fraction": posterior.diagnostics()["cyclic_fraction"],
                    "seconds_of_batch": seconds,
                    "batch": len(tables),
                }
            )
    return rows
