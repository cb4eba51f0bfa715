"""Expected information of experiments, against sums over all outcomes and what theory says."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from score_problems import continuous, discrete, random_dags

import gflowdag as gd
from gflowdag.errors import DataError, ScoreError
from gflowdag.graph import all_dags
from gflowdag.posterior.posterior import Posterior
from gflowdag.score import BDeu, BGe, make_score
from gflowdag.score.predictive import draw_rows, log_predictive
from gflowdag.score.rescored import rescored_predictive

PAIR = all_dags(2)


@pytest.fixture(scope="module")
def pair() -> Posterior:
    """Two binary variables; all three graphs, by their scores."""
    rng = np.random.default_rng(0)
    a = rng.integers(2, size=30)
    b = np.where(rng.random(30) < 0.3, 1 - a, a)
    data = gd.Dataset.from_frame(pd.DataFrame({"a": a, "b": b}))
    score = make_score(data, score=BDeu(ess=2.0))
    logs = score.log_score(PAIR)
    return Posterior(PAIR, ("a", "b"), log_weights=logs, parameters=score.likelihood.parameter_posterior)


def _by_all_outcomes(post: Posterior, target: int | None, num_rows: int) -> float:
    """Mutual information of graph and rows, summed over every table of so many binary rows."""
    states = list(product((0, 1), repeat=2))
    tables = np.array(list(product(states, repeat=num_rows)), float)
    logs = log_predictive(post.parameters, post.samples, tables, target)
    p = np.exp(logs) * (1.0 if target is None else 0.5**num_rows)
    assert p.sum(axis=0) == pytest.approx(1)  # a normalised likelihood
    joint = p * post.weights
    return float((joint * np.log(p / joint.sum(axis=1, keepdims=True))).sum())


@pytest.mark.parametrize(("target", "place"), [(None, 0), ("a", 1), ("b", 2)])
def test_the_gain_is_the_mutual_information_of_graph_and_rows(pair, target, place) -> None:
    expected = _by_all_outcomes(pair, None if target is None else pair.names.index(target), 3)
    found = pair.next_experiments(num_rows=3, num_outcomes=4000, random_state=1)
    one = next(one for one in found.experiments if one.target == target)
    assert one.gain == pytest.approx(expected, abs=4 * one.error)
    assert one.error < 0.01


def test_observing_more_tells_nothing_about_graphs_of_one_class(pair) -> None:
    directed = pair.given("a - b")
    found = directed.next_experiments(num_rows=50)
    gains = {one.target: one.gain for one in found.experiments}
    assert gains[None] == pytest.approx(0, abs=1e-9)
    assert min(gains["a"], gains["b"]) > 0.2
    assert found.entropy == pytest.approx(np.log(2), abs=1e-6)
    assert max(gains.values()) <= found.entropy


def test_what_is_known_cannot_be_learnt(pair) -> None:
    found = pair.given("a -> b").next_experiments(num_rows=10, num_outcomes=20)
    assert found.entropy == 0
    assert all(one.gain == 0 for one in found.experiments)


def test_about_a_statement_no_more_is_learnt_than_about_the_graph(pair) -> None:
    of_graph = pair.next_experiments(num_rows=20, num_outcomes=500)
    of_effect = pair.next_experiments(num_rows=20, num_outcomes=500, about="a ~> b")
    for one in of_effect.experiments:
        (other,) = [each for each in of_graph.experiments if each.target == one.target]
        assert one.gain <= other.gain + 1e-9  # the same outcomes: a function of the graph knows less
    assert of_effect.about == "a ~> b"
    p = pair.probability("a ~> b").probability
    assert of_effect.entropy == pytest.approx(-p * np.log(p) - (1 - p) * np.log(1 - p))


def test_an_experiment_on_the_middle_of_a_chain_tells_most() -> None:
    """Of a chain, setting the middle decides both arrows, an end but one of them."""
    rng = np.random.default_rng(3)
    a = rng.normal(size=300)
    b = a + rng.normal(size=300)
    frame = pd.DataFrame({"a": a, "b": b, "c": b + rng.normal(size=300)})
    post = gd.fit(frame, method="exact", num_samples=300, random_state=0)
    found = post.next_experiments(num_rows=200)
    assert found.best.target == "b"
    table = found.table()
    assert table["target"].isna().sum() == 1
    assert list(table["gain"]) == sorted(table["gain"], reverse=True)
    assert found.to_dict()["experiments"][0]["target"] == "b"
    assert "setting b" in found.summary().lower()
    only = post.next_experiments(num_rows=200, targets=["a", "c"])
    assert {one.target for one in only.experiments} == {None, "a", "c"}


def test_impossible_questions_are_refused(pair) -> None:
    with pytest.raises(DataError, match="no variable 'z'"):
        pair.next_experiments(targets=["z"])
    with pytest.raises(DataError, match="num_rows"):
        pair.next_experiments(num_rows=0)
    with pytest.raises(ScoreError, match="with_parameters"):
        Posterior(PAIR, ("a", "b")).next_experiments()


# -- any score: that of all rows less that of those seen -----------------------------------------------------


def test_scoring_anew_is_the_predictive_of_bdeu_in_closed_form() -> None:
    data, score = discrete(4), BDeu(ess=(1.0, 4.0))
    parameters, graphs = score.bind(data).parameter_posterior, random_dags(4, 30)
    for target in (None, 1):
        rows = draw_rows(parameters, graphs[3], 7, target, 5, np.random.default_rng(0))
        closed = log_predictive(parameters, graphs, rows, target)
        anew = rescored_predictive(score, data, graphs, rows, target)
        assert anew == pytest.approx(closed, abs=1e-9)


def test_scoring_anew_is_the_predictive_of_bge_but_for_the_unknown_means() -> None:
    """Of rows whose mean is that of the posterior it differs by a constant of the table."""
    data, score = continuous(4, interventions=True), BGe(alpha_mu=1e-9)
    parameters, graphs = score.bind(data).parameter_posterior, random_dags(4, 30)
    rows = draw_rows(parameters, graphs[3], 6, None, 5, np.random.default_rng(0))
    data = replace(data, values=data.values - data.values.mean(axis=0), intervened=None)
    parameters = score.bind(data).parameter_posterior
    rows -= rows.mean(axis=1, keepdims=True)
    closed = log_predictive(parameters, graphs, rows, None)
    anew = rescored_predictive(score, data, graphs, rows, None)
    difference = anew - closed
    assert difference == pytest.approx(np.broadcast_to(difference[:, :1], closed.shape), abs=1e-6)
    assert np.ptp(anew, axis=1).min() > 1


def test_a_table_of_both_kinds_tells_what_its_discrete_columns_would() -> None:
    """A continuous column that is independent by knowledge changes no gain."""
    codes = discrete(3, n=40).values.astype(int)
    frame = pd.DataFrame(codes, columns=["a", "b", "c"])
    mixed = frame.assign(x=np.random.default_rng(0).normal(size=len(frame)))
    alone = [(one, "x") for one in "abc"] + [("x", one) for one in "abc"]
    asked = {"method": "exact", "discrete": ["a", "b", "c"], "prior": "uniform", "num_samples": 2000}
    known = gd.Knowledge(forbidden=alone)
    posts = [gd.fit(frame, random_state=0, **asked), gd.fit(mixed, random_state=0, knowledge=known, **asked)]
    found = [post.next_experiments(num_rows=10, targets=["b"], num_outcomes=80) for post in posts]
    assert found[0].entropy == pytest.approx(found[1].entropy, abs=0.1)
    for target in (None, "b"):
        one, other = (next(each for each in of.experiments if each.target == target) for of in found)
        assert one.gain == pytest.approx(other.gain, abs=4 * np.hypot(one.error, other.error))
        assert one.gain > 4 * one.error


def test_no_gain_is_larger_than_what_is_open(pair) -> None:
    for seed in range(5):
        found = pair.given("a - b").next_experiments(num_rows=2000, num_outcomes=10, random_state=seed)
        assert all(0 <= one.gain <= found.entropy for one in found.experiments)
