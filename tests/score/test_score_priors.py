"""Structure priors against their definitions."""

from __future__ import annotations

from math import comb, log

import numpy as np
import pytest
from score_problems import continuous, plain_score

from gflowdag.errors import ScoreError
from gflowdag.score import EdgePrior, ErdosRenyiPrior, FairPrior, UniformPrior

K = np.arange(6)


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        (UniformPrior(), np.zeros(6)),
        (ErdosRenyiPrior(edges_per_node=0.5), K * log(0.2) + (5 - K) * log(0.8)),
        (EdgePrior(beta=0.3), K * log(0.3)),
        (FairPrior(), [-log(comb(5, k)) for k in K]),
    ],
)
def test_log_weights_are_those_of_the_definition(prior, expected):
    np.testing.assert_allclose(prior.log_weights(6), expected, atol=1e-12)


@pytest.mark.parametrize(
    "prior", [ErdosRenyiPrior(2.5), ErdosRenyiPrior(0.0), EdgePrior(0.0), EdgePrior(np.inf)]
)
def test_parameters_out_of_range_are_refused(prior):
    with pytest.raises(ScoreError):
        plain_score(continuous(d=6), prior=prior)


class Own:
    """A prior of one's own that gives what it is told to."""

    def __init__(self, weights):
        self.weights = weights

    def log_weights(self, d):
        return self.weights


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.zeros(5), r"Own.log_weights\(6\) gave an array of shape \(5,\): .* from 0 to 5, shape \(6,\)"),
        (np.zeros((6, 6)), r"shape \(6, 6\)"),
        (-1.0, r"shape \(\)"),
        ([0, 0, 0, 0, -np.inf, -np.inf], "gave -inf for 4 parents: .*max_parents"),
        ([0, np.nan, 0, 0, 0, 0], "gave nan for 1 parents"),
        (None, r"shape \(\)"),
        (["a"] * 6, "must give 6 numbers"),
    ],
)
def test_an_own_prior_that_breaks_its_promise_is_refused_with_a_sentence(weights, sentence):
    with pytest.raises(ScoreError, match=sentence):
        plain_score(continuous(d=6), prior=Own(weights))


def test_an_own_prior_may_give_a_list_of_integers():
    assert plain_score(continuous(d=3), prior=Own([0, -1, -2])).prior_log_weights.dtype == np.float64


def test_unknown_priors_are_refused_by_name():
    with pytest.raises(ScoreError, match="uniform, erdos-renyi, edge, fair"):
        plain_score(continuous(), prior="flat")
    with pytest.raises(ScoreError):
        plain_score(continuous(), prior=3)


@pytest.mark.parametrize("name", ["uniform", "edge", "fair"])
def test_the_prior_is_added_once_for_each_node(name):
    score, plain = plain_score(continuous(), prior=name), plain_score(continuous())
    chain = np.eye(5, k=1, dtype=bool)[None]
    weights = score.prior_log_weights
    expected = weights[0] + 4 * weights[1]
    assert (score.log_score(chain) - plain.log_score(chain))[0] == pytest.approx(expected)
    assert score.log_prior(chain)[0] == pytest.approx(expected)
