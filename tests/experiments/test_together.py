"""Fits that are trained as one stack are the fits of their tasks."""

import numpy as np
import pytest

from gflowdag.experiments import reproduce
from gflowdag.experiments.fits import fit_tasks, load_posterior
from gflowdag.experiments.methods import METHODS
from gflowdag.experiments.problems import Spec
from gflowdag.experiments.study import stored_row
from gflowdag.experiments.together import can_be_stacked, run_stacked


@pytest.fixture
def brief(monkeypatch):
    """A tenth of a second of training is enough to see who gets which result."""
    options = {"preset": "fast", "iterations": 60, "batch_size": 16, "num_weighted": 200, "num_witnesses": 0}
    monkeypatch.setitem(METHODS, "dag-gflownet", METHODS["dag-gflownet"]._replace(quick=options))
    return options


def test_a_stack_stores_each_fit_under_its_own_task(brief, tmp_path):
    problems = [Spec("linear-gaussian", 4, 200, seed, "standardised") for seed in range(3)]
    tasks = fit_tasks(problems, ["exact", "dag-gflownet"], quick=True)
    stackable = [task for task in tasks if can_be_stacked(task)]
    assert [task.arguments["method"] for task in stackable] == ["dag-gflownet"] * 3

    run_stacked(stackable, tmp_path)
    rows = [stored_row(task, tmp_path) for task in stackable]
    assert [row["seed"] for row in rows] == [0, 1, 2]
    assert {row["iterations"] for row in rows} == {brief["iterations"]}
    for problem in problems:
        policy = load_posterior(tmp_path, problem.name, "dag-gflownet")
        # The untrained policy is already near; another data set's edges are off by 0.4 and more.
        exact = fit_exact(problem)
        assert np.abs(policy.edge_probabilities() - exact).to_numpy().max() < 0.25


def fit_exact(problem: Spec):
    from gflowdag import ExactPosterior
    from gflowdag.experiments.problems import load

    return ExactPosterior().fit(load(problem).data).posterior_.edge_probabilities()


def test_together_leaves_nothing_to_do_for_the_workers(brief, tmp_path, monkeypatch):
    experiment = reproduce.EXPERIMENTS["small-graphs"]
    asked = {"quick": True, "methods": ["dag-gflownet"], "num_datasets": 1}
    first = reproduce.run(experiment, tmp_path, together=True, **asked)
    assert not first.faults
    assert len(first.rows) == 2
    monkeypatch.setattr("gflowdag.experiments.study.run_task", lambda *_: pytest.fail("it was stored"))
    assert len(reproduce.run(experiment, tmp_path, **asked).rows) == 2
