"""The measurements: each takes a task and yields its row, more complete every time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gflowdag import exact, simulate
from gflowdag.data import Dataset
from gflowdag.estimators import estimator_class
from gflowdag.posterior import Posterior
from gflowdag.runtime import double_precision
from gflowdag.score import Score
from gflowdag_lab.bench.compilation import compilation_seconds
from gflowdag_lab.bench.ladders import GROWTH, method_of, rungs
from gflowdag_lab.bench.samplers import SAMPLERS
from gflowdag_lab.bench.stored_rows import Row
from gflowdag_lab.bench.tasks import Task
from gflowdag_lab.model import PRIOR, paper_score
from gflowdag_lab.paper.problems import linear_gaussian

GOALS = (0.05, 0.02)  # largest error of an edge probability
_NUM_SETS = 2000  # parent sets of each node that are scored
_LEAST_SECONDS = 0.5  # that a rate is measured over
T = TypeVar("T")


def time_to_quality(task: Task, references: Path) -> Iterator[Row]:
    """Seconds until the largest error of an edge probability is under each goal.

    Fits of growing effort, each from the table to the posterior; the first that is good enough counts. What
    they compile, which a process does once, is counted apart. Nothing is begun that would take more than
    `task.cap` seconds.
    """
    problem = linear_gaussian(task.num_variables, task.num_rows, task.seed, standardize=True)
    truth = exact.reference(paper_score(problem.data).dense_table(), references).edge_probabilities
    climbed: list[Row] = []
    for settings in rungs(task.subject):
        posterior, spent = _fit(task, problem.data, settings)
        error = float(np.abs(posterior.edge_probabilities().to_numpy() - truth).max())
        verdict = str(posterior.diagnostics()["verdict"])
        climbed.append({**settings, **spent._asdict(), "error": error, "verdict": verdict})
        yield {
            **_reached(climbed),
            "compilation_s": max(rung["compilation"] for rung in climbed),  # of the first one
            "best_error": min(rung["error"] for rung in climbed),
            "rungs": list(climbed),
        }
        if error < min(GOALS) or _next_work([rung["work"] for rung in climbed]) > task.cap:
            return


def growth(task: Task, references: Path) -> Iterator[Row]:
    """Seconds of a fit of the least effort, to see how they grow with the table."""
    problem = linear_gaussian(task.num_variables, task.num_rows, task.seed, standardize=True)
    _, spent = _fit(task, problem.data, next(rungs(task.subject)))
    yield {"first_s": spent.work + spent.compilation, "work_s": spent.work}


def sampling(task: Task, references: Path) -> Iterator[Row]:
    """DAGs drawn per second, by what the method has when it is set up."""
    yield {"dags_per_s": _dags_per_second(task)}


def exact_engine(task: Task, references: Path) -> Iterator[Row]:
    """Seconds from a score table to the exact posterior, and of the table."""
    problem = linear_gaussian(task.num_variables, task.num_rows, task.seed, standardize=True)
    small = paper_score(linear_gaussian(3, 10, 0, standardize=True).data).dense_table()  # compiles
    table, table_seconds = _timed(paper_score(problem.data).dense_table)
    if task.subject == "sumu":
        from sumu import aps  # pyright: ignore[reportMissingImports]

        yield {
            "posterior_s": _timed(lambda: aps(table, normalize=True))[1]
        }  # parent sets' probabilities only
        return
    exact.posterior(small)  # compiles
    yield {"table_s": table_seconds, "posterior_s": _timed(exact.posterior, table)[1]}
    exact.reference(table, references)


def scores_per_second(task: Task, references: Path) -> Iterator[Row]:
    """Local scores per second, of random parent sets and of all of them; `plain` is a textbook BGe."""
    score = _score(task)
    d = task.num_variables
    parents = np.random.default_rng(task.seed).random((_NUM_SETS, d)) < min(0.5, 3 / d)
    parents[:, 0] = False
    local = _plain_bge(d) if task.subject == "plain" else score.local
    local(0, parents[:10])  # compiles
    row = {"local_per_s": units_per_s(lambda: len(local(0, parents)))}
    yield row
    if task.subject != "plain":
        score.dense_table()
        yield {**row, "table_per_s": units_per_s(lambda: score.dense_table().size)}


Measurement = Callable[[Task, Path], Iterator[Row]]
MEASUREMENTS: dict[str, Measurement] = {
    "quality": time_to_quality,
    "sampling": sampling,
    "exact": exact_engine,
    "scores": scores_per_second,
    "variables": growth,
    "rows": growth,
}


class Spent(NamedTuple):
    """Seconds of a fit."""

    work: float
    compilation: float  # by JAX and numba; what an earlier fit of the process compiled is there


def _reached(climbed: list[Row]) -> Row:
    """For each goal the work of the first fit that met it; without an entry where none did."""
    met = {goal: [rung["work"] for rung in climbed if rung["error"] < goal] for goal in GOALS}
    return {f"to_{goal:g}_s": works[0] for goal, works in met.items() if works}


def _next_work(works: list[float]) -> float:
    """Seconds that the next fit will take: those that grew with the effort grow on, set-up stays."""
    grown = works[-1] - works[-2] if len(works) > 1 else works[-1] / GROWTH
    return works[-1] + GROWTH * max(grown, 0.0)


def _fit(task: Task, data: Any, settings: dict[str, Any]) -> tuple[Posterior, Spent]:
    estimator = estimator_class(method_of(task.subject))(prior=PRIOR, random_state=task.seed, **settings)
    before = compilation_seconds()
    fitted, seconds = _timed(estimator.fit, data)
    compilation = compilation_seconds() - before
    return fitted.posterior_, Spent(max(seconds - compilation, 0.0), compilation)


@double_precision
def _dags_per_second(task: Task) -> float:
    problem = linear_gaussian(task.num_variables, task.num_rows, task.seed, standardize=True)
    draw = SAMPLERS[task.subject](paper_score(problem.data), task.seed)
    draw()  # compiles
    return units_per_s(draw)


def _score(task: Task) -> Score:
    if task.subject == "bdeu":
        frame = simulate.discrete(task.num_variables, task.num_rows, random_state=task.seed).frame
        return paper_score(Dataset.from_frame(frame))
    return paper_score(linear_gaussian(task.num_variables, task.num_rows, task.seed, standardize=True).data)


def _plain_bge(d: int) -> Callable[[int, np.ndarray], np.ndarray]:
    """BGe's two determinants for one parent set after the other, as one would write it first."""
    root = np.random.default_rng(0).normal(size=(d, 2 * d))
    matrix = root @ root.T

    def log_determinant(nodes: np.ndarray) -> float:
        return np.linalg.slogdet(matrix[np.ix_(nodes, nodes)])[1]

    def local(node: int, parents: np.ndarray) -> np.ndarray:
        sets = [np.flatnonzero(row) for row in parents]
        return np.array([log_determinant(s) - log_determinant(np.append(s, node)) for s in sets])

    return local


def _timed(function: Callable[..., T], *arguments: Any) -> tuple[T, float]:
    started = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - started


def units_per_s(function: Callable[[], int], least_seconds: float = _LEAST_SECONDS) -> float:
    """Units per second of a function that returns how many it did, over calls that take long enough."""
    units, seconds = 0, 0.0
    while seconds < least_seconds:
        done, once = _timed(function)
        units, seconds = units + done, seconds + once
    return units / seconds
