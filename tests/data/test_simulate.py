"""Simulated data have the graph, the weights and the noise that they were asked for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gflowdag as gd
from gflowdag.data import Dataset
from gflowdag.errors import DataError
from gflowdag.graph import is_acyclic

simulate = gd.simulate
CHAIN = pd.DataFrame(
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]], index=["a", "b", "c"], columns=["a", "b", "c"], dtype=bool
)


@pytest.mark.parametrize("simulator", [simulate.linear_gaussian, simulate.discrete, simulate.from_prior])
def test_more_variables_than_any_machine_holds_are_refused_at_once(simulator):
    with pytest.raises(DataError, match="at most 100,000 variables"):
        simulator(num_variables=10**9)


def test_least_squares_recovers_weights_and_noise_of_a_linear_network():
    simulation = simulate.linear_gaussian(8, 20_000, edges_per_node=2, random_state=0)
    values = simulation.frame.to_numpy()
    for target, parents in enumerate(simulation.truth.to_numpy().T):
        design = values[:, parents]
        fitted = np.linalg.lstsq(design, values[:, target])[0]
        weights = simulation.weights.to_numpy()[parents, target]
        deviations = np.sqrt(0.01 * np.diag(np.linalg.inv(design.T @ design)))
        assert (np.abs(fitted - weights) < 4.5 * deviations).all()  # 16 weights: 1e-4 by chance
        residual = values[:, target] - design @ weights
        assert abs(residual.mean()) < 4.5 * 0.1 / np.sqrt(20_000)
        # The variance of 20,000 squares of normals has a relative deviation of √(2/20,000) = 1 %.
        assert residual.var() == pytest.approx(0.01, rel=0.045)


def test_weights_are_standard_normal_and_graphs_have_the_expected_size():
    weights, sizes = [], []
    for seed in range(60):
        simulation = simulate.linear_gaussian(20, 2, edges_per_node=2, random_state=seed)
        edges = simulation.truth.to_numpy()
        assert is_acyclic(edges)
        assert not simulation.weights.to_numpy()[~edges].any()
        weights.append(simulation.weights.to_numpy()[edges])
        sizes.append(edges.sum())
    weights = np.concatenate(weights)
    # About 2400 weights: the mean deviates by 0.02, the variance by 0.03; 60 graphs: the size by 0.72.
    assert abs(weights.mean()) < 0.09
    assert weights.var() == pytest.approx(1.0, abs=0.13)
    assert np.mean(sizes) == pytest.approx(40, abs=3.2)


def test_weight_scale_and_noise_variance_are_respected():
    simulation = simulate.linear_gaussian(
        graph=CHAIN, num_rows=20_000, weight_scale=0.001, noise_variance=4.0, random_state=3
    )
    assert simulation.frame.columns.tolist() == ["a", "b", "c"]
    assert np.abs(simulation.weights.to_numpy()).max() < 0.01
    np.testing.assert_allclose(simulation.frame.var(), 4.0, rtol=0.045)  # 4.5 deviations of √(2/20,000)


def test_perfect_interventions_cut_the_variable_off_from_its_parents():
    simulation = simulate.linear_gaussian(
        graph=CHAIN, num_rows=10, interventions={"b": 20_000}, random_state=4
    )
    assert simulation.intervened.shape == (20_010, 3)
    np.testing.assert_array_equal(simulation.intervened.sum(axis=0), [0, 20_000, 0])
    assert not simulation.intervened[:10].any()
    rows = simulation.frame[simulation.intervened[:, 1]]
    assert abs(np.corrcoef(rows["a"], rows["b"])[0, 1]) < 4.5 / np.sqrt(20_000)
    assert rows["b"].var() == pytest.approx(1.0, rel=0.045)
    slope = np.polyfit(rows["b"], rows["c"], 1)[0]  # the effect on children stays
    deviation = np.sqrt(0.01 * (1 + simulation.weights.loc["a", "c"] ** 2) / 20_000)
    assert abs(slope - simulation.weights.loc["b", "c"]) < 4.5 * deviation
    data = Dataset.from_frame(simulation.frame, interventions=simulation.intervened)
    np.testing.assert_array_equal(data.intervened, simulation.intervened)


def test_frequencies_of_a_discrete_network_are_those_of_its_tables():
    simulation = simulate.discrete(graph=CHAIN, num_rows=40_000, num_levels=[2, 3, 4], random_state=5)
    codes = simulation.frame.astype(int).to_numpy()
    tables = simulation.network.tables
    joint = np.einsum("a,ab,abc->abc", *tables)
    counts = np.zeros((2, 3, 4))
    np.add.at(counts, tuple(codes.T), 1)
    statistic = ((counts - 40_000 * joint) ** 2 / (40_000 * joint)).sum()
    assert statistic < 23 + 5 * np.sqrt(46)  # χ² with 23 degrees of freedom, five deviations


def test_discrete_interventions_are_uniform_whatever_the_parents():
    simulation = simulate.discrete(
        graph=CHAIN, num_rows=0, num_levels=2, concentration=0.1, interventions={"c": 10_000}, random_state=6
    )
    codes = simulation.frame.astype(int)
    means = codes.groupby(["a", "b"])["c"].agg(["mean", "size"])
    assert (np.abs(means["mean"] - 0.5) < 2.5 / np.sqrt(means["size"])).all()  # five deviations


def test_all_levels_are_declared_even_where_none_was_drawn():
    simulation = simulate.discrete(3, 4, edges_per_node=0.5, num_levels=9, random_state=0)
    assert all(len(simulation.frame[name].cat.categories) == 9 for name in simulation.frame)


@pytest.mark.parametrize("simulator", [simulate.linear_gaussian, simulate.discrete])
def test_a_seed_reproduces_everything_and_held_out_rows_are_further_rows(simulator):
    options = {"held_out": 7, "interventions": 2}
    first, second = (simulator(5, 20, **options, random_state=11) for _ in range(2))
    pd.testing.assert_frame_equal(first.frame, second.frame)
    pd.testing.assert_frame_equal(first.held_out, second.held_out)
    pd.testing.assert_frame_equal(first.truth, second.truth)
    assert first.frame.shape == (30, 5)
    assert first.held_out.shape == (7, 5)
    other = simulator(5, 20, **options, random_state=12)
    assert not other.frame.equals(first.frame)


def test_scale_free_graphs_have_the_number_of_edges_that_was_asked_for():
    simulation = simulate.linear_gaussian(30, 2, graph="scale-free", edges_per_node=2, random_state=0)
    assert simulation.truth.to_numpy().sum() == 2 * 30 - 3  # the first two nodes lack 2 + 1 parents


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"graph": "tree"}, "'erdos-renyi', 'scale-free'"),
        ({"graph": np.ones((3, 3))}, "cycle"),
        ({"graph": np.zeros((2, 3))}, "square"),
        ({"graph": CHAIN.rename(index={"a": "z"})}, "same names"),
        ({"edges_per_node": 99}, "cannot be expected"),
        ({"noise_variance": 0}, "positive"),
        ({"held_out": -1}, "negative"),
        ({"interventions": {"zz": 3}}, "no variable 'zz'"),
    ],
)
def test_impossible_requests_are_refused(options, message):
    with pytest.raises(DataError, match=message):
        simulate.linear_gaussian(4, 10, **options)
