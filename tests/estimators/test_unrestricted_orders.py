"""Order MCMC on candidate parents: what it does not know is weighed, or told."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

import gflowdag as gd
from gflowdag.data import Dataset
from gflowdag.estimators import unrestricted_orders
from gflowdag.estimators.unrestricted_orders import reweighed
from gflowdag.graph import all_dags
from gflowdag.mcmc import order_chains
from gflowdag.orders.problem import edge_probabilities_of_orders, order_problem
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.precision import double_precision
from gflowdag.score import make_score

QUICK = {"num_temperatures": 1, "iterations": 40, "num_chains": 16, "num_records": 8, "random_state": 0}


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    mixing = np.eye(5) + np.triu(np.full((5, 5), 0.6), 1)
    return np.random.default_rng(1).normal(size=(30, 5)) @ mixing


@double_precision
def test_weights_lead_from_candidate_parents_to_all_graphs(table):
    score, graphs = make_score(Dataset.from_array(table), prior="uniform"), all_dags(5)
    problem = order_problem(score, num_candidates=3)
    each = np.array(list(itertools.permutations(range(5))))
    log_weights = order_chains.log_weights(problem, each[None])[0]
    rng = np.random.default_rng(0)
    drawn = rng.choice(len(each), (4, 50_000), p=softmax(log_weights))  # what chains do, without their noise
    found = reweighed(score, problem, each[drawn], log_weights[drawn], 4000, 0, Deadline())
    scores = score.log_score(graphs)
    expected = np.tensordot(np.exp(scores - logsumexp(scores)), graphs, 1)
    raw = np.tensordot(softmax(log_weights), edge_probabilities_of_orders(problem, each), 1)
    assert np.abs(raw - expected).max() > 0.05  # the chains alone are wrong
    assert np.abs(found.edge_probabilities - expected).max() < 0.025
    assert (np.abs(found.edge_probabilities - expected) <= 5 * found.errors + 1e-3).all()
    np.testing.assert_allclose(found.samples.mean(axis=0), expected, atol=0.025 + 5 * 0.5 / np.sqrt(4000))
    assert found.unseen < 0.05
    assert found.outside == 0.0


@pytest.mark.parametrize("vouches", [True, False])
def test_weights_are_used_where_they_vouch_and_told_where_they_do_not(vouches, table, monkeypatch):
    monkeypatch.setattr(unrestricted_orders, "weights_vouch", lambda ess, k: vouches)
    monkeypatch.setattr(unrestricted_orders, "TOLERATED_UNSEEN", 1.0)
    posterior = gd.OrderMCMC(prior="uniform", num_candidates=3, **QUICK).fit(table).posterior_
    diagnosis = posterior.diagnosis
    assert diagnosis["weighted_orders"] == 16 * 8
    if vouches:
        np.testing.assert_array_equal(posterior.marginals, diagnosis.weighted_edge_probabilities)
    else:
        assert diagnosis.verdict == "not converged"
        assert "use parent-set-mcmc" in diagnosis.explanation
        np.testing.assert_array_equal(posterior.marginals, diagnosis.raw_edge_probabilities)


def test_up_to_20_variables_nothing_is_left_out(table):
    diagnosis = gd.OrderMCMC(**QUICK).fit(table).posterior_.diagnosis
    assert diagnosis.raw_edge_probabilities is None
    assert "candidate" not in diagnosis.explanation
