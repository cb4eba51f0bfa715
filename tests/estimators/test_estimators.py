"""What all estimators share: the scikit-learn form, knowledge, seeds, the user's JAX settings left alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

import fork_server
import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import gflowdag as gd
from gflowdag.errors import GFlowDAGError, MissingExtraError, TooLargeError
from gflowdag.estimators import REGISTRY, estimator_class
from gflowdag.exact.size import estimated_bytes
from gflowdag.graph.closure import is_acyclic
from gflowdag.posterior.diagnostics import Diagnostics

# Settings with which a method answers in a second or two; the answers need not be good, only lawful.
TINY = {
    "exact": {},
    "auto": {},
    "dag-gflownet": {"iterations": 2, "batch_size": 8},
    "parent-set-mcmc": {"num_chains": 4, "iterations": 64},
    "order-gflownet": {"iterations": 2, "batch_size": 8, "width": 16, "depth": 1},
    "order-mcmc": {"iterations": 40, "num_chains": 4, "num_records": 8},
    "mc3": {"num_chains": 4, "burn_in": 20, "num_steps": 40, "thinning": 5},
    "gadget": {
        "num_runs": 1,
        "num_temperatures": 2,
        "burn_in": 20,
        "num_steps": 40,
        "num_candidates": 3,
        "n_jobs": 1,
    },
    "bootstrap-ges": {"num_bootstraps": 3, "n_jobs": 1},
    "bootstrap-pc": {"num_bootstraps": 3, "n_jobs": 1},
    "dibs": {"num_particles": 8, "num_steps": 300, "num_graphs": 16},
    "bcd-nets": {"num_steps": 5, "batch_size": 4},
}


@pytest.fixture(scope="module")
def frame():
    return gd.simulate.linear_gaussian(4, 80, random_state=5).frame


def tiny(method: str, **options):
    return estimator_class(method)(num_samples=20, random_state=3, **TINY[method], **options)


def outcome(estimator, frame, **options) -> gd.Posterior | str:
    """The posterior, or the message with which the method refuses; a missing extra skips the test."""
    try:
        return estimator.fit(frame, **options).posterior_
    except MissingExtraError as error:
        pytest.skip(str(error))
    except GFlowDAGError as error:
        return str(error)


def test_chains_that_no_machine_has_memory_for_are_refused() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 1500)))
    with pytest.raises(TooLargeError, match=r"4 chains of 1,500 variables take .* GiB, and this machine has"):
        gd.MC3(num_chains=4).fit(frame)


@pytest.mark.parametrize("method", REGISTRY)
def test_parameters_are_only_stored(method: str) -> None:
    estimator = tiny(method)
    again = clone(estimator)
    assert again.get_params() == estimator.get_params()
    assert again.set_params(num_samples=7).num_samples == 7
    assert not hasattr(estimator, "posterior_")


@pytest.fixture(scope="module")
def answers(frame) -> Callable[[str], gd.Posterior | str]:
    """The first outcome of each method on the table."""
    return cache(lambda method: outcome(tiny(method), frame))


@pytest.mark.parametrize("method", REGISTRY)
def test_every_method_returns_dags_and_a_verdict_and_repeats_itself(method: str, frame, answers) -> None:
    first = answers(method)
    assert isinstance(first, gd.Posterior), first
    again = tiny(method).fit(frame).posterior_
    np.testing.assert_array_equal(first.samples, again.samples)
    np.testing.assert_array_equal(first.edge_probabilities(), again.edge_probabilities())
    assert is_acyclic(first.samples).all()
    assert first.names == tuple(frame.columns)
    assert first.diagnostics()["verdict"] in {"exact", "trusted", "not converged", "unverified"}
    assert first.diagnostics()["explanation"].endswith(".")


@pytest.mark.parametrize("method", REGISTRY)
def test_knowledge_holds_in_every_graph_or_is_refused(method: str, frame) -> None:
    knowledge = gd.Knowledge(required=[("X3", "X1")], forbidden=[("X2", "X4")], max_parents=2)
    post = outcome(tiny(method, knowledge=knowledge), frame)
    if isinstance(post, str):
        assert re.search("knowledge|required|forbidden", post), post
        return
    at = post.names.index
    assert post.samples[:, at("X3"), at("X1")].all()
    assert not post.samples[:, at("X2"), at("X4")].any()
    assert post.samples.sum(axis=1).max() <= 2


@pytest.mark.parametrize("method", REGISTRY)
def test_interventions_are_used_or_refused(method: str) -> None:
    drawn = gd.simulate.linear_gaussian(4, 40, interventions=15, random_state=1)
    post = outcome(tiny(method), drawn.frame, interventions=drawn.intervened)
    if isinstance(post, str):
        assert "intervention" in post
    else:
        assert is_acyclic(post.samples).all()


# One method for each kind of JAX program that the library runs.
PROGRAMS = ["mc3", "order-mcmc", "order-gflownet", "dag-gflownet"]
_FIT = """
import jax, gflowdag as gd
assert gd.__file__ == {package!r}
from test_estimators import tiny, told
frame = gd.simulate.linear_gaussian(4, 80, random_state=5).frame
assert jax.config.jax_enable_x64
for method in {methods}:
    print(*told(method, tiny(method).fit(frame).posterior_), sep="\\n")
assert jax.config.jax_enable_x64
"""


def told(method: str, posterior: gd.Posterior) -> list[str]:
    """Samples and edge probabilities as text."""
    samples = np.packbits(posterior.samples).tobytes().hex()
    return [f"{method} {samples}", str(posterior.edge_probabilities().to_numpy().round(9).tolist())]


@pytest.mark.parametrize(
    ("num_variables", "budget", "chosen", "why"),
    [
        (20, None, "exact", "20 variables are within reach of the exact posterior"),
        (22, None, "exact", "22 variables are within reach of the exact posterior"),
        (23, None, "exact", "23 variables are within reach of the exact posterior"),
        (24, None, "parent-set-mcmc", "of 24 variables would take about 4 minutes, more than 2 minutes"),
        (24, 600.0, "exact", "24 variables are within reach of the exact posterior"),
        (20, 3.0, "parent-set-mcmc", "of 20 variables would take about 4 seconds, more than 3 seconds"),
        (200, None, "parent-set-mcmc", "too many for the exact posterior on this machine"),
    ],
)
def test_auto_is_exact_within_two_minutes_or_the_budget_and_takes_one_method_alone(
    num_variables: int, budget: float | None, chosen: str, why: str, monkeypatch
) -> None:
    called = []

    def answer(self, score, seed, progress):
        called.append((self.method, self.budget))
        graphs = np.zeros((1, score.num_variables, score.num_variables), bool)
        diagnostics = Diagnostics("not converged", "So.")
        return gd.Posterior(graphs, score.names, method=self.method, diagnosis=diagnostics)

    monkeypatch.setattr("gflowdag.estimators.method.total_memory", lambda: 64 << 30)
    for method in ("exact", "parent-set-mcmc"):
        monkeypatch.setattr(estimator_class(method), "_infer", answer)
    table = np.random.default_rng(0).normal(size=(60, num_variables))
    posterior = gd.fit(table, budget=budget, num_samples=20)
    assert called == [(chosen, budget)]
    assert posterior.method == chosen
    assert posterior.diagnosis.chosen is not None
    assert posterior.diagnosis.chosen.startswith(f"{chosen}: ")
    assert why in posterior.diagnosis.chosen


def test_the_exact_posterior_beyond_20_variables_is_told_what_it_takes_and_refused_by_memory_alone(
    monkeypatch,
) -> None:
    class Started(Exception):
        pass

    def start(*_):
        raise Started

    monkeypatch.setattr(gd.ExactPosterior, "_infer", start)
    table = np.random.default_rng(0).normal(size=(60, 26))
    needed = estimated_bytes(26)
    monkeypatch.setattr("gflowdag.exact.size.total_memory", lambda: needed)
    with (
        pytest.warns(UserWarning, match=r"over 26 variables takes about 31 minutes .* GiB"),
        pytest.raises(Started),
    ):
        gd.fit(table, method="exact")
    monkeypatch.setattr("gflowdag.exact.size.total_memory", lambda: needed - 1)
    with pytest.raises(TooLargeError, match=r"26 variables .* more memory than this machine has"):
        gd.fit(table, method="exact")


def test_auto_leaves_the_exact_posterior_where_the_machine_has_no_memory_for_it(monkeypatch) -> None:
    from gflowdag.estimators.cost import automatic_choice
    from gflowdag.estimators.method import Problem

    monkeypatch.setattr("gflowdag.estimators.method.total_memory", lambda: 1 << 30)
    assert automatic_choice(Problem(20), 100)[0] == "exact"
    assert automatic_choice(Problem(22), 100)[0] == "parent-set-mcmc"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_samples": 0}, "num_samples must be 1 or more, got 0"),
        ({"knowledge": {"forbidden": [("X1", "X2")]}}, "must be a Knowledge object, not dict"),
    ],
)
def test_mistakes_of_every_method_are_told_in_words(frame, options, message: str) -> None:
    with pytest.raises(GFlowDAGError, match=message):
        gd.fit(frame, **options)


def test_fit_takes_the_remedies_that_its_messages_name(frame) -> None:
    with_gap = frame.copy()
    with_gap.iloc[0, 0] = np.nan
    with pytest.raises(GFlowDAGError, match="missing='drop'"):
        gd.fit(with_gap, missing="error")
    assert gd.fit(with_gap, missing="drop").log_evidence == gd.fit(frame.iloc[1:]).log_evidence
    levels = gd.fit(frame, discretize="quantile", bins=2)
    assert (
        levels.log_evidence
        == gd.fit(gd.Dataset.from_frame(frame, discretize="quantile", bins=2)).log_evidence
    )
    with pytest.raises(GFlowDAGError, match="read already: give missing"):
        gd.fit(gd.Dataset.from_frame(frame), missing="drop")


def test_the_answer_does_not_depend_on_the_users_jax_settings(answers) -> None:
    command = [sys.executable, "-c", _FIT.format(methods=PROGRAMS, package=gd.__file__)]
    tests = [Path(__file__).parent, Path(fork_server.__file__).parent]
    folders = [*tests, Path(gd.__file__).parent.parent]  # the package that is tested here
    environment = {"JAX_ENABLE_X64": "1", "PYTHONPATH": os.pathsep.join(map(str, folders))}
    program = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=fork_server.LONGEST,
    )
    assert program.returncode == 0, program.stderr
    assert not jax.config.read("jax_enable_x64")  # here
    expected = [line for method in PROGRAMS for line in told(method, answers(method))]
    assert program.stdout.splitlines() == expected


def test_a_fit_in_a_thread_is_the_same_fit(frame, answers) -> None:
    found = {}

    def work() -> None:
        found["post"] = tiny("mc3").fit(frame).posterior_

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found["post"].samples, answers("mc3").samples)


@pytest.mark.parametrize("method", REGISTRY)
def test_every_posterior_survives_its_file(method: str, answers, tmp_path) -> None:
    post = answers(method)
    post.save(tmp_path / "posterior.npz")
    again = gd.Posterior.load(tmp_path / "posterior.npz")
    np.testing.assert_array_equal(again.edge_probabilities(), post.edge_probabilities())
    assert again.diagnostics()["verdict"] == post.diagnostics()["verdict"]
    assert again.report(tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [("samples", "num_samples"), ("discretise", "discretize"), ("intervention", "interventions")],
)
def test_an_option_that_the_method_does_not_have_is_named(misspelt: str, meant: str, frame) -> None:
    with pytest.raises(GFlowDAGError, match=rf"mc3 has no option '{misspelt}': did you mean {meant}\?"):
        gd.fit(frame, method="mc3", **{misspelt: 5})


@pytest.mark.parametrize(
    ("named", "where"),
    [
        ("alpha_w", "score=BGe(alpha_w=...)"),
        ("ess", "score=BDeu(ess=...)"),
        ("deviation", "score=GeneralizedLinear(deviation=...)"),
        ("max_parents", "knowledge=Knowledge(max_parents=...)"),
    ],
)
def test_a_parameter_of_the_score_or_of_the_knowledge_is_told_where_it_belongs(
    named: str, where: str, frame
) -> None:
    with pytest.raises(GFlowDAGError, match=re.escape(where)):
        gd.fit(frame, **{named: 2})
