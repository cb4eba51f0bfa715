"""Gadget against the exact posterior: sumu's sampler on our scores, priors, knowledge and interventions."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

import gflowdag as gd
from gflowdag.baselines import gadget
from gflowdag.data import Dataset, Knowledge
from gflowdag.errors import GFlowDAGError, MissingExtraError
from gflowdag.graph.closure import is_acyclic
from gflowdag.score import make_score

FAST = {"num_runs": 2, "num_temperatures": 1, "burn_in": 300, "num_steps": 6000, "thinning": 2, "n_jobs": 1}


@pytest.fixture(scope="module")
def five_variables() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(2, 60))
    c = a - b + rng.normal(size=60)
    d = 0.5 * c + rng.normal(size=60)
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "d": d, "e": 0.4 * d + 0.3 * a + rng.normal(size=60)})
    return frame.head(20)  # so few rows that the chains move freely


@pytest.mark.parametrize("prior", ["uniform", "fair"])
def test_gadget_samples_the_posterior_under_the_users_prior(five_variables, prior):
    pytest.importorskip("sumu")
    posterior = gd.Gadget(prior=prior, random_state=0, **FAST).fit(five_variables).posterior_
    exact = gd.ExactPosterior(prior=prior, random_state=0).fit(five_variables).posterior_
    error = np.abs(posterior.edge_probabilities().to_numpy() - exact.edge_probabilities().to_numpy())
    # Runs of 20,000 steps are right to 0.03 here; the priors differ by 0.15, sumu's own move by 0.27.
    assert error.max() < 0.07
    assert is_acyclic(posterior.samples).all()
    assert posterior.diagnostics()["num_against_knowledge"] == 0


def test_knowledge_and_interventions_go_through_the_score(five_variables):
    pytest.importorskip("sumu")
    knowledge = Knowledge(required=[("d", "a")], forbidden=[("a", "c")], max_parents=2)
    frame = five_variables.assign(target=["c" if row % 3 == 0 else None for row in range(20)])
    posterior = (
        gd.Gadget(knowledge=knowledge, random_state=0, **FAST).fit(frame, interventions="target").posterior_
    )
    exact = (
        gd.ExactPosterior(knowledge=knowledge, random_state=0).fit(frame, interventions="target").posterior_
    )
    samples = posterior.samples
    assert samples[:, 3, 0].all()
    assert not samples[:, 0, 2].any()
    assert samples.sum(1).max() <= 2
    expected = exact.edge_probabilities().to_numpy()
    np.testing.assert_allclose(posterior.edge_probabilities().to_numpy(), expected, atol=0.1)


def test_every_split_and_merge_is_proposed_alike_and_undone_with_the_stated_probability():
    np.random.seed(0)  # noqa: NPY002  (sumu's moves draw from the global generator)
    start = ({0, 1, 2}, {3})
    proposals = [gadget.split_or_merge(R=start) for _ in range(7000)]
    keys = [tuple(map(frozenset, new)) for new, *_ in proposals]
    counts = {key: keys.count(key) for key in keys}
    # One merge and 2³ − 2 splits of the first part: 1000 expected each, standard deviation 29.
    assert len(counts) == 7
    assert max(abs(count - 1000) for count in counts.values()) < 120
    for new, there, back, changed in proposals[:50]:
        assert there == 1 / 7
        returns = {tuple(map(frozenset, gadget.split_or_merge(R=new)[0])) for _ in range(200)}
        assert tuple(map(frozenset, start)) in returns
        assert back == 1 / len(returns)
        assert {3} <= changed


def test_the_sampler_weighs_graphs_as_we_score_them(five_variables):
    pytest.importorskip("sumu")
    score = make_score(Dataset.from_frame(five_variables), prior="edge")
    options = gadget.Options(2, 2, 2, 50, 50, 1)  # with outsiders
    tables = gadget.tables(score, options)
    run = gadget.sample(tables, options, seed=1)
    np.testing.assert_allclose(run.log_scores, score.log_score(run.graphs), atol=1e-9)  # rounding of sums
    again = gadget.sample(tables, options, seed=1)
    np.testing.assert_array_equal(run.graphs, again.graphs)


def test_all_runs_share_one_table_of_scores(five_variables, monkeypatch):
    pytest.importorskip("sumu")
    score, asked = make_score(Dataset.from_frame(five_variables)), []
    counted = type(score).local
    monkeypatch.setattr(
        type(score), "local", lambda self, node, sets: asked.append(len(sets)) or counted(self, node, sets)
    )
    numbers = []
    for num_runs in (1, 3):
        asked.clear()
        gadget.run(score, gadget.Options(2, 2, 1, 10, 10, 1), num_runs=num_runs, seed=0, n_jobs=1)
        numbers.append(sum(asked))
    assert 0 < numbers[0] == numbers[1]


def test_a_posterior_too_peaked_for_the_sums_of_sumu_is_refused_with_advice(five_variables, monkeypatch):
    from_sumu = pytest.importorskip("sumu.gadget")

    def rounded_away(*_, **__):  # what sumu does on the interventional Sachs data with all ten candidates
        raise UnboundLocalError("contribs")

    monkeypatch.setattr(from_sumu.DAGR, "sample_pset", rounded_away)
    score, options = make_score(Dataset.from_frame(five_variables)), gadget.Options(4, 3, 1, 0, 4, 1)
    with pytest.raises(GFlowDAGError, match=r"parent sets of a .*fewer num_candidates"):
        gadget.sample(gadget.tables(score, options), options, seed=0)


def test_the_restriction_to_candidates_is_told(five_variables):
    pytest.importorskip("sumu")
    options = {**FAST, "burn_in": 0, "num_steps": 20, "num_runs": 1}
    diagnostics = (
        gd.Gadget(num_candidates=2, max_outsiders=1, **options).fit(five_variables).posterior_.diagnostics()
    )
    assert "Only 2 candidate parents of 4" in diagnostics["explanation"]
    assert diagnostics["verdict"] == "not converged"
    with pytest.raises(GFlowDAGError, match="num_candidates"):
        gd.Gadget(num_candidates=0).fit(five_variables)


def test_chains_leave_partitions_that_the_knowledge_forbids(five_variables):
    pytest.importorskip("sumu")
    knowledge = Knowledge(forbidden=[("a", "b")])
    score = make_score(Dataset.from_frame(five_variables[["a", "b", "c", "d"]], knowledge=knowledge))
    options = gadget.Options(3, 3, 1, 100, 20, 1)
    tables = gadget.tables(score, options)
    for seed in range(20):  # one start in nine is forbidden; three of these chains used to stay there
        run = gadget.sample(tables, options, seed)
        assert np.isfinite(score.log_score(run.graphs)).all()


def test_a_restriction_that_may_hide_something_is_not_trusted(five_variables):
    pytest.importorskip("sumu")
    options = {**FAST, "num_runs": 4, "prior": "uniform", "num_steps": 8000, "max_outsiders": 1}
    three = five_variables.iloc[:, ::2]
    verdicts = {
        number: gd.Gadget(num_candidates=number, random_state=0, **options).fit(three).posterior_
        for number in (1, 2)
    }
    judged = {number: posterior.diagnostics()["verdict"] for number, posterior in verdicts.items()}
    assert judged == {1: "unverified", 2: "trusted"}


def test_a_missing_package_names_the_pip_command(five_variables, monkeypatch):
    monkeypatch.setitem(sys.modules, "sumu", None)
    for name in [name for name in sys.modules if name.startswith("sumu.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtraError, match=r'pip install "gflowdag\[gadget\]"'):
        gd.Gadget(**FAST).fit(five_variables)
