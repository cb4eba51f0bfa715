"""A budget ends every method that takes time, and the answer says what was left undone."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gflowdag as gd
from gflowdag.errors import MissingExtraError, TooLargeError
from gflowdag.estimators import REGISTRY, estimator_class
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.runtime.deadline import Deadline

# Work for hours on four variables; only the budget can end it.
ENDLESS = {
    "order-gflownet": {"iterations": 10**7, "batch_size": 8, "width": 16, "depth": 1},
    "dag-gflownet": {
        "iterations": 10**7,
        "batch_size": 8,
        "num_training_graphs": 0,
        "num_held_out_graphs": 0,
    },
    "order-mcmc": {"iterations": 10**8, "num_chains": 4, "num_records": 10**6},
    "mc3": {"num_chains": 4, "num_steps": 10**7, "burn_in": 1000, "thinning": 50},
    "parent-set-mcmc": {"max_error": 1e-6},
    "gadget": {"num_runs": 2, "num_temperatures": 2, "burn_in": 100, "num_steps": 10**6, "n_jobs": 1},
    "bootstrap-ges": {"num_bootstraps": 10**5, "n_jobs": 1},
    "bootstrap-pc": {"num_bootstraps": 10**5, "n_jobs": 1},
    "dibs": {"num_particles": 64, "num_steps": 10**7, "num_graphs": 8},  # some are acyclic from the start
    "bcd-nets": {"num_steps": 10**7, "batch_size": 2},
}
BUDGET = 1.0  # less than it takes to compile some of them: what is done then is done once


@pytest.fixture(scope="module")
def frame():
    return gd.simulate.linear_gaussian(4, 60, random_state=2).frame


def fitted(method: str, frame, **options) -> gd.Posterior:
    try:
        return estimator_class(method)(num_samples=10, random_state=0, **options).fit(frame).posterior_
    except MissingExtraError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("method", ENDLESS)
def test_a_budget_ends_every_method_that_takes_time(method: str, frame) -> None:
    post = fitted(method, frame, budget=BUDGET, **ENDLESS[method])
    assert post.num_samples == 10
    if estimator_class(method).record.trains:
        assert 0 < post.diagnosis.iterations < 10**7
    else:
        assert 0 < post.diagnosis.share_done < 1
        assert "The budget of a second ended it after" in post.diagnosis.explanation


def test_a_bootstrap_that_is_ended_counts_every_graph_that_was_found(frame, recwarn) -> None:
    post = fitted("bootstrap-ges", frame, budget=BUDGET, num_bootstraps=10**5, n_jobs=2)
    assert post.diagnosis.share_done < 1
    assert not [str(each.message) for each in recwarn if "not used" in str(each.message)]


def test_every_method_takes_a_budget() -> None:
    assert set(ENDLESS) == set(REGISTRY) - {"auto", "exact"}
    for name in REGISTRY:
        assert "budget" in estimator_class(name)().get_params()


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("mc3", {"num_chains": 4, "burn_in": 10**7, "thinning": 10}),
        ("order-mcmc", {"iterations": 10**8, "num_chains": 4, "num_records": 10**6}),
        ("gadget", {"num_runs": 2, "num_temperatures": 1, "burn_in": 10**7, "n_jobs": 1}),
    ],
)
def test_chains_that_are_stopped_in_their_burn_in_are_never_trusted(method: str, options, frame) -> None:
    post = fitted(method, frame, budget=1.0, **options)
    assert post.diagnosis.verdict == "not converged"
    assert re.search("burn-in|too few to judge", post.diagnosis.explanation)


def test_chains_with_too_few_draws_are_not_trusted_and_no_error(frame) -> None:
    post = fitted("mc3", frame, budget=1e-3, num_chains=4, burn_in=0, num_steps=400, thinning=10)
    assert post.diagnosis.verdict == "not converged"
    assert "too few to judge" in post.diagnosis.explanation


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("mc3", {"num_chains": 4, "burn_in": 20, "num_steps": 200, "thinning": 5}),
        ("order-mcmc", {"iterations": 40, "num_chains": 4, "num_records": 8}),
        ("bootstrap-ges", {"num_bootstraps": 3, "n_jobs": 1}),
        ("dibs", {"num_particles": 8, "num_steps": 300, "num_graphs": 16}),
        ("bcd-nets", {"num_steps": 100, "batch_size": 4}),
    ],
)
def test_a_budget_that_is_not_used_up_changes_nothing(method: str, options, frame) -> None:
    plain, timed = fitted(method, frame, **options), fitted(method, frame, budget=3600.0, **options)
    np.testing.assert_array_equal(plain.samples, timed.samples)
    assert timed.diagnosis.share_done == 1
    assert plain.diagnosis.share_done is None
    assert timed.diagnosis.explanation == plain.diagnosis.explanation


def test_the_exact_posterior_is_refused_where_it_would_take_longer_than_the_budget() -> None:
    table = np.random.default_rng(0).normal(size=(30, 19))
    with pytest.raises(TooLargeError, match=r"takes about .* seconds, more than the budget of a second"):
        gd.fit(table, method="exact", budget=1.0)


def test_auto_takes_chains_where_the_exact_posterior_is_beyond_the_budget(monkeypatch) -> None:
    left = []

    def answer(self, score, seed, progress):
        left.append(self._deadline.seconds_left)
        graphs = np.zeros((1, score.num_variables, score.num_variables), bool)
        return gd.Posterior(graphs, score.names, method=self.method, diagnosis=Diagnostics("trusted", "So."))

    monkeypatch.setattr(estimator_class("parent-set-mcmc"), "_infer", answer)
    table = np.random.default_rng(0).normal(size=(30, 20))
    post = gd.fit(table, budget=3.0, num_samples=5)
    assert post.method == "parent-set-mcmc"
    assert 0 < left[0] < 3


def test_a_deadline_comes_once_and_its_share_comes_earlier() -> None:
    never = Deadline()
    assert not never.is_set
    assert not never.has_passed
    assert never.share(0.5) == never == Deadline.after(None)
    assert Deadline.after(0).has_passed
    whole = Deadline.after(100.0)
    assert 49 < whole.share(0.5).seconds_left <= 50 < whole.seconds_left
