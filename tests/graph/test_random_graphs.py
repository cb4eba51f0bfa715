"""Random DAGs."""

from __future__ import annotations

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


def test_the_generator_alone_decides():
    for make in (lambda rng: graph.erdos_renyi(8, 10, rng), lambda rng: graph.scale_free(8, 2, rng)):
        np.testing.assert_array_equal(make(np.random.default_rng(3)), make(np.random.default_rng(3)))
