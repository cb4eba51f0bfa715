"""Fits of one GFlowNet on many data sets of equal size, trained as one stack on one device.

A GPU that trains one small network spends its time on launches; it trains dozens at once for little more. The
fits are those of the tasks, with the same settings, and are stored as theirs; a budget counts for each data
set, so that a stack of ten has ten times as much.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import jax
import numpy as np

from gflowdag.data import Dataset
from gflowdag.estimators.base import StructureLearner
from gflowdag.estimators.dag_gflownet import DAGGFlowNet
from gflowdag.experiments.fits import keep
from gflowdag.experiments.methods import make_estimator
from gflowdag.experiments.problems import Spec, load
from gflowdag.experiments.study import Task, store_row, stored_row
from gflowdag.gflownet.stacked import Stacked, stacked_optimizer, unstack
from gflowdag.gflownet.trainer import clipped_adam, train
from gflowdag.posterior import Posterior
from gflowdag.precision import double_precision
from gflowdag.progress import Progress, silent
from gflowdag.score import make_score


def can_be_stacked(task: Task) -> bool:
    """Whether the task is a fit of a DAG-GFlowNet, by whichever recipe."""
    return isinstance(_estimator(task), DAGGFlowNet)


def run_stacked(tasks: Sequence[Task], folder: str | Path, progress: Progress = silent) -> None:
    """Fit the tasks, stack by stack, and store a row for each.

    Args:
        tasks: fits for which `can_be_stacked`; those that are stored already are not run again.
        folder: of the study.
        progress: told about the training of each stack.
    """
    folder = Path(folder).absolute()
    for stack in _stacks([task for task in tasks if stored_row(task, folder) is None]):
        rows, seconds = _fit_stack(stack, folder, progress)
        for task, row in zip(stack, rows, strict=True):
            store_row(task, folder, row, seconds / len(stack))


def _stacks(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """Tasks that differ in nothing but the data and the seed."""

    def kind(task: Task) -> str:
        size = Spec(**task.arguments["problem"]).num_variables
        return repr((task.arguments["method"], task.arguments["options"], size))

    for _, stack in groupby(sorted(tasks, key=kind), key=kind):
        yield list(stack)


def _estimator(task: Task) -> StructureLearner:
    arguments = task.arguments
    return make_estimator(arguments["method"], arguments["options"], arguments["seed"])


@double_precision
def _fit_stack(tasks: Sequence[Task], folder: Path, progress: Progress) -> tuple[list[dict[str, Any]], float]:
    """Rows of the tasks, and the seconds for all of them."""
    started = time.perf_counter()
    tables = [load(Spec(**task.arguments["problem"])).data for task in tasks]
    posteriors = fit_together(_estimator(tasks[0]), tables, progress)
    seconds = time.perf_counter() - started
    rows = []
    for task, table, posterior in zip(tasks, tables, posteriors, strict=True):
        details = {**posterior.details, "seconds": seconds / len(tasks)}
        rows.append(keep(replace(posterior, details=details), folder, data=table, **task.arguments))
    return rows, seconds


def fit_together(estimator: Any, tables: Sequence[Dataset], progress: Progress = silent) -> list[Posterior]:
    """Posteriors of several data sets of equal size, trained at once with the settings of `estimator`."""
    seed = int(np.random.default_rng(estimator.random_state).integers(2**31))
    scores = [make_score(table, score=estimator.score, prior=estimator.prior) for table in tables]
    preset = estimator._preset()
    learners = [estimator._learner(score, preset) for score in scores]
    train_key, sample_key = jax.random.split(jax.random.key(seed))
    trained = train(
        Stacked(learners),
        train_key,
        iterations=preset.iterations if estimator.budget is None else None,
        budget=None if estimator.budget is None else estimator.budget * len(tables),
        options=preset.options,
        optimizer=stacked_optimizer(clipped_adam(preset.options)),
        progress=progress,
    )
    return [
        estimator._posterior(
            score,
            seed + index,
            learner.space,
            unstack(trained.params, index),
            jax.random.fold_in(sample_key, index),
            trained.iterations,
        )
        for index, (score, learner) in enumerate(zip(scores, learners, strict=True))
    ]
