"""Greedy equivalence search: against causal-learn's, against the truth, its pieces against enumeration."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pytest

import gflowdag as gd
from gflowdag.baselines.causal_learn import edge_matrix as edges_of_marks
from gflowdag.data import Dataset
from gflowdag.errors import TooLargeError
from gflowdag.graph.closure import is_acyclic
from gflowdag.graph.enumeration import all_dags
from gflowdag.graph.equivalence import class_members, cpdag, random_member
from gflowdag.graph.random import erdos_renyi
from gflowdag.score import BDeu, BGe, make_score
from gflowdag.search import ges
from gflowdag.search.essential_graph import (
    EssentialGraph,
    adjacencies,
    complete,
    edge_matrix,
    list_cliques,
    reaches,
    successors,
)


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
    bdeu = gd.BDeu(ess=1, cells_per_row=None, edge_factor=1) if discrete else None
    return ges.search(values, discrete=bdeu, max_parents=max_parents, penalty=1.0)


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


@pytest.mark.parametrize(("d", "tables"), [(10, 20), (70, 2)], ids=["10 variables", "more than 64"])
def test_unlimited_data_give_the_class_of_the_truth(d, tables):
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        truth = erdos_renyi(d, 12 * d // 10, rng)
        root = np.linalg.inv(np.eye(d) - random_weights(truth, rng))
        moments = np.concatenate([root, -root])  # 2d rows with exactly the covariance of the network
        # The penalty of ten million rows, so that only what is almost unfaithful could go wrong.
        penalty = (2 * d / np.log(2 * d)) * (np.log(1e7) / 1e7)
        found = ges.search(moments, discrete=None, max_parents=None, penalty=penalty)
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
    with pytest.raises(TooLargeError, match="limit the number of parents"):
        search(factor)
    assert search(factor, max_parents=3).any()


def chain_of(d: int, n: int) -> np.ndarray:
    """Observations of a chain of `d` variables, float64 [n, d]."""
    values = np.random.default_rng(0).normal(size=(n, d))
    for node in range(1, d):
        values[:, node] += values[:, node - 1]
    return values


@pytest.mark.parametrize("discrete", [False, True])
def test_a_score_object_is_searched_by_its_own_local_scores(discrete):
    """A class that GES ends in has no better neighbour that adds or removes one edge of one member."""
    values = chain_of(6, 300)
    data = Dataset.from_array(values > 0, kinds="discrete") if discrete else Dataset.from_array(values)
    unbound = BDeu(ess=2.0) if discrete else BGe(alpha_mu=0.5)
    prior = make_score(data, prior="edge").structure_prior
    found = ges.search_by(data.values, data=data, score=unbound, prior=prior, max_parents=None)
    score = make_score(data, score=unbound, prior="edge")
    members = class_members(found)
    best = score.log_score(members)
    np.testing.assert_allclose(best, best[0])  # score-equivalent scores, and a prior on the edges alone
    for dag in members:
        flips = dag ^ np.eye(36, dtype=bool).reshape(36, 6, 6)
        flips = flips[is_acyclic(flips)]
        assert score.log_score(flips).max() < best[0]


@pytest.mark.parametrize(
    "function",
    [
        ges.gaussian_log_likelihood(random_table(3)),
        lambda sets: ges.of_levels(random_codes(3), gd.BDeu()).log_marginals(0, sets),
    ],
)
def test_members_of_one_class_score_alike(function):
    members = class_members(cpdag(np.triu(np.ones((7, 7), bool), 1) & ~np.eye(7, k=6, dtype=bool)))
    parents = members.swapaxes(1, 2).reshape(-1, 7)
    family = (members | np.eye(7, dtype=bool)).swapaxes(1, 2).reshape(-1, 7)
    scores = (function(family) - function(parents)).reshape(-1, 7).sum(axis=1)
    assert len(scores) > 1000
    np.testing.assert_allclose(scores, scores[0], rtol=1e-12)


def essential(graph: np.ndarray) -> EssentialGraph:
    """A partly directed matrix, rows are sources, as an essential graph."""
    return EssentialGraph((graph & ~graph.T).T.copy(), graph & graph.T)


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
        joined |= joined.T
        core, candidates = {0, 1}, {2, 4, 5, 6}
        expected = {
            frozenset(core.union(extra))
            for size in range(len(candidates) + 1)
            for extra in combinations(sorted(candidates), size)
            if all(joined[a, b] for a, b in combinations(sorted(core.union(extra)), 2))
        }
        for most in (7, 3):
            found = listed(core, candidates, joined, most)
            assert sorted(map(len, found)) == [len(clique) for clique in found]
            assert set(found) == {clique for clique in expected if len(clique) <= most}
            assert len(found) == len(set(found))


def listed(core: set[int], candidates: set[int], adjacent: np.ndarray, most: int) -> list[frozenset[int]]:
    """The cliques as sets, listed after one that is there already and with hardly any room."""
    d = len(adjacent)
    masks = [np.isin(np.arange(d), list(nodes)) for nodes in (core, candidates)]
    found, _, end = list_cliques(*masks, adjacent, most, np.ones((1, d), bool), np.ones((1, d), bool), 1)
    assert found[0].all()
    return [frozenset(np.flatnonzero(clique).tolist()) for clique in found[1:end]]


def test_semi_directed_paths_follow_undirected_edges_and_stop_at_the_blocked():
    graph = np.zeros((5, 5), bool)
    graph[0, 1] = graph[1, 0] = graph[1, 2] = graph[3, 2] = True  # 0 — 1 -> 2 <- 3, and 4 alone
    masks = essential(graph)
    np.testing.assert_array_equal(adjacencies(masks), graph | graph.T)
    next_nodes = successors(masks)
    nothing = np.zeros(5, bool)
    assert reaches(next_nodes, 0, 2, nothing)
    assert not reaches(next_nodes, 0, 2, np.arange(5) == 1)
    assert not reaches(next_nodes, 2, 0, nothing)
    assert not reaches(next_nodes, 0, 3, nothing)
