"""21 to 500 variables: chains over all DAGs by default, against exact answers, peers and themselves."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gflowdag as gd
from gflowdag_lab.measurements.harness import Options, Row, case

PLAIN = gd.BDeu(ess=1, cells_per_row=None, edge_factor=1)  # the model of the published edge probabilities
MOST_PARENTS = 5  # of them too


@case
def beyond_sparse(options: Options) -> Iterator[Row]:
    """Sparse linear-Gaussian tables: `sizes`, `rows`, `tables`, `seeds`, `prior`, `budget` seconds a fit."""
    budget = float(options.extra.get("budget", 5 if options.quick else 900))
    prior = options.extra.get("prior", "fair")
    for d in _numbers(options, "sizes", "22" if options.quick else "30,50"):
        for num_rows in _numbers(options, "rows", "300"):
            for table in _numbers(options, "tables", "0"):
                frame = _sparse(d, num_rows, table)
                what: Row = {"d": d, "N": num_rows, "table": table, "prior": prior}
                yield from _seeds(options, what, frame, budget=budget, prior=prior)


@case
def beyond_exact(options: Options) -> Iterator[Row]:
    """Chains against the exact posterior at `sizes`, `tables`; it takes minutes from 22 variables on."""
    for d in _numbers(options, "sizes", "8" if options.quick else "22"):
        for table in _numbers(options, "tables", "0"):
            frame = _sparse(d, 300, table)
            cpu, wall = time.process_time(), time.perf_counter()
            exact = gd.ExactPosterior(random_state=0).fit(frame).posterior_
            seconds = {"seconds": time.perf_counter() - wall, "CPU seconds": time.process_time() - cpu}
            what: Row = {"d": d, "table": table}
            yield {**what, "method": "exact", **seconds, "GiB": _peak()}
            truth = _edges(exact)
            for row, fit in _fits(options, frame, budget=900.0, prior="fair"):
                found = {
                    "from exact": _apart(_edges(fit), truth),
                    "in stated errors": _in_errors(_edges(fit) - truth, _errors(fit)),
                }
                yield {**what, "method": "parent-set-mcmc", **row, **found}


@case
def beyond_alarm(options: Options) -> Iterator[Row]:
    """Alarm with the model of Gibby, against its edge probabilities; needs --data."""
    frame = pd.read_csv(_large(options) / "alarm_1000.csv.gz", dtype=str)
    published = pd.read_csv(_large(options) / "alarm_gibby_edges.csv", index_col=0)
    truth = published.loc[list(frame.columns), list(frame.columns)].to_numpy()
    knowledge = gd.Knowledge(max_parents=MOST_PARENTS)
    budget = 5.0 if options.quick else 900.0
    for row, fit in _fits(options, frame, budget=budget, prior="fair", score=PLAIN, knowledge=knowledge):
        yield {**row, "from Gibby": _apart(_edges(fit), truth)}


@case
def beyond_networks(options: Options) -> Iterator[Row]:
    """`names` of ecoli70, andes, cancer, discrete441 (or another number); `budget`; mostly needs --data."""
    budget = float(options.extra.get("budget", 5 if options.quick else 600))
    for name in options.extra.get("names", "cancer,ecoli70,andes").split(","):
        frame, truth = _named(name, options)
        losses = {} if truth is None else {"truth": truth}
        yield from _seeds(
            options, {"table": name, "N": len(frame)}, frame, **losses, budget=budget, prior="fair"
        )


@case
def beyond_resources(options: Options) -> Iterator[Row]:
    """Memory and seconds of the starts and 64 sweeps, at ascending `sizes` and `rows`, of a `kind`."""
    kind = options.extra.get("kind", "continuous")
    for d in _numbers(options, "sizes", "20" if options.quick else "20,50,100"):
        for num_rows in _numbers(options, "rows", "300"):
            frame = _discrete(d, num_rows, 0) if kind == "discrete" else _sparse(d, num_rows, 0)
            for row, _ in _fits(options, frame, iterations=64, prior="fair"):
                yield {"kind": kind, "d": d, "N": num_rows, **row}


def _seeds(options: Options, what: Row, frame: pd.DataFrame, **settings: Any) -> Iterator[Row]:
    """A row for each seed, the later ones with their distance from the first."""
    first = None
    for row, fit in _fits(options, frame, **settings):
        yield {**what, **row, **({} if first is None else _between(fit, first))}
        first = fit if first is None else first


def _between(one: gd.Posterior, other: gd.Posterior) -> Row:
    """How far two fits are apart in any edge, and in units of the stated error of their difference."""
    difference = np.abs(_edges(one) - _edges(other))
    in_errors = _in_errors(difference, np.hypot(_errors(one), _errors(other)))
    return {"from first seed": float(difference.max()), "in stated errors": in_errors}


def _in_errors(difference: np.ndarray, errors: np.ndarray) -> float:
    """The largest difference of an edge in units of its error; errors below 0.001 count as much."""
    return float((np.abs(difference) / np.maximum(errors, 1e-3)).max())


def _edges(posterior: gd.Posterior) -> np.ndarray:
    return posterior.edge_probabilities().to_numpy()


def _errors(posterior: gd.Posterior) -> np.ndarray:
    """Stated Monte-Carlo errors of the edges."""
    assert posterior.diagnosis.edge_errors is not None
    return posterior.diagnosis.edge_errors


def _fits(
    options: Options, frame: pd.DataFrame, truth: np.ndarray | None = None, **settings: Any
) -> Iterator[tuple[Row, gd.Posterior]]:
    """Fits of `seeds` with default options of the sampler, and what they found."""
    for seed in _numbers(options, "seeds", "0,1"):
        cpu, wall = time.process_time(), time.perf_counter()
        posterior = gd.ParentSetMCMC(random_state=seed, **settings).fit(frame).posterior_
        row: Row = {
            "seed": seed,
            "verdict": posterior.diagnosis.verdict,
            "R-hat": posterior.diagnosis.r_hat,
            "effective samples": posterior.diagnosis.effective_samples,
            "stated error": float(_errors(posterior).max()),
            "sweeps": posterior.diagnosis.iterations,
            "expected edges": float(_edges(posterior).sum()),
            "CPU seconds": time.process_time() - cpu,
            "seconds": time.perf_counter() - wall,
            "GiB": _peak(),
        }
        yield row | ({} if truth is None else _losses(_edges(posterior), truth)), posterior


def _numbers(options: Options, name: str, default: str) -> list[int]:
    return [int(number) for number in options.extra.get(name, default).split(",")]


def _sparse(d: int, num_rows: int, table: int) -> pd.DataFrame:
    made = gd.simulate.linear_gaussian(d, num_rows, edges_per_node=1.5, random_state=table)
    return made.frame


def _discrete(d: int, num_rows: int, table: int) -> pd.DataFrame:
    """Columns of three levels: a sparse linear-Gaussian table, cut at the thirds of each column."""
    cut: Any = _sparse(d, num_rows, table).apply(lambda column: pd.qcut(column, 3, labels=list("abc")))
    return cut.astype(str)


def _named(name: str, options: Options) -> tuple[pd.DataFrame, np.ndarray | None]:
    if name == "cancer":
        from sklearn.datasets import load_breast_cancer

        loaded: Any = load_breast_cancer(as_frame=True)
        return loaded.data, None
    if name.startswith("discrete"):
        return _discrete(int(name.removeprefix("discrete")), 1000, 0), None
    if name == "ecoli70":
        frame = pd.read_csv(_large(options) / "ecoli70_300.csv")
        truth = pd.DataFrame(False, index=frame.columns, columns=frame.columns)
        edges = pd.read_csv(_large(options) / "ecoli70_graph.csv")
        for source, target in zip(edges["source"], edges["target"], strict=True):
            truth.loc[source, target] = True
        return frame, truth.to_numpy()
    return pd.read_csv(_large(options) / f"{name}_1000.csv.gz", dtype=str), None


def _losses(found: np.ndarray, truth: np.ndarray) -> Row:
    """Log loss over ordered pairs, in nats, of arrows and of adjacencies, and the number of true edges."""
    arrows = _log_loss(found, truth)
    upper = np.triu_indices(len(truth), 1)
    adjacencies = _log_loss((found + found.T)[upper], (truth | truth.T)[upper])
    return {"true edges": int(truth.sum()), "log loss": arrows, "log loss of adjacencies": adjacencies}


def _log_loss(probabilities: np.ndarray, truth: np.ndarray) -> float:
    bounded = np.clip(probabilities, 1e-4, 1 - 1e-4)
    return float(-np.where(truth, np.log(bounded), np.log1p(-bounded)).sum())


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max())


def _peak() -> float:
    """Largest memory of this process so far, GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _large(options: Options) -> Path:
    if options.data is None:
        raise SystemExit("the real tables are needed: --data FOLDER, with `large/` in it")
    return options.data / "large"
