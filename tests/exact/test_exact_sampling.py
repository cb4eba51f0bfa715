"""Independent samples and the best DAG against the exact posterior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare
from slow_exact import graph_log_scores, random_table

from gflowdag.errors import KnowledgeError
from gflowdag.exact import map_graph, posterior, sample
from gflowdag.graph.bits import expand, graph_keys
from gflowdag.graph.closure import is_acyclic
from gflowdag.graph.enumeration import all_dags


@pytest.mark.parametrize(
    "table",
    [
        random_table(3, np.random.default_rng(0)),
        random_table(4, np.random.default_rng(1), scale=1.0),
        random_table(4, np.random.default_rng(2), forbidden=0.4),
        random_table(4, np.random.default_rng(3), scale=1.0) + np.array([[0.0], [-3e4], [2e4], [0.0]]),
    ],
    ids=["three nodes", "four nodes", "forbidden sets", "far apart"],
)
def test_samples_follow_the_posterior_over_all_dags(table):
    graphs = all_dags(len(table))
    scores = graph_log_scores(table, graphs)
    probability = np.exp(scores - scores.max())
    probability /= probability.sum()
    n = 50_000
    position = {key: k for k, key in enumerate(graph_keys(graphs))}
    drawn = [position[key] for key in graph_keys(sample(table, n, np.random.default_rng(11)))]
    counts = np.bincount(drawn, minlength=len(graphs))
    assert counts[probability == 0].sum() == 0
    common = n * probability > 5  # the rest is one class, as the χ² approximation asks
    observed = np.append(counts[common], counts[~common].sum())
    expected = n * np.append(probability[common], probability[~common].sum())
    kept = expected > 0
    assert (
        chisquare(observed[kept], expected[kept]).pvalue > 1e-3
    )  # fixed seed: one in a thousand by bad luck


def test_edges_and_scores_of_samples_agree_with_the_marginals_at_nine_nodes():
    table = random_table(9, np.random.default_rng(4), scale=3.0, penalty=1.0, forbidden=0.2)
    exact = posterior(table)
    n = 20_000
    graphs = sample(table, n, np.random.default_rng(5), exact=exact)
    assert is_acyclic(graphs).all()
    assert np.isfinite(graph_log_scores(table, graphs)).all()
    p = exact.edge_probabilities
    error = np.abs(graphs.mean(axis=0) - p) / np.sqrt(p * (1 - p) / n + 1e-9)
    assert error.max() < 4.5  # standard errors; 72 edges exceed it by chance once in 2000


def test_the_same_seed_gives_the_same_samples():
    table = random_table(6, np.random.default_rng(6))
    first, second = (sample(table, 50, np.random.default_rng(9)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert (first != sample(table, 50, np.random.default_rng(10))).any()


def test_required_edges_are_in_every_sample():
    table = random_table(6, np.random.default_rng(8))
    table[3, expand(np.arange(32), 3) & 0b000101 != 0b000101] = -np.inf  # 0 → 3 and 2 → 3
    graphs = sample(table, 500, np.random.default_rng(0))
    assert graphs[:, [0, 2], 3].all()
    best, _ = map_graph(table)
    assert best[[0, 2], 3].all()


@pytest.mark.parametrize("seed", range(4))
def test_the_best_graph_is_the_best_of_all_dags(seed):
    table = random_table(4, np.random.default_rng(seed), forbidden=0.3 * (seed % 2))
    graphs = all_dags(4)
    scores = graph_log_scores(table, graphs)
    graph, log_score = map_graph(table)
    np.testing.assert_array_equal(graph, graphs[scores.argmax()])
    assert log_score == pytest.approx(scores.max(), abs=1e-12)


def test_no_sample_beats_the_best_graph():
    table = random_table(10, np.random.default_rng(12))
    graph, log_score = map_graph(table)
    assert is_acyclic(graph)
    assert graph_log_scores(table, graph[None])[0] == pytest.approx(log_score, abs=1e-11)
    graphs = sample(table, 2000, np.random.default_rng(13))
    assert graph_log_scores(table, graphs).max() <= log_score + 1e-11


def test_the_best_graph_of_nothing_is_refused():
    with pytest.raises(KnowledgeError, match="no DAG is allowed"):
        map_graph(np.full((2, 2), -np.inf))
