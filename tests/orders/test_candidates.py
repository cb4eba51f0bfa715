"""Candidate parents: which are chosen, how their subsets score, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest
from score_problems import continuous, discrete

from gflowdag.data import Dataset, Knowledge
from gflowdag.errors import ScoreError
from gflowdag.orders.candidates import candidate_table, dense_candidates
from gflowdag.runtime.deadline import Deadline
from gflowdag.score import make_score


def parent_sets(candidates, d):
    bits = np.arange(1 << len(candidates))[:, None] >> np.arange(len(candidates)) & 1
    sets = np.zeros((len(bits), d), bool)
    sets[:, candidates] = bits
    return sets


@pytest.mark.parametrize("make_data", [continuous, discrete])
def test_subsets_and_outsiders_have_their_local_scores(make_data):
    score = make_score(
        make_data(d=7, interventions=True), prior="fair", knowledge=Knowledge(forbidden=[("X1", "X3")])
    )
    table = candidate_table(score, 3)
    for node in range(7):
        sets = parent_sets(table.candidates[node], 7)
        np.testing.assert_allclose(table.scores[node], score.local(node, sets), atol=1e-9)
        outsiders = np.setdiff1d(np.arange(7), [*table.candidates[node], node])
        np.testing.assert_allclose(
            table.singles[node, outsiders], score.local(node, np.eye(7, dtype=bool)[outsiders]), atol=1e-9
        )
        assert (table.singles[node, [*table.candidates[node], node]] == -np.inf).all()


def test_with_every_node_a_candidate_the_table_is_the_dense_one():
    score = make_score(continuous())
    table, dense = candidate_table(score, 4), dense_candidates(score.dense_table())
    np.testing.assert_array_equal(table.candidates, dense.candidates)
    np.testing.assert_allclose(table.scores, dense.scores, atol=1e-9)


def test_parents_that_matter_only_together_are_found():
    """Two causes that cancel: neither helps alone, so that a ranking of single parents misses one of them."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(500, 20))
    values[:, 1] = values[:, 0] + 0.1 * values[:, 1]
    values[:, 2] = values[:, 0] - values[:, 1] + 0.02 * rng.normal(size=500)
    table = candidate_table(make_score(Dataset.from_array(values)), 3)
    assert {0, 1} <= set(table.candidates[2])


def test_required_parents_are_candidates_and_forbidden_ones_only_if_nothing_else_is_left():
    knowledge = Knowledge(required=[("X5", "X1"), ("X6", "X1")], forbidden=[("X2", "X1")])
    score = make_score(continuous(d=6), knowledge=knowledge)
    table = candidate_table(score, 3)
    assert {4, 5} <= set(table.candidates[0])
    assert 1 not in table.candidates[0]
    with pytest.raises(ScoreError, match="required"):
        candidate_table(score, 1)
    assert candidate_table(score, 5).scores.shape == (6, 32)


class Left(Deadline):
    """A deadline with the same time left whenever it is asked."""

    @property
    def seconds_left(self) -> float:
        return self.moment


def test_where_time_is_short_nodes_have_fewer_candidates_the_likeliest_ones():
    score = make_score(discrete(d=13, n=60))
    whole = candidate_table(score, 12)
    assert candidate_table(score, 12, deadline=Left(1e9)).scores.shape == whole.scores.shape
    short = candidate_table(score, 12, deadline=Left(0.0))
    assert short.scores.shape == (13, 1 << 10)
    np.testing.assert_array_equal(short.candidates, candidate_table(score, 10).candidates)
    np.testing.assert_allclose(
        short.scores[4], score.local(4, parent_sets(short.candidates[4], 13)), atol=1e-9
    )
