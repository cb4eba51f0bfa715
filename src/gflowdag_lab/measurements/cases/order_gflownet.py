"""Order GFlowNet and order MCMC: fidelity to the exact posterior, speed, and how far they reach.

Errors come in two columns: raw policy samples, and importance-weighted. Options: `iterations=N` and
`budget=SECONDS` of training, `batch=N`, `width=N`; `variables=N` (beside Gadget).
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from gflowdag import metrics
from gflowdag.estimators import OrderGFlowNet, OrderMCMC, order_space
from gflowdag.exact import reference
from gflowdag.gflownet import Moment, OrderLearner, OrderSpace, sample, train
from gflowdag.orders import order_problem
from gflowdag.score import Score
from gflowdag_lab.measurements.harness import Options, Row, case, in_double_precision
from gflowdag_lab.measurements.order_rows import peak_memory, setting
from gflowdag_lab.model import PRIOR, paper_score
from gflowdag_lab.paper import problems


@case
def order_gflownet_small(options: Options) -> Iterator[Row]:
    """d = 5, 11, 12 with N = 100, raw and standardised."""
    for d in (5,) if options.quick else (5, 11, 12):
        for standardize in (False, True):
            problem = problems.linear_gaussian(d, 100, 0, standardize=standardize)
            yield _against_exact(problem, options, iterations=300 if d == 5 else 1000)


@case
def order_gflownet_sachs(options: Options) -> Iterator[Row]:
    """Sachs, continuous and interventional."""
    for problem in (problems.sachs_continuous(), problems.sachs_interventional(options.data)):
        yield _against_exact(problem, options, iterations=1000)


@case
def order_gflownet_twenty(options: Options) -> Iterator[Row]:
    """d = 20, N = 100, raw and standardised, two seeds."""
    for seed in (0, 1):
        for standardize in (True, False):
            problem = problems.linear_gaussian(8 if options.quick else 20, 100, seed, standardize=standardize)
            yield _against_exact(problem, options, iterations=1000)


@case
def order_gflownet_rows(options: Options) -> Iterator[Row]:
    """N = 10² … 10⁵ at d = 12 and 20, standardised."""
    for d in (6,) if options.quick else (12, 20):
        for rows in (100, 1000, 10_000, 100_000):
            problem = problems.linear_gaussian(d, rows, 0, standardize=True)
            yield _against_exact(problem, options, iterations=1000)


@case
def order_gflownet_untrained(options: Options) -> Iterator[Row]:
    """What the potential does alone and what training adds: one iteration against many."""
    for d in (6,) if options.quick else (11, 20):
        problem = problems.linear_gaussian(d, 100, 0, standardize=True)
        for iterations in (1, 300, 1000):
            yield _against_exact(problem, options, iterations=iterations)


@case
def order_mcmc_exact(options: Options) -> Iterator[Row]:
    """Order MCMC against the exact posterior: Sachs and d = 20."""
    cases = [problems.sachs_continuous()]
    if not options.quick:
        cases += [problems.linear_gaussian(20, 100, 0, standardize=s) for s in (True, False)]
    for problem in cases:
        exact = _exact(paper_score(problem.data), options)
        estimator = OrderMCMC(
            prior=PRIOR, iterations=60 if options.quick else 1000, random_state=options.seed
        )
        started = time.perf_counter()
        posterior = estimator.fit(problem.data).posterior_
        measures = posterior.diagnostics()
        yield {
            "problem": problem.name,
            "seconds": time.perf_counter() - started,
            "error": _error(posterior.edge_probabilities().to_numpy(), exact),
            "r_hat": measures["r_hat"],
            "effective_samples": measures["effective_samples"],
        }


@case
def order_gflownet_rates(options: Options) -> Iterator[Row]:
    """Training and sampling rates against the batch size, and where an iteration spends its time."""
    yield from in_double_precision(_rates, options)


@case
def order_gflownet_gadget(options: Options) -> Iterator[Row]:
    """Error against wall-clock beside Gadget at d = 11 and 20; both sample under the same score and prior."""
    from gflowdag.estimators import Gadget

    sizes = (6,) if options.quick else (11, 20)
    for d in [int(options.extra["variables"])] if "variables" in options.extra else sizes:
        problem = problems.linear_gaussian(d, 100, 0, standardize=True)
        exact = _exact(paper_score(problem.data), options)
        for iterations in (10,) if options.quick else (10, 100, 1000):
            estimator = OrderGFlowNet(prior=PRIOR, iterations=iterations, random_state=options.seed)
            yield {"iterations": iterations, **_timed(estimator, problem, exact)}
        steps_and_candidates = [(100, 5)] if options.quick else [(1000, 10), (4000, 10), (16_000, 10)]
        if d > 11:
            steps_and_candidates += [(4000, 14), (16_000, 14)]
        for steps, candidates in steps_and_candidates:
            estimator = Gadget(
                prior=PRIOR,
                num_steps=steps,
                burn_in=steps // 2,
                num_candidates=candidates,
                random_state=options.seed,
            )
            yield {"iterations": steps, "candidates": candidates, **_timed(estimator, problem, exact)}


def _timed(estimator: Any, problem: problems.Problem, exact: Any) -> Row:
    started = time.perf_counter()
    posterior = estimator.fit(problem.data).posterior_
    return {
        "problem": problem.name,
        "method": posterior.method,
        "seconds": time.perf_counter() - started,
        "error": _error(posterior.edge_probabilities().to_numpy(), exact),
    }


def _exact(score: Score, options: Options) -> Any:
    return reference(score.dense_table(), options.references)


def _error(edge_probabilities: np.ndarray, exact: Any) -> float:
    return float(np.abs(edge_probabilities - exact.edge_probabilities).max())


def _against_exact(problem: problems.Problem, options: Options, *, iterations: int) -> Row:
    exact = _exact(paper_score(problem.data), options)
    budget = options.extra.get("budget")
    estimator = OrderGFlowNet(
        prior=PRIOR,
        iterations=None if budget else setting(options, "iterations", iterations, 30),
        budget=float(budget) if budget else None,
        batch_size=setting(options, "batch", 256, 64),
        width=setting(options, "width", 256, 32),
        random_state=options.seed,
    )
    posterior = estimator.fit(problem.data).posterior_
    measures = posterior.diagnostics()
    row: Row = {
        "problem": problem.name,
        "seconds": measures["seconds"],
        "iterations": measures["iterations"],
        "error_raw": _error(measures["raw_edge_probabilities"], exact),
        "error_weighted": _error(posterior.edge_probabilities().to_numpy(), exact),
        "evidence_error": posterior.log_evidence - exact.log_evidence,
        "evidence_standard_error": posterior.log_evidence_error,
        "ess": measures["ess"],
        "pareto_k": measures["pareto_k"],
        "phases": {name: round(seconds, 2) for name, seconds in measures["phases"].items()},
    }
    row["auroc"] = metrics.auroc(posterior, problem.truth)
    names = problem.data.names
    named = pd.DataFrame(exact.edge_probabilities, index=names, columns=names)
    row["auroc_exact"] = metrics.auroc(named, problem.truth)
    return row


def _rates(options: Options) -> Iterator[Row]:
    for d in (6,) if options.quick else (20,):
        score = paper_score(problems.linear_gaussian(d, 100, 0, standardize=True).data)
        space = order_space(score, order_problem(score, seed=0))
        on_cpu = jax.default_backend() == "cpu"
        for batch in (32,) if options.quick else (64, 256, 1024) if on_cpu else (256, 1024, 4096, 16384):
            yield _rate(space, batch, seconds=2.0 if options.quick else 6.0)


def _rate(space: OrderSpace, batch: int, seconds: float) -> Row:
    learner = OrderLearner(space, batch=batch)
    params, memory = learner.init(jax.random.key(0))
    moment = Moment(jnp.int32(0), jnp.int32(1))
    gradient = eqx.filter_value_and_grad(lambda p, learner, key: learner.loss(p, p, memory, key, moment)[0])

    walk = _seconds_per_call(lambda key: sample(space, params, key, batch, batch=batch).built)
    jitted = eqx.filter_jit(gradient)
    whole = _seconds_per_call(lambda key: jitted(params, learner, key))
    steady: list[tuple[int, float]] = []
    with _GPUBusy() as busy:
        train(
            learner,
            jax.random.key(0),
            iterations=max(40, int(seconds / whole)),
            callback=lambda step, _: steady.append((step, time.perf_counter())),
        )
    (first, begun), (last, ended) = steady[len(steady) // 2], steady[-1]
    rate = (last - first) / max(ended - begun, 1e-9)
    return {
        "d": space.num_variables,
        "batch": batch,
        "iterations_per_second": rate,
        "orders_trained_per_second": rate * batch,
        "orders_sampled_per_second": batch / walk,
        "ms_walk": 1e3 * walk,
        "ms_walk_and_gradient": 1e3 * whole,
        "ms_iteration": 1e3 / rate if rate else float("nan"),
        "gpu_busy_percent": busy.mean(),
        "memory_gib": peak_memory(),
    }


def _seconds_per_call(function: Any, calls: int = 5) -> float:
    jax.block_until_ready(function(jax.random.key(0)))
    started = time.perf_counter()
    for call in range(calls):
        out = function(jax.random.key(call))
    jax.block_until_ready(out)
    return (time.perf_counter() - started) / calls


class _GPUBusy:
    """Share of the time in which a kernel ran, as the driver counts it; NaN without a GPU."""

    def __enter__(self) -> _GPUBusy:
        self._percent: list[float] = []
        self._stop = threading.Event()
        if jax.default_backend() != "cpu":
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop.set()

    def _watch(self) -> None:
        command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        while not self._stop.wait(0.5):
            try:
                answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=5)
                self._percent.append(float(answer.stdout.split()[0]))
            except (OSError, subprocess.SubprocessError, ValueError, IndexError):
                return

    def mean(self) -> float:
        late = self._percent[len(self._percent) // 2 :]  # compilation is over
        return float(np.mean(late)) if late else float("nan")
