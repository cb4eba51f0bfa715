"""Simulated networks of both kinds follow their stated model, in both directions."""

from __future__ import annotations

import numpy as np
import pytest

from gflowdag import simulate
from gflowdag.data import Dataset
from gflowdag.errors import DataError

FORK = np.array([[0, 1, 1], [0, 0, 0], [0, 0, 0]])  # X1 → X2, X1 → X3


def test_a_discrete_child_is_a_logistic_regression_on_its_continuous_parent() -> None:
    drawn = simulate.mixed(graph=FORK, num_levels=[0, 2, 3], num_rows=200_000, random_state=1)
    x, y = drawn.frame["X1"].to_numpy(), drawn.frame["X2"].cat.codes.to_numpy()
    (intercept, slope) = drawn.network.coefficients[1][0, 1] - drawn.network.coefficients[1][0, 0]
    for low in (-0.5, 0.0, 0.5):
        near = np.abs(x - (x.mean() + low * x.std())) < 0.02
        expected = 1 / (1 + np.exp(-(intercept + slope * x[near])))
        # Some thousand rows: a standard error below 0.01, taken four times.
        assert abs(y[near].mean() - expected.mean()) < 4 * 0.5 / np.sqrt(near.sum())


def test_a_continuous_child_is_a_regression_in_each_cell() -> None:
    graph = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    drawn = simulate.mixed(graph=graph, num_levels=[2, 0, 0], num_rows=50_000, random_state=2)
    frame = drawn.frame
    for level in (0, 1):
        rows = frame[frame["X1"] == level]
        design = np.column_stack([np.ones(len(rows)), rows["X2"]])
        found, residual, *_ = np.linalg.lstsq(design, rows["X3"])
        np.testing.assert_allclose(found, drawn.network.coefficients[2][level, 0], atol=0.03)
        assert residual[0] / len(rows) == pytest.approx(0.25, rel=0.05)


def test_graphs_have_both_directions_between_the_kinds_and_half_of_each_kind() -> None:
    forward = backward = 0
    for seed in range(20):
        drawn = simulate.mixed(8, 50, edges_per_node=1.5, random_state=seed)
        is_discrete = drawn.network.num_levels > 0
        assert is_discrete.sum() == 4
        truth = drawn.truth.to_numpy()
        forward += truth[np.ix_(is_discrete, ~is_discrete)].sum()
        backward += truth[np.ix_(~is_discrete, is_discrete)].sum()
    assert min(forward, backward) > 20
    assert Dataset.from_frame(simulate.mixed(8, 500, random_state=0).frame).is_mixed


def test_variables_that_are_set_do_not_follow_their_parents() -> None:
    drawn = simulate.mixed(graph=FORK, num_levels=[0, 2, 3], num_rows=0, interventions=9000, random_state=3)
    set_ = drawn.intervened
    x, y = drawn.frame["X1"].to_numpy(), drawn.frame["X3"].cat.codes.to_numpy()
    assert abs(np.bincount(y[set_[:, 2]]) / 9000 - 1 / 3).max() < 0.02  # standard error 0.005
    assert abs(np.corrcoef(x[set_[:, 2]], y[set_[:, 2]])[0, 1]) < 0.04


def test_levels_that_make_no_variable_are_refused() -> None:
    for levels in ([0, 1, 2], [0, 2], [0, -1, 2]):
        with pytest.raises(DataError, match="num_levels must be"):
            simulate.mixed(graph=FORK, num_levels=levels)
