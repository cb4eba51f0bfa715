"""Candidate parents: which are chosen, how their subsets score, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest
from score_problems import continuous, discrete

from gflowdag.data import Dataset, Knowledge
from gflowdag.errors import ScoreError
from gflowdag.graph import all_dags
from gflowdag.orders.candidates import candidate_table, dense_candidates
from gflowdag.runtime.deadline import Deadline
from gflowdag.score import make_score
from gflowdag_lab.measurements.order_rows import outsider_odds


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
    assert (table.lost_mass == 0).all()


def test_parents_that_matter_only_together_are_found():
    """Two causes that cancel: neither helps alone, so that a ranking of single parents misses one of them."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(500, 20))
    values[:, 1] = values[:, 0] + 0.1 * values[:, 1]
    values[:, 2] = values[:, 0] - values[:, 1] + 0.02 * rng.normal(size=500)
    table = candidate_table(make_score(Dataset.from_array(values)), 3)
    assert {0, 1} <= set(table.candidates[2])
    assert table.lost_mass[2] < 0.5


def test_required_parents_are_candidates_and_forbidden_ones_only_if_nothing_else_is_left():
    knowledge = Knowledge(required=[("X5", "X1"), ("X6", "X1")], forbidden=[("X2", "X1")])
    score = make_score(continuous(d=6), knowledge=knowledge)
    table = candidate_table(score, 3)
    assert {4, 5} <= set(table.candidates[0])
    assert 1 not in table.candidates[0]
    with pytest.raises(ScoreError, match="required"):
        candidate_table(score, 1)
    assert candidate_table(score, 5).scores.shape == (6, 32)


def test_lost_mass_is_the_share_of_sets_with_an_outsider():
    score = make_score(continuous(d=5))
    table = candidate_table(score, 3)
    for node in range(5):
        (outsider,) = np.setdiff1d(np.arange(5), [*table.candidates[node], node])
        sets = parent_sets(np.delete(np.arange(5), node), 5)
        weights = np.exp(score.local(node, sets))
        lost = sets[:, outsider] & (sets.sum(axis=1) > 1)
        alone = sets[:, outsider] & (sets.sum(axis=1) == 1)
        # The estimate leaves the kept set of the outsider alone out of both sides.
        expected = weights[lost].sum() / weights[~alone].sum()
        assert table.lost_mass[node] == pytest.approx(expected, rel=1e-9)


def test_outsider_odds_count_the_dags_with_one_outsider_more():
    score = make_score(discrete(d=4))
    table = candidate_table(score, 2)
    graphs = all_dags(4)
    outsider_edges = np.zeros((4, 4), bool)
    for node in range(4):
        (outsider,) = np.setdiff1d(np.arange(4), [*table.candidates[node], node])
        outsider_edges[outsider, node] = True
    weights = np.exp(score.log_score(graphs) - score.log_score(graphs).max())
    beside = (graphs & outsider_edges & (graphs.sum(axis=1, keepdims=True) > 1)).sum(axis=(1, 2))
    kept, one_more = beside == 0, beside == 1
    # With no outsider alone either, a DAG with one outsider edge has exactly one DAG that it was made from.
    plain = kept & ~(graphs & outsider_edges).any(axis=(1, 2))
    single = (graphs & outsider_edges).sum(axis=(1, 2)) == 1
    odds = outsider_odds(score, table.candidates, graphs[plain])
    assert weights[plain] @ odds == pytest.approx(weights[one_more & single].sum(), rel=1e-9)


@pytest.mark.filterwarnings("error")
def test_outsiders_that_would_close_a_cycle_count_nothing_however_much_they_gain():
    rng = np.random.default_rng(0)
    cause, twin, other, far = rng.normal(size=(4, 3000))
    twin = cause + 1e-3 * twin  # as parent of its cause it gains more than exp can hold
    values = np.column_stack([cause, twin, other + 0.1 * cause, far])
    score = make_score(Dataset.from_array(values, standardize=False))
    table = dense_candidates(score.dense_table())
    table = table._replace(candidates=np.array([[2, 3], [0, 2], [0, 3], [0, 2]], np.int32))
    graph = np.zeros((1, 4, 4), bool)
    graph[0, [0, 2], [1, 0]] = True  # X3 → X1 → X2
    gain = score.local(0, np.eye(4, dtype=bool)[[1]]) - score.local(0, np.zeros((1, 4), bool))
    assert gain > 1000
    assert np.isfinite(outsider_odds(score, table.candidates, graph)).all()


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
