"""BCD Nets on the paper's problems: ten data sets of twenty variables at once, and Sachs.

Options: `bcd_steps=N`, `bcd_batch=N`, `noise=equal|unequal` (default: both).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from gflowdag.baselines import bcd_nets, max_assignment
from gflowdag.estimators import bcd_posterior
from gflowdag.runtime import double_precision
from gflowdag_lab.measurements.harness import Options, Row, case
from gflowdag_lab.measurements.recovery import medians, recovery_row
from gflowdag_lab.model import paper_score
from gflowdag_lab.paper import problems


@case
def bcd_nets_twenty(options: Options) -> Iterator[Row]:
    """ER2, d = 20, N = 100, five networks, raw and standardised, in one batch, for both noise models."""
    d = 6 if options.quick else 20
    tables = [
        problems.linear_gaussian(d, 100, seed, standardize=standardize)
        for standardize in (False, True)
        for seed in range(5)
    ]
    for equal_variances in _noise_models(options):
        rows = _fit(tables, equal_variances, options)
        yield from rows
        for scaling in ("raw", "standardised"):
            yield {"noise": rows[0]["noise"], **medians(rows, scaling)}


@case
def bcd_nets_sachs(options: Options) -> Iterator[Row]:
    """Sachs continuous, for both noise models."""
    for equal_variances in _noise_models(options):
        yield from _fit([problems.sachs_continuous()], equal_variances, options)


@case
def assignment(options: Options) -> Iterator[Row]:
    """CPU milliseconds of 64 assignment problems inside `jit`: SciPy's on the host, and optax's, compiled."""
    for d in (5,) if options.quick else (5, 20, 50):
        yield _assignments(d, options.seed)


@double_precision
def _assignments(d: int, seed: int) -> Row:
    """The least of twenty calls of each; `difference` is that of the largest totals that the two find."""
    weights = 3 * jax.random.normal(jax.random.key(seed), (64, d, d), jnp.float64)

    def milliseconds(solve: Callable[[Any], Any]) -> float:
        jax.block_until_ready(solve(weights))  # compiles
        times = []
        for _ in range(20):
            started = time.process_time()
            jax.block_until_ready(solve(weights))
            times.append(time.process_time() - started)
        return 1000 * min(times)

    def totals(rows: Any, columns: Any) -> np.ndarray:
        return np.asarray(weights)[np.arange(64)[:, None], rows, columns].sum(axis=1)

    ours = jax.jit(jax.vmap(max_assignment))
    theirs = jax.jit(jax.vmap(lambda matrix: optax.assignment.hungarian_algorithm(-matrix)))
    difference = totals(np.arange(d)[None], ours(weights)) - totals(*theirs(weights))
    return {
        "d": d,
        "scipy": milliseconds(ours),
        "optax": milliseconds(theirs),
        "difference": float(np.abs(difference).max()),
    }


def _noise_models(options: Options) -> list[bool]:
    return [model == "equal" for model in options.extra.get("noise", "equal,unequal").split(",")]


@double_precision
def _fit(tables: list[problems.Problem], equal_variances: bool, options: Options) -> list[Row]:
    config = bcd_nets.Config(
        equal_variances=equal_variances,
        num_steps=int(options.extra.get("bcd_steps", 20 if options.quick else 20_000)),
        batch_size=int(options.extra.get("bcd_batch", 4 if options.quick else 16)),
    )
    scores = [paper_score(problem.data) for problem in tables]
    d = scores[0].num_variables
    data = [bcd_nets.moments(problem.data.values) for problem in tables]
    batch = jax.device_put(jax.tree.map(lambda *leaves: np.stack(leaves), *data))
    fit_key, sample_key = jax.random.split(jax.random.key(options.seed))
    started = time.perf_counter()
    params, bounds = bcd_nets.run(jax.random.split(fit_key, len(tables)), batch, config, chunk=1000)
    seconds = time.perf_counter() - started
    weights = bcd_nets.sample_weights(jax.random.split(sample_key, len(tables)), params, config, d, 1000)
    rows = []
    for problem, score, of_problem, curve in zip(tables, scores, np.asarray(weights), bounds.T, strict=True):
        posterior = bcd_posterior(score, of_problem, curve, threshold=0.3)
        rows.append(
            {
                "noise": "equal" if equal_variances else "unequal",
                **recovery_row(problem, score, posterior),
                "elbo": curve.round(2).tolist(),
                "seconds_of_batch": seconds,
                "batch": len(tables),
            }
        )
    return rows
