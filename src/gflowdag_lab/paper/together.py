"""Fits of one GFlowNet on many data sets of equal size, trained as one stack on one device.

A GPU that trains one small network spends its time on launches; it trains dozens at once for little more. The
fits are those of the tasks, with the same settings, and are stored as theirs. A budget is that of the whole
stack, so a stack takes as long as a single fit would; numbers of iterations count for each network as ever.
A stack that is killed goes on from its last checkpoint when the same fits are asked for again.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import jax

from gflowdag import __version__
from gflowdag.estimators import DAGGFlowNet, StructureLearner, train_together
from gflowdag.runtime import Progress, double_precision, silent
from gflowdag_lab.model import PRIOR, score_name
from gflowdag_lab.paper.fits import keep
from gflowdag_lab.paper.methods import make_estimator
from gflowdag_lab.paper.policies import keep_policy
from gflowdag_lab.paper.problems import Spec, load
from gflowdag_lab.paper.study import Task, store_row, stored_row


class PlannedFit(NamedTuple):
    """A task and the folder of its study."""

    task: Task
    folder: Path


def can_be_stacked(task: Task) -> bool:
    """Whether the task is a fit of a DAG-GFlowNet that learns by itself, not from Markov chains."""
    estimator = _estimator(task)
    return isinstance(estimator, DAGGFlowNet) and estimator.preset not in ("canonical", "chains")


def run_stacked(fits: Sequence[PlannedFit], progress: Progress = silent) -> None:
    """Fit stack by stack, and store a row for each fit of a stack when the graphs of all are drawn.

    A stack that does not fit into the device's memory is split in two.

    Args:
        fits: tasks for which `can_be_stacked`, of one study or several; those that are stored already are
            not run again.
        progress: told about the training of each stack.
    """
    for stack in _stacks([fit for fit in fits if stored_row(fit.task, fit.folder) is None]):
        if not _has_memory_for(stack, progress):
            half = len(stack) // 2
            run_stacked(stack[:half], progress)
            run_stacked(stack[half:], progress)


def _stacks(fits: Sequence[PlannedFit]) -> Iterator[list[PlannedFit]]:
    """Fits that differ in nothing but the data and the seed."""

    def kind(fit: PlannedFit) -> str:
        arguments = fit.task.arguments
        size = Spec(**arguments["problem"]).num_variables
        return repr((arguments["method"], arguments["options"], arguments.get("prior"), size))

    for _, stack in groupby(sorted(fits, key=kind), key=kind):
        yield list(stack)


def _estimator(task: Task) -> StructureLearner:
    arguments = task.arguments
    prior = arguments.get("prior", PRIOR)
    return make_estimator(arguments["method"], arguments["options"], arguments["seed"], prior)


def _has_memory_for(fits: Sequence[PlannedFit], progress: Progress) -> bool:
    """Fit a stack; False if the device's memory does not hold all of it."""
    try:
        _fit_stack(fits, progress)
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error) or len(fits) == 1:
            raise
        shutil.rmtree(_checkpoints(fits), ignore_errors=True)
        return False
    return True


def _checkpoints(fits: Sequence[PlannedFit]) -> Path:
    """Where the training of a stack leaves its checkpoints: a folder of exactly these fits and network."""
    asked = repr((__version__, [(fit.folder.name, fit.task) for fit in fits]))
    return fits[0].folder / "stacks" / hashlib.sha256(asked.encode()).hexdigest()[:16]


@double_precision
def _fit_stack(fits: Sequence[PlannedFit], progress: Progress) -> None:
    started = time.perf_counter()
    tables = [load(Spec(**task.arguments["problem"])).data for task, _ in fits]
    folder = _checkpoints(fits)
    estimator = _estimator(fits[0].task).set_params(score=score_name(tables[0]))
    assert isinstance(estimator, DAGGFlowNet)
    trained = train_together(estimator, tables, progress, folder)
    share = (time.perf_counter() - started) / len(fits)
    drawn = []
    for index in range(len(fits)):
        started = time.perf_counter()
        posterior = trained.posterior(index)
        seconds = share + time.perf_counter() - started
        drawn.append(posterior.with_diagnostics(seconds=seconds))
    for index, ((task, study), table, posterior) in enumerate(zip(fits, tables, drawn, strict=True)):
        problem, method = Spec(**task.arguments["problem"]).name, task.arguments["method"]
        keep_policy(study, problem, method, trained.spaces[index], trained.policy(index), table.names)
        row = keep(posterior, study, data=table, **task.arguments)
        row |= {"fit_seed": trained.seed, "stack": len(fits)}
        store_row(task, study, row, posterior.diagnostics()["seconds"])
    shutil.rmtree(folder)
