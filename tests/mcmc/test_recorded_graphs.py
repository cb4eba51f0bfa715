"""Graphs of chains over all DAGs, for a policy to learn from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

import gflowdag as gd
from gflowdag.data import Dataset
from gflowdag.graph import all_dags
from gflowdag.graph.closure import is_acyclic
from gflowdag.mcmc.recorded_graphs import recorded_graphs
from gflowdag.runtime.deadline import Deadline
from gflowdag.score import Score, make_score


@pytest.fixture(scope="module")
def score() -> Score:
    return make_score(Dataset.as_dataset(gd.simulate.linear_gaussian(4, 30, random_state=3).frame))


def test_as_many_graphs_as_are_wanted_and_of_the_posterior(score):
    found = recorded_graphs(score, seed=0, num_chains=4, num_graphs=8000, max_sweeps=400)
    assert found.graphs.shape == (4, 2000, 4, 4)
    assert found.is_settled
    graphs = all_dags(4)
    expected = np.tensordot(softmax(score.log_score(graphs)), graphs, 1)
    np.testing.assert_allclose(found.graphs.mean(axis=(0, 1)), expected, atol=0.05)


def test_where_time_is_over_there_are_fewer_and_they_say_so(score):
    found = recorded_graphs(
        score, seed=0, num_chains=4, num_graphs=8000, max_sweeps=10**6, deadline=Deadline.after(0.0)
    )
    assert not found.is_settled
    assert 0 < found.graphs.shape[1] < 2000
    assert is_acyclic(found.graphs.reshape(-1, 4, 4)).all()
