"""Hill climbing: where it stops, and what it respects."""

from __future__ import annotations

import numpy as np
from score_problems import continuous, discrete

from gflowdag.data import Knowledge
from gflowdag.graph import all_dags, is_acyclic
from gflowdag.score import make_score
from gflowdag.search.hill_climbing import climb, iterated_climb


def test_it_stops_where_no_single_edge_helps():
    score = make_score(discrete(d=4, n=200), prior="fair")
    graph = climb(score, np.zeros((4, 4), bool))
    graphs = all_dags(4)
    pairs = np.triu_indices(4, 1)
    differs = (graphs != graph)[:, pairs[0], pairs[1]] | (graphs != graph)[:, pairs[1], pairs[0]]
    neighbours = graphs[differs.sum(axis=1) <= 1]  # one pair added, removed or reversed
    # The climb ends at gains below 1e-6.
    assert score.log_score(graph[None])[0] >= score.log_score(neighbours).max() - 1e-6


def test_more_rounds_find_the_best_dag_of_a_small_problem():
    score = make_score(continuous(d=4, n=200))
    graph = iterated_climb(score, np.random.default_rng(0))
    # A best DAG has equivalent ones; only the score is unique.
    np.testing.assert_allclose(score.log_score(graph[None])[0], score.log_score(all_dags(4)).max(), atol=1e-6)


def test_knowledge_holds_on_the_way():
    knowledge = Knowledge(required=[("X5", "X1")], forbidden=[("X1", "X2"), ("X2", "X1")], max_parents=1)
    score = make_score(continuous(), knowledge=knowledge)
    graph = iterated_climb(score, np.random.default_rng(1))
    assert np.isfinite(score.log_score(graph[None])[0])
    assert is_acyclic(graph)
    assert graph[4, 0]
