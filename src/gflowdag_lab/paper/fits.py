"""One fit as a task: a problem, a row's estimator, a row of measures, and the posterior in a file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gflowdag import __version__
from gflowdag.data import Dataset
from gflowdag.posterior import Posterior, device_name
from gflowdag_lab.model import PRIOR, score_name
from gflowdag_lab.paper.methods import METHODS, make_estimator, settings
from gflowdag_lab.paper.problems import Spec, as_json, load
from gflowdag_lab.paper.study import Task

NUM_SAMPLES = 1000  # graphs of every method, as in the paper
# What a method's diagnostics may hold that is worth a column.
_MEASURES = (
    "iterations",
    "ess",
    "pareto_k",
    "r_hat",
    "cyclic_fraction",
    "num_distinct",
    "rounding",
)


def fit_tasks(
    problems: Iterable[Spec],
    methods: Sequence[str],
    *,
    quick: bool,
    budget: float | None = None,
    prior: str = PRIOR,
) -> list[Task]:
    """A task for each problem and method."""
    return [
        fit_task(problem, method, quick=quick, budget=budget, prior=prior)
        for problem in problems
        for method in methods
    ]


def fit_task(
    problem: Spec, method: str, *, quick: bool, budget: float | None = None, prior: str = PRIOR
) -> Task:
    """The task that fits one method to one problem; the fit's seed is that of the problem."""
    chosen = settings(method, quick=quick, num_variables=problem.num_variables, budget=budget)
    options = {"num_samples": NUM_SAMPLES, **chosen}
    arguments = {"problem": as_json(problem), "method": method, "options": options, "seed": problem.seed}
    arguments |= _beside_the_papers(prior)
    change = METHODS[method].change
    since = None if change is None else change.version
    return Task(f"{problem.name}--{method}", f"{__name__}:fit", arguments, since)


def fit(
    folder: Path,
    *,
    problem: dict[str, Any],
    method: str,
    options: dict[str, Any],
    seed: int,
    prior: str = PRIOR,
) -> dict[str, Any]:
    """Fit, save the posterior under `folder/posteriors`, and say how it went."""
    data = load(Spec(**problem)).data
    estimator = make_estimator(method, options, seed, prior).set_params(score=score_name(data))
    posterior = estimator.fit(data).posterior_
    asked: dict[str, Any] = {"problem": problem, "method": method, "options": options, "seed": seed}
    return keep(posterior, folder, **asked, data=data, prior=prior)


def keep(
    posterior: Posterior,
    folder: Path,
    *,
    problem: dict[str, Any],
    method: str,
    options: dict[str, Any],
    seed: int,
    data: Dataset,
    prior: str = PRIOR,
) -> dict[str, Any]:
    """Save the posterior of a fit; returns the fit's row."""
    spec = Spec(**problem)
    posterior.save(posterior_path(folder, spec.name, method))
    details = posterior.diagnostics()
    measures = {name: _number(details[name]) for name in _MEASURES if details.get(name) is not None}
    return {
        "problem": spec.name,
        **{key: value for key, value in problem.items() if value is not None},
        "method": method,
        "label": METHODS[method].label,
        "options": ", ".join(
            f"{name}={value}" for name, value in (options | _beside_the_papers(prior)).items()
        ),
        "fit_seed": seed,
        "seconds": round(details["seconds"], 3),
        "verdict": details["verdict"],
        "log_evidence": posterior.log_evidence,
        "log_evidence_error": posterior.log_evidence_error,
        "best_log_score": None if posterior.log_scores is None else float(np.max(posterior.log_scores)),
        **measures,
        "device": device_name(),
        "commit": commit(),
        "version": __version__,
        "data_sha256": data.sha256,
    }


def _beside_the_papers(prior: str) -> dict[str, str]:
    """A prior as an argument; that of the paper goes without saying, as in all fits that are stored."""
    return {} if prior == PRIOR else {"prior": prior}


def posterior_path(folder: Path, problem: str, method: str) -> Path:
    """Where a fit leaves its posterior."""
    return folder / "posteriors" / f"{problem}--{method}.npz"


def load_posterior(folder: Path, problem: str, method: str) -> Posterior:
    """The posterior that a fit left."""
    return Posterior.load(posterior_path(folder, problem, method))


@cache
def commit() -> str:
    """The commit of the running code, with a `+` if files of the package were changed since; or "unknown".

    Where the code is no checkout (a container, a cluster's scratch space) `GFLOWDAG_COMMIT` may name it.
    """
    if named := os.environ.get("GFLOWDAG_COMMIT"):
        return named
    here = Path(__file__).parent.parent
    revision = _git(here, "rev-parse", "--short", "HEAD")
    if revision is None:
        return "unknown"
    return revision + ("+" if _git(here, "status", "--porcelain", "--untracked-files=no", "--", ".") else "")


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        answer = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def _number(value: Any) -> Any:
    return float(np.mean(value)) if isinstance(value, np.ndarray | np.floating | float) else value
