"""Parent-set MCMC as an estimator: right beside the exact posterior, stopped, kept and continued."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gflowdag as gd
from gflowdag.errors import FileFormatError, GFlowDAGError, TrainingError
from gflowdag.mcmc.unrestricted import run, saved
from gflowdag.mcmc.unrestricted.run import Result
from gflowdag.runtime.checkpoints import CHECKPOINT
from gflowdag.runtime.convergence import MINIMAL_EFFECTIVE_SAMPLES
from gflowdag.runtime.deadline import Deadline

NEVER: dict[str, Any] = {"max_error": 1e-9, "num_chains": 4, "num_samples": 50, "random_state": 5}


def discrete_frame():
    return gd.simulate.discrete(7, 150, random_state=3).frame


def continuous_frame():
    return gd.simulate.linear_gaussian(7, 60, random_state=3).frame


@pytest.mark.parametrize("make", [continuous_frame, discrete_frame])
@pytest.mark.parametrize("prior", ["fair", "uniform"])
def test_what_is_trusted_is_the_exact_posterior_within_the_stated_errors(make, prior) -> None:
    knowledge = gd.Knowledge(required=[("X1", "X3")], forbidden=[("X2", "X1")], max_parents=3)
    options: dict[str, Any] = {"prior": prior, "knowledge": knowledge}
    post = gd.ParentSetMCMC(random_state=0, **options).fit(make()).posterior_
    exact = gd.ExactPosterior(random_state=0, num_samples=10, **options).fit(make()).posterior_
    found = post.diagnosis
    assert found.verdict == "trusted"
    assert found.effective_samples >= MINIMAL_EFFECTIVE_SAMPLES
    difference = np.abs(post.edge_probabilities() - exact.edge_probabilities()).to_numpy()
    assert difference.max() < 4 * found.extra["largest_error"]
    # Samples are thinned graphs of the same chains: two standard errors of 400 effective draws and more.
    counted = post.samples.mean(axis=0)
    assert np.abs(counted - exact.edge_probabilities().to_numpy()).max() < 0.1
    assert post.samples[:, 0, 2].all()
    assert not post.samples[:, 1, 0].any()


def test_a_run_that_is_continued_ends_as_one_that_was_not_stopped(tmp_path) -> None:
    frame = continuous_frame()
    through = gd.ParentSetMCMC(iterations=600, **NEVER).fit(frame).posterior_
    gd.ParentSetMCMC(iterations=200, folder=tmp_path, **NEVER).fit(frame)
    resumed = gd.ParentSetMCMC(iterations=600, folder=tmp_path, resume=True, **NEVER).fit(frame).posterior_
    np.testing.assert_array_equal(resumed.samples, through.samples)
    np.testing.assert_array_equal(resumed.edge_probabilities(), through.edge_probabilities())
    assert resumed.diagnosis.iterations == through.diagnosis.iterations >= 600


def test_a_resumed_run_gets_its_budget_anew(tmp_path) -> None:
    frame = continuous_frame()
    first = gd.ParentSetMCMC(budget=1.0, folder=tmp_path, **NEVER).fit(frame).posterior_
    more = gd.ParentSetMCMC(budget=2.0, folder=tmp_path, resume=True, **NEVER).fit(frame).posterior_
    assert more.diagnosis.iterations > first.diagnosis.iterations


def test_chains_of_another_problem_are_not_continued(tmp_path) -> None:
    gd.ParentSetMCMC(iterations=64, folder=tmp_path, **NEVER).fit(continuous_frame())
    with pytest.raises(TrainingError, match="belongs to a run with other data or other settings"):
        gd.ParentSetMCMC(iterations=64, folder=tmp_path, resume=True, **NEVER).fit(discrete_frame())
    (tmp_path / CHECKPOINT).write_bytes(b"nothing")
    with pytest.raises(FileFormatError):
        gd.ParentSetMCMC(iterations=64, folder=tmp_path, resume=True, **NEVER).fit(continuous_frame())


def test_auto_goes_on_with_its_chains_although_a_larger_budget_would_reach_the_exact_posterior(
    tmp_path, monkeypatch
) -> None:
    budgets = iter([("parent-set-mcmc", "so"), ("exact", "so")])
    monkeypatch.setattr("gflowdag.estimators.auto.automatic_choice", lambda *_, **__: next(budgets))
    for resume in (False, True):
        post = gd.AutoPosterior(
            budget=2.0, folder=tmp_path, resume=resume, num_samples=10, random_state=0
        ).fit(continuous_frame())
        assert post.posterior_.method == "parent-set-mcmc"


@pytest.mark.parametrize(("seconds_to_write", "expected"), [(0.1, [10, 20.1, 30.2]), (1.0, [10, 61, 112])])
def test_states_are_kept_every_ten_seconds_and_less_often_where_writing_is_slow(
    seconds_to_write, expected, tmp_path, monkeypatch
) -> None:
    clock, written = [0.0], []

    def write(folder, state, fingerprint) -> None:
        written.append(clock[0])
        clock[0] += seconds_to_write

    monkeypatch.setattr(saved.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(saved, "save_state", write)
    saver = saved.Saver(tmp_path, "")
    while len(written) < len(expected):
        saver(None)  # pyright: ignore[reportArgumentType]
        clock[0] += 0.1
    np.testing.assert_allclose(written, expected, atol=0.35)  # a look every tenth of a second


def test_a_saved_state_holds_the_segments_so_far_and_comes_back_whole(tmp_path) -> None:
    from gflowdag.data import Dataset
    from gflowdag.score import make_score

    score = make_score(Dataset.from_frame(continuous_frame()), prior="fair")
    state = run(score, seed=0, num_chains=4, max_sweeps=80).state
    saved.save_state(tmp_path, state, "this")
    loaded = saved.load_state(tmp_path, "this")
    assert loaded is not None
    parts = [(*kept.pools._replace(focus=None), *kept.pools.focus, *kept.records) for kept in (state, loaded)]
    for one, other in zip(*parts, strict=True):
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
    assert saved.load_state(tmp_path / "nowhere", "this") is None


class OneGraph(gd.LocalScore):
    """Every parent set but one of each node loses hundreds of nats: chains that are there stay there."""

    def local(self, node: int, parents: np.ndarray, /) -> np.ndarray:
        wanted = np.arange(self.num_variables) == node - 1
        return -300.0 * (parents != wanted).sum(axis=1)


def test_chains_that_keep_one_graph_are_trusted_if_many_other_starts_come_to_it(monkeypatch) -> None:
    frame = np.random.default_rng(0).normal(size=(20, 4))
    options: dict[str, Any] = {"score": OneGraph(), "iterations": 256, "num_samples": 20, "random_state": 0}
    found = gd.ParentSetMCMC(**options).fit(frame).posterior_
    assert found.diagnosis.verdict == "trusted"
    assert found.diagnosis.effective_samples == 60
    assert "60 further scattered starts ended there too" in found.diagnosis.explanation
    assert found.samples[:, [0, 1, 2], [1, 2, 3]].all()

    other = np.zeros(60)
    other[7] = -300.0  # one of sixty ends elsewhere
    monkeypatch.setattr(sys.modules[Result.__module__], "settled_scores", lambda *_: other)
    found = gd.ParentSetMCMC(**options).fit(frame).posterior_
    assert found.diagnosis.verdict == "not converged"
    assert "not all of 60 further scattered starts ended there" in found.diagnosis.explanation


@pytest.mark.parametrize("method", ["parent-set-mcmc", "auto"])
def test_too_few_sweeps_to_be_judged_are_refused(method: str) -> None:
    frame = gd.simulate.linear_gaussian(40, 30, random_state=0).frame  # beyond the exact posterior
    with pytest.raises(GFlowDAGError, match="iterations must be 64 or more, got 63"):
        gd.fit(frame, method=method, iterations=63)


@pytest.mark.parametrize("num_copies", [1, 2])
def test_a_verdict_against_near_copies_names_all_of_them_and_the_remedy(num_copies: int) -> None:
    frame, rng = continuous_frame(), np.random.default_rng(0)
    names = ["X2", *(f"copy{number}" for number in range(num_copies))]
    for name in names[1:]:
        frame[name] = frame["X2"] + 0.1 * frame["X2"].std() * rng.normal(size=len(frame))
    stopped = gd.ParentSetMCMC(iterations=64, **NEVER).fit(frame[[*names, "X4"]]).posterior_.diagnosis
    assert stopped.verdict == "not converged"
    # Which of them is named first depends on the slowest edge; the others are the ones to be dropped.
    found = re.search(
        r"The columns ([\w, ]+) are nearly copies, with a correlation of 0\.99", stopped.explanation
    )
    assert found is not None
    named = found[1].split(", ")
    assert sorted(named) == sorted(names)
    assert f"drop={named[1:]}" in stopped.explanation
    assert "Give the chains more time" not in stopped.explanation


def test_chains_that_stay_apart_are_not_told_to_go_on() -> None:
    """A thousand rows of nearly noiseless columns: every chain keeps the graph that it came to."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 2)) @ rng.normal(size=(2, 24)) + 0.05 * rng.normal(size=(1000, 24))
    frame = pd.DataFrame(x, columns=[f"X{i}" for i in range(24)])
    apart = gd.ParentSetMCMC(iterations=128, **NEVER).fit(frame).posterior_.diagnosis
    assert apart.verdict == "not converged"
    assert apart.r_hat == np.inf
    assert "the exact posterior answers" in apart.explanation
    assert "Give the chains more time" not in apart.explanation


def test_where_the_time_is_over_chains_make_as_few_sweeps_as_can_be_judged(monkeypatch) -> None:
    from gflowdag.data import Dataset
    from gflowdag.score import make_score

    module, sweeps = sys.modules[Result.__module__], list[int]()
    sweep = vars(module)["sweep"]

    def counted(*words: Any, **options: Any) -> float:
        sweeps.append(1)
        return sweep(*words, **options)

    monkeypatch.setattr(module, "sweep", counted)
    score = make_score(Dataset.from_frame(continuous_frame()), prior="fair")
    found = run(score, seed=0, num_chains=4, deadline=Deadline.after(0.0))
    assert len(sweeps) == 12 * 4
    assert np.isfinite([found.verdict.r_hat, found.verdict.bulk_ess, found.verdict.error]).all()
    assert not found.verdict.trusted
