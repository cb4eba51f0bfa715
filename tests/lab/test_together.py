"""Fits that are trained as one stack are the fits of their tasks."""

import jax
import numpy as np
import pytest

from gflowdag.estimators.dag_gflownet import PRESETS
from gflowdag.gflownet.trainer import Options
from gflowdag_lab.paper import reproduce, together
from gflowdag_lab.paper.fits import fit_tasks, load_posterior
from gflowdag_lab.paper.methods import METHODS
from gflowdag_lab.paper.problems import Spec
from gflowdag_lab.paper.study import stored_row
from gflowdag_lab.paper.together import PlannedFit, can_be_stacked, run_stacked


@pytest.fixture
def brief(monkeypatch):
    """A tenth of a second of training is enough to see who gets which result."""
    options = {
        "preset": "fast",
        "iterations": 60,
        "batch_size": 16,
        "num_weighted": 200,
        "num_held_out_graphs": 0,
    }
    monkeypatch.setitem(METHODS, "dag-gflownet", METHODS["dag-gflownet"]._replace(quick=options))
    return options


def test_a_stack_stores_each_fit_under_its_own_task(brief, tmp_path):
    problems = [Spec("linear-gaussian", 4, 200, seed, "standardised") for seed in range(2)]
    tasks = fit_tasks(problems, ["exact", "dag-gflownet", "dag-gflownet-chains"], quick=True)
    stackable = [task for task in tasks if can_be_stacked(task)]
    assert [task.arguments["method"] for task in stackable] == ["dag-gflownet"] * 2

    run_stacked([PlannedFit(task, tmp_path) for task in stackable])
    rows = [stored_row(task, tmp_path) for task in stackable]
    assert [row["seed"] for row in rows] == [0, 1]
    assert {row["iterations"] for row in rows} == {brief["iterations"]}
    for problem in problems:
        policy = load_posterior(tmp_path, problem.name, "dag-gflownet")
        # The untrained policy is already near; another data set's edges are off by 0.4 and more.
        exact = fit_exact(problem)
        assert np.abs(policy.edge_probabilities() - exact).to_numpy().max() < 0.25


def test_a_killed_stack_goes_on_from_its_checkpoint(brief, tmp_path, monkeypatch):
    """The same graphs as without the kill, and nothing of the checkpoint is left behind."""
    options = Options(chunk_seconds=0.0, checkpoint_seconds=0.0)
    monkeypatch.setitem(PRESETS, "fast", PRESETS["fast"]._replace(options=options))
    monkeypatch.setattr("gflowdag.estimators.dag_gflownet._FEW", 0)
    problems = [Spec("linear-gaussian", 4, 200, seed, "standardised") for seed in range(2)]
    tasks = fit_tasks(problems, ["dag-gflownet"], quick=True)
    whole, killed = (
        [PlannedFit(task, tmp_path / folder) for task in tasks] for folder in ("whole", "killed")
    )
    run_stacked(whole)
    steps = []

    def kill(done, total, **_):
        steps.append(done)
        if done > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_stacked(killed, kill)
    assert not (tmp_path / "killed" / "tasks").exists()
    run_stacked(killed, lambda done, *_, **__: steps.append(done))
    assert steps == sorted(set(steps))  # nothing was done twice
    for problem in problems:
        same = [load_posterior(fits[0].folder, problem.name, "dag-gflownet") for fits in (whole, killed)]
        np.testing.assert_array_equal(same[0].samples, same[1].samples)
    assert not list((tmp_path / "killed" / "stacks").iterdir())


def fit_exact(problem: Spec):
    from gflowdag import ExactPosterior
    from gflowdag_lab.paper.problems import load

    return ExactPosterior(prior="uniform").fit(load(problem).data).posterior_.edge_probabilities()


def test_together_leaves_nothing_to_do_for_the_workers(brief, tmp_path, monkeypatch):
    experiment = reproduce.EXPERIMENTS["small-graphs"]
    asked = {"quick": True, "methods": ["dag-gflownet"], "num_datasets": 1}
    reproduce.run_together([experiment], tmp_path, **asked)
    monkeypatch.setattr("gflowdag_lab.paper.study.run_task", lambda *_: pytest.fail("it was stored"))
    outcome = reproduce.run(experiment, tmp_path, **asked)
    assert not outcome.faults
    assert len(outcome.rows) == 2


def test_studies_share_a_stack_and_shared_studies_share_fits(tmp_path, monkeypatch):
    stacks = []
    monkeypatch.setattr(together, "_fit_stack", lambda fits, _: stacks.append(fits))
    experiments = [
        reproduce.EXPERIMENTS[name] for name in ("sachs", "sachs-coverage", "sachs-interventional")
    ]
    reproduce.run_together(experiments, tmp_path, quick=False, methods=["dag-gflownet"])
    names = [[(fit.folder.name, fit.task.arguments["problem"]["kind"]) for fit in stack] for stack in stacks]
    interventional = "sachs-interventional"
    assert names == [[("sachs", "sachs"), (interventional, interventional), (interventional, "sachs-all")]]


def test_a_stack_beyond_memory_is_split_until_it_fits(tmp_path, monkeypatch):
    fitted = []

    def fit_stack(fits, progress):
        if len(fits) > 2:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")
        fitted.append([fit.task.arguments["problem"]["seed"] for fit in fits])

    monkeypatch.setattr(together, "_fit_stack", fit_stack)
    problems = [Spec("linear-gaussian", 4, 200, seed, "standardised") for seed in range(5)]
    run_stacked([PlannedFit(task, tmp_path) for task in fit_tasks(problems, ["dag-gflownet"], quick=True)])
    assert fitted == [[0, 1], [2], [3, 4]]


def test_other_faults_of_a_stack_are_not_taken_for_a_lack_of_memory(tmp_path, monkeypatch):
    def fit_stack(fits, progress):
        raise jax.errors.JaxRuntimeError("INTERNAL: something else")

    monkeypatch.setattr(together, "_fit_stack", fit_stack)
    tasks = fit_tasks(
        [Spec("linear-gaussian", 4, 200, seed) for seed in range(2)], ["dag-gflownet"], quick=True
    )
    with pytest.raises(jax.errors.JaxRuntimeError, match="something else"):
        run_stacked([PlannedFit(task, tmp_path) for task in tasks])
