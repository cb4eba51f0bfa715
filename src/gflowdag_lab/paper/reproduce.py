"""`gflowdag reproduce`: run experiments, check that no row is missing, write tables, figures and the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from gflowdag.errors import GFlowDAGError
from gflowdag.runtime import Progress, instead, silent
from gflowdag_lab.paper import limitations, lingauss, sachs, small_graphs
from gflowdag_lab.paper.experiment import Experiment
from gflowdag_lab.paper.fits import fit_tasks
from gflowdag_lab.paper.methods import require_methods
from gflowdag_lab.paper.results import MUST_BE_NUMBERS, Results, study_folder
from gflowdag_lab.paper.study import Task, run_tasks
from gflowdag_lab.paper.together import PlannedFit, can_be_stacked, run_stacked

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        small_graphs.EXPERIMENT,
        *lingauss.EXPERIMENTS,
        *sachs.EXPERIMENTS,
        limitations.EXPERIMENT,
    )
}


class Outcome(NamedTuple):
    """What a run of one experiment left."""

    rows: list[dict[str, Any]]  # one for each fit, with `error` where it failed
    faults: list[str]  # sentences: rows that are missing or not numbers


def chosen_experiments(name: str) -> list[Experiment]:
    """The experiments behind a name of the command line."""
    if name == "all":
        return list(EXPERIMENTS.values())
    if name == "page":
        return []
    if name not in EXPERIMENTS:
        raise GFlowDAGError(
            f"there is no experiment {name!r}: {instead(name, [*EXPERIMENTS, 'all', 'page'])}"
        )
    return [EXPERIMENTS[name]]


def run(
    experiment: Experiment,
    out: Path,
    *,
    quick: bool,
    methods: Sequence[str] | None = None,
    num_datasets: int | None = None,
    budget: float | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Progress = silent,
) -> Outcome:
    """Run the fits of one experiment that are not stored yet, and judge all of them.

    Args:
        experiment: what to run.
        out: folder of all studies.
        quick: small settings, for minutes on two cores.
        methods: rows to run; all by default. Others that are stored already stay.
        num_datasets: number of simulated data sets, in place of the experiment's own.
        budget: seconds that end the training of each DAG-GFlowNet, in place of the row's own; its number of
            iterations ends it at the latest.
        jobs: worker processes.
        scheduler: address of a Dask scheduler, in place of workers on this machine.
        progress: told after every fit.
    """
    tasks = planned_tasks(experiment, quick=quick, methods=methods, num_datasets=num_datasets, budget=budget)
    folder = study_folder(out, experiment.study, quick=quick)
    rows = run_tasks(tasks, folder, jobs=jobs, scheduler=scheduler, progress=progress)
    results, size = Results(out), "quick" if quick else "full"
    rows = [results.judge(experiment.study, row | {"size": size}, experiment.reference) for row in rows]
    return Outcome(rows, list(_faults(rows)))


def planned_tasks(
    experiment: Experiment,
    *,
    quick: bool,
    methods: Sequence[str] | None,
    num_datasets: int | None,
    budget: float | None = None,
) -> list[Task]:
    """The fits of an experiment, of all of its rows or of some."""
    if methods is not None:
        require_methods(list(methods))
    chosen = [name for name in experiment.methods if methods is None or name in methods]
    problems = experiment.problems(quick, num_datasets)
    return fit_tasks(problems, chosen, quick=quick, budget=budget, prior=experiment.prior)


def run_together(
    experiments: Sequence[Experiment],
    out: Path,
    *,
    quick: bool,
    methods: Sequence[str] | None = None,
    num_datasets: int | None = None,
    budget: float | None = None,
    progress: Progress = silent,
) -> None:
    """Run the fits of DAG-GFlowNets, those of equal size as one stack; arguments as for `run`."""
    asked = {"quick": quick, "methods": methods, "num_datasets": num_datasets, "budget": budget}
    fits = [
        PlannedFit(task, study_folder(out, experiment.study, quick=quick).absolute())
        for experiment in experiments
        for task in planned_tasks(experiment, **asked)
        if can_be_stacked(task)
    ]
    # Experiments may share a study: each of its fits once.
    run_stacked(list({(fit.folder, fit.task.name): fit for fit in fits}.values()), progress)


def _faults(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        if "error" in row:
            yield f"{row['task']}: {row['error']}"
            continue
        for name in MUST_BE_NUMBERS:
            if name in row and pd.isna(row[name]):
                yield f"{row['task']}: {name} is not a number"


def shown_row(row: dict[str, Any]) -> str:
    """A fit in one line: iterations, effective sample size, error to the reference."""
    if "error" in row:
        return f"{row['task']:<44} FAILED: {row['error']}"
    measures = {
        "iterations": _shown(row.get("iterations"), "{:.0f}"),
        "ESS": _shown(row.get("ess"), "{:.3f}"),
        "r": _shown(row.get("edge_r"), "{:.4f}"),
        "largest error": _shown(row.get("edge_max_error"), "{:.3f}"),
        "E-SHD": _shown(row.get("e_shd"), "{:.1f}"),
        "seconds": _shown(row.get("seconds"), "{:.1f}"),
    }
    return f"{row['task']:<44} " + "  ".join(f"{name} {value}" for name, value in measures.items())


def _shown(value: Any, form: str) -> str:
    return "–" if value is None or pd.isna(value) else form.format(value)
