"""Random DAGs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gflowdag import graph
from gflowdag.errors import DataError


def test_erdos_renyi_has_the_expected_number_of_edges_in_every_direction():
    rng = np.random.default_rng(0)
    graphs = np.stack([graph.erdos_renyi(10, 20, rng) for _ in range(4000)])
    assert graph.is_acyclic(graphs).all()
    edges = graphs.sum(axis=(1, 2))
    # Binomial(45, 4/9): sd 3.33, so the mean of 4000 has sd 0.053; five of them.
    assert abs(edges.mean() - 20) < 0.27
    # Each of the 90 edges has probability 2/9: sd 0.0066; five of them, for the largest of 90.
    assert np.abs(graphs.mean(axis=0)[~np.eye(10, dtype=bool)] - 2 / 9).max() < 0.033


def test_erdos_renyi_of_all_pairs_is_complete_and_more_is_refused():
    rng = np.random.default_rng(0)
    assert graph.erdos_renyi(6, 15, rng).sum() == 15
    assert graph.erdos_renyi(6, 0, rng).sum() == 0
    with pytest.raises(DataError, match="between 0 and 15"):
        graph.erdos_renyi(6, 15.5, rng)


def test_scale_free_graphs_have_bounded_parents_and_hubs():
    rng = np.random.default_rng(1)
    graphs = np.stack([graph.scale_free(50, 2, rng) for _ in range(50)])
    assert graph.is_acyclic(graphs).all()
    assert (graphs.sum(axis=(1, 2)) == 2 * 50 - 3).all()
    assert graphs.sum(axis=1).max() == 2
    random = np.stack([graph.erdos_renyi(50, 97, rng) for _ in range(50)])
    hub, usual = (batch.sum(axis=2).max(axis=1).mean() for batch in (graphs, random))
    assert hub > 1.3 * usual
    with pytest.raises(DataError, match="at least one parent"):
        graph.scale_free(5, 0, rng)


FACTORS = np.log([[1, 5 / 3], [1 / 3, 1 / 4]])


@pytest.mark.parametrize(
    ("log_weights", "groups"),
    [
        ([0.0, 0.0, 0.0, 0.0], [0, 0, 0, 0]),
        ([0.5, -1.2, 0.3, -np.inf], [0, 0, 0, 0]),
        ([0.0, -0.3, 0.2, -1.0], [0, 1, 1, 0]),
        ([0.0, -0.3, 0.2, -np.inf], [1, 1, 1, 1]),
    ],
)
def test_graphs_of_a_structure_prior_come_as_often_as_they_weigh(log_weights, groups):
    every, group = graph.all_dags(4), np.array(groups)
    of_edges = (every * FACTORS[group[:, None], group]).sum(axis=(1, 2))
    weight = np.exp(np.array(log_weights)[every.sum(axis=1)].sum(axis=1) + of_edges)
    expected = 8_000 * weight / weight.sum()
    drawn = graph.by_parent_counts(
        log_weights, 8_000, np.random.default_rng(0), groups=groups, log_factors=FACTORS
    )
    index = {key: place for place, key in enumerate(graph.graph_keys(every).tolist())}
    found = np.bincount([index[key] for key in graph.graph_keys(drawn).tolist()], minlength=len(every))
    assert found[expected == 0].sum() == 0
    possible = expected > 0
    statistic = ((found - expected)[possible] ** 2 / expected[possible]).sum()
    freedom = possible.sum() - 1
    assert statistic < freedom + 5 * np.sqrt(2 * freedom)  # χ², five deviations


def test_graphs_of_a_structure_prior_can_be_large():
    d = 60
    fair = -np.array([math.log(math.comb(d - 1, k)) for k in range(d)])
    sparse = graph.by_parent_counts(np.where(np.arange(d) < 4, fair, -np.inf), 3, np.random.default_rng(0))
    assert graph.is_acyclic(sparse).all()
    assert sparse.sum(axis=1).max() == 3
    assert (graph.by_parent_counts([0.0], 2, np.random.default_rng(0)) == 0).all()


def test_the_generator_alone_decides():
    for make in (lambda rng: graph.erdos_renyi(8, 10, rng), lambda rng: graph.scale_free(8, 2, rng)):
        np.testing.assert_array_equal(make(np.random.default_rng(3)), make(np.random.default_rng(3)))
