"""Greedy equivalence search: against causal-learn's, against the truth, its pieces against enumeration."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pytest

from gflowdag.baselines.causal_learn import edge_matrix as edges_of_marks
from gflowdag.errors import TooLargeError
from gflowdag.graph.bits import parent_masks
from gflowdag.graph.enumeration import all_dags
from gflowdag.graph.equivalence import class_members, cpdag, random_member
from gflowdag.graph.random import erdos_renyi
from gflowdag.search import ges
from gflowdag.search.essential_graph import (
    EssentialGraph,
    adjacencies,
    cliques,
    complete,
    edge_matrix,
    reaches,
    successors,
)
from gflowdag.search.greedy_equivalence import greedy_equivalence_search


def random_weights(graph: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Weights [d, d] of 0.5 to 1.5 and either sign."""
    return graph * rng.uniform(0.5, 1.5, graph.shape) * rng.choice([-1, 1], graph.shape)


def random_table(seed: int) -> np.ndarray:
    """Observations [n, d] of a linear-Gaussian network with unit noise."""
    rng = np.random.default_rng(seed)
    d = 4 + seed % 7
    weights = random_weights(erdos_renyi(d, 0.3 * d * (d - 1), rng), rng)
    return rng.normal(size=((30, 100, 300)[seed % 3], d)) @ np.linalg.inv(np.eye(d) - weights)


def random_codes(seed: int) -> np.ndarray:
    """Three levels each; none is missing."""
    codes = np.digitize(random_table(seed), [-0.7, 0.7]).astype(float)
    codes[:3] = np.arange(3)[:, None]
    return codes


def search(values: np.ndarray, *, discrete: bool = False, max_parents: int | None = None) -> np.ndarray:
    return ges.search(values, discrete=discrete, max_parents=max_parents, penalty=1.0)


def judged(values: np.ndarray, score: str) -> dict:
    module = pytest.importorskip("causallearn.search.ScoreBased.GES")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return module.ges(values, score_func=score)


def causal_learn_score(values: np.ndarray, graph: np.ndarray, score: str, parameters: dict | None) -> float:
    """The score that causal-learn gives to one member of a class."""
    local = getattr(pytest.importorskip("causallearn.score.LocalScoreFunction"), score)
    dag = random_member(graph, np.random.default_rng(0))
    return sum(local(values, j, np.flatnonzero(dag[:, j]).tolist(), parameters) for j in range(len(dag)))


def test_continuous_tables_end_in_the_class_and_score_of_causal_learn():
    num_with_deletions = 0
    for seed in range(28):
        values = random_table(seed)
        expected = judged(values, "local_score_BIC")
        found = search(values)
        np.testing.assert_array_equal(found, edges_of_marks(expected["G"].graph), err_msg=f"seed {seed}")
        score = causal_learn_score(values, found, "local_score_BIC", {"lambda_value": 0.5})
        assert score == pytest.approx(expected["score"], abs=1e-8)  # sums of tens of terms of size 1000
        num_with_deletions += bool(expected["update2"])
    assert num_with_deletions >= 3  # the backward phase has work to do


def test_discrete_tables_end_in_the_class_and_score_of_causal_learn():
    for seed in range(6):
        codes = random_codes(seed)
        expected = judged(codes.astype(int), "local_score_BDeu")
        found = search(codes, discrete=True)
        np.testing.assert_array_equal(found, edges_of_marks(expected["G"].graph), err_msg=f"seed {seed}")
        score = causal_learn_score(codes.astype(int), found, "local_score_BDeu", None)
        assert score == pytest.approx(expected["score"], abs=1e-8)


def test_unlimited_data_give_the_class_of_the_truth():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = erdos_renyi(10, 12, rng)
        root = np.linalg.inv(np.eye(10) - random_weights(truth, rng))
        moments = np.concatenate([root, -root])  # 20 rows with exactly the covariance of the network
        # The penalty of ten million rows, so that only what is almost unfaithful could go wrong.
        penalty = (20 / np.log(20)) * (np.log(1e7) / 1e7)
        found = ges.search(moments, discrete=False, max_parents=None, penalty=penalty)
        np.testing.assert_array_equal(found, cpdag(truth), err_msg=f"seed {seed}")


def test_independent_columns_give_the_empty_graph():
    rng = np.random.default_rng(0)
    # The chance that one of 15 pairs gains more than its penalty is 3e-5 at this many rows.
    assert not search(rng.normal(size=(20_000, 6))).any()
    assert not search(rng.integers(3, size=(20_000, 6)).astype(float), discrete=True).any()


def test_the_answer_follows_the_order_and_ignores_the_scale_of_the_columns():
    values = random_table(6)
    found = search(values)
    order = np.random.default_rng(0).permutation(values.shape[1])
    np.testing.assert_array_equal(search(values[:, order]), found[np.ix_(order, order)])
    np.testing.assert_array_equal(search(1e3 + values * np.geomspace(1e-3, 1e3, values.shape[1])), found)


def test_a_constant_column_stays_alone():
    values = random_table(3)
    found = search(values)
    values = np.insert(values, 2, 5.0, axis=1)
    np.testing.assert_array_equal(search(values), np.insert(np.insert(found, 2, 0, axis=0), 2, 0, axis=1))
    codes = np.insert(random_codes(3), 2, 0.0, axis=1)
    found = search(codes, discrete=True)
    assert not (found | found.T)[2].any()


@pytest.mark.parametrize("max_parents", [0, 1, 2])
def test_no_insertion_exceeds_max_parents(max_parents):
    for seed in range(6):
        found = search(random_table(seed), max_parents=max_parents)
        assert (found & ~found.T).sum(axis=0).max() <= max_parents
        assert found.any() == (max_parents > 0)


def test_a_search_that_would_list_too_many_operators_is_refused():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(10_000, 1)) + 0.5 * rng.normal(size=(10_000, 20))  # nothing is independent
    with pytest.raises(TooLargeError, match="set max_parents"):
        search(factor)
    assert search(factor, max_parents=3).any()
    with pytest.raises(TooLargeError, match="62 variables at most, got 63"):
        greedy_equivalence_search(np.zeros_like, 63, edge_weight=-1.0)


@pytest.mark.parametrize(
    "function", [ges.gaussian_log_likelihood(random_table(3)), ges.bdeu(random_codes(3))]
)
def test_members_of_one_class_score_alike(function):
    members = parent_masks(
        class_members(cpdag(np.triu(np.ones((7, 7), bool), 1) & ~np.eye(7, k=6, dtype=bool)))
    )
    bits = np.int64(1) << np.arange(7)
    scores = [(function(parents | bits) - function(parents)).sum() for parents in members]
    assert len(scores) > 1000
    np.testing.assert_allclose(scores, scores[0], rtol=1e-12)


def essential(graph: np.ndarray) -> EssentialGraph:
    """A partly directed matrix as masks."""
    return EssentialGraph(parent_masks(graph & ~graph.T), parent_masks(graph & graph.T))


def test_completion_gives_the_cpdag_of_every_dag_of_four_nodes():
    dags = all_dags(4)
    for dag, expected in zip(dags, cpdag(dags), strict=True):
        np.testing.assert_array_equal(edge_matrix(complete(essential(dag))), expected)
        np.testing.assert_array_equal(edge_matrix(complete(essential(expected))), expected)


def test_a_graph_that_no_dag_extends_is_refused():
    square = np.roll(np.eye(4, dtype=bool), 1, axis=1)
    with pytest.raises(ValueError, match="no DAG extends"):
        complete(essential(square | square.T))  # four undirected edges around a hole


def test_all_cliques_that_hold_the_core_are_listed_once():
    rng = np.random.default_rng(1)
    for _ in range(20):
        joined = np.triu(rng.random((7, 7)) < 0.6, 1)
        adjacent = parent_masks(joined | joined.T)
        core, candidates = {0, 1}, {2, 4, 5, 6}
        expected = {
            sum(1 << node for node in core.union(extra))
            for size in range(len(candidates) + 1)
            for extra in combinations(sorted(candidates), size)
            if all((joined | joined.T)[a, b] for a, b in combinations(sorted(core.union(extra)), 2))
        }
        found = cliques(0b11, 0b1110100, adjacent, 7).tolist()
        assert set(found) == expected
        assert len(found) == len(expected)
        assert set(cliques(0b11, 0b1110100, adjacent, 3)) == {s for s in expected if s.bit_count() <= 3}


def test_semi_directed_paths_follow_undirected_edges_and_stop_at_the_blocked():
    graph = np.zeros((5, 5), bool)
    graph[0, 1] = graph[1, 0] = graph[1, 2] = graph[3, 2] = True  # 0 — 1 -> 2 <- 3, and 4 alone
    masks = essential(graph)
    assert adjacencies(masks).tolist() == [0b10, 0b101, 0b1010, 0b100, 0]
    next_nodes = successors(masks)
    assert reaches(next_nodes, 0, 2, 0)
    assert not reaches(next_nodes, 0, 2, 0b10)
    assert not reaches(next_nodes, 2, 0, 0)
    assert not reaches(next_nodes, 0, 3, 0)
