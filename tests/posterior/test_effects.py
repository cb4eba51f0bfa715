"""Causal effects against known effects, against sampled covariance matrices, and in the user's units."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import invwishart

import gflowdag as gd
from gflowdag.data import simulate
from gflowdag.errors import DataError, ScoreError
from gflowdag.graph import all_dags
from gflowdag.posterior.effects import EffectMixture, total_effects
from gflowdag.posterior.posterior import Posterior
from gflowdag.score import BGe, make_score

NAMES = ("X1", "X2", "X3", "X4")
DIAMOND = np.array([[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=bool)


def true_effects(weights: pd.DataFrame) -> np.ndarray:
    """Sum over all directed paths of the products of their weights, [d, d]."""
    return np.linalg.inv(np.eye(len(weights)) - weights.to_numpy()) - np.eye(len(weights))


def one_graph(graph: np.ndarray, names=NAMES) -> Posterior:
    return Posterior(graph[None], names)


def effect(table: pd.DataFrame, source: str, target: str) -> pd.Series:
    return table[(table.source == source) & (table.target == target)].iloc[0]


def test_effects_of_a_known_graph_are_found_in_original_units():
    drawn = simulate.linear_gaussian(num_rows=20_000, graph=DIAMOND, noise_variance=1.0, random_state=1)
    scale = np.array([1.0, 10.0, 0.1, 1000.0])
    table = total_effects(one_graph(DIAMOND), drawn.frame * scale)
    truth = true_effects(drawn.weights) * scale[None, :] / scale[:, None]
    for row in table.itertuples():
        i, j = NAMES.index(row.source), NAMES.index(row.target)
        # 20,000 rows: standard errors of standardised coefficients are below 0.02, five of them are allowed.
        assert abs(row.mean - truth[i, j]) <= 0.1 * scale[j] / scale[i]
        assert row.probability == (1.0 if DIAMOND[i, j] or (i, j) == (0, 3) else 0.0)


def test_intervals_cover_the_true_effect_as_often_as_they_say():
    covered = []
    for seed in range(60):
        drawn = simulate.linear_gaussian(num_rows=60, graph=DIAMOND, noise_variance=1.0, random_state=seed)
        row = total_effects(one_graph(DIAMOND), drawn.frame, source="X1", target="X4", level=0.8).iloc[0]
        covered.append(row.lower <= true_effects(drawn.weights)[0, 3] <= row.upper)
    # Binomial(60, 0.8) has standard deviation 0.052; three of them.
    assert abs(np.mean(covered) - 0.8) < 0.16


def test_the_coefficient_is_the_regression_of_an_inverse_wishart_covariance():
    drawn = simulate.linear_gaussian(num_rows=12, graph=DIAMOND, noise_variance=1.0, random_state=3)
    data = gd.Dataset.from_frame(drawn.frame, standardize=False)
    row = total_effects(one_graph(DIAMOND), data, source="X2", target="X4", level=0.9).iloc[0]
    bge = BGe().bind(data).normal_wishart
    covariance = invwishart(df=bge.degrees[0] + 4, scale=bge.scatter[0]).rvs(100_000, random_state=0)
    z = [1, 0]  # X2 and its parent X1
    draws = np.linalg.solve(covariance[:, z][:, :, z], covariance[:, z][:, :, [3]])[:, 0, 0]
    # Errors of a 5 % quantile of 100,000 draws are about one percent of the spread.
    assert np.allclose([row.lower, row.upper], np.quantile(draws, [0.05, 0.95]), atol=0.03 * draws.std())
    assert row["mean"] == pytest.approx(np.median(draws), abs=0.03 * draws.std())


def test_confounders_that_are_parents_are_adjusted_for():
    graph = np.zeros((3, 3), dtype=bool)
    graph[0, 1] = graph[0, 2] = True  # X1 causes both; X2 does nothing to X3
    rng = np.random.default_rng(0)
    cause = rng.normal(size=5000)
    frame = pd.DataFrame(
        {"X1": cause, "X2": cause + rng.normal(size=5000), "X3": cause + rng.normal(size=5000)}
    )
    with_edge = graph.copy()
    with_edge[1, 2] = True
    row = total_effects(one_graph(with_edge, frame.columns), frame, source="X2", target="X3").iloc[0]
    assert row.lower <= 0 <= row.upper
    assert abs(row["mean"]) < 0.05  # the plain regression of X3 on X2 has the coefficient 0.5


def test_averaging_over_graphs_mixes_their_effects():
    drawn = simulate.linear_gaussian(num_rows=200, graph=DIAMOND, noise_variance=1.0, random_state=5)
    empty = np.zeros_like(DIAMOND)
    both = Posterior(np.stack([DIAMOND, empty]), NAMES, log_weights=np.log([0.3, 0.7]))
    alone = effect(total_effects(one_graph(DIAMOND), drawn.frame), "X1", "X2")
    mixed = effect(total_effects(both, drawn.frame), "X1", "X2")
    assert mixed.probability == pytest.approx(0.3)
    assert mixed["mean"] == pytest.approx(0.3 * alone["mean"])
    assert mixed.mean_if_present == pytest.approx(alone["mean"])
    assert min(abs(mixed.lower), abs(mixed.upper)) == 0.0  # 70 % of the mass sits at zero


def test_effects_over_the_whole_posterior_find_the_truth():
    drawn = simulate.linear_gaussian(num_rows=3000, graph=DIAMOND, noise_variance=1.0, random_state=1)
    data = gd.Dataset.from_frame(drawn.frame)
    graphs = all_dags(4)
    log_scores = make_score(data).log_score(graphs)
    posterior = Posterior(graphs, NAMES, log_weights=log_scores, log_scores=log_scores)
    table = total_effects(posterior, data, target="X4")
    truth = true_effects(drawn.weights)
    for row in table.itertuples():
        i = NAMES.index(row.source)
        assert row.lower - 0.05 <= truth[i, 3] <= row.upper + 0.05


def test_rows_in_which_the_target_was_set_do_not_count():
    graph = np.array([[0, 1], [0, 0]], dtype=bool)
    rng = np.random.default_rng(0)
    cause = rng.normal(size=4000)
    effect_ = 2 * cause + rng.normal(size=4000)
    effect_[2000:] = rng.normal(size=2000) * 5  # set from outside: no trace of the cause
    intervened = np.zeros((4000, 2), dtype=bool)
    intervened[2000:, 1] = True
    frame = pd.DataFrame({"a": cause, "b": effect_})
    data = gd.Dataset.from_frame(frame, interventions=intervened)
    row = total_effects(one_graph(graph, ("a", "b")), data, source="a").iloc[0]
    assert row["mean"] == pytest.approx(2.0, abs=0.1)  # standard error 1/sqrt(2000) = 0.022
    pooled = total_effects(one_graph(graph, ("a", "b")), frame, source="a").iloc[0]
    assert pooled["mean"] < 1.5
    learnt = gd.fit(frame, method="exact", interventions=intervened, num_samples=50)
    with pytest.raises(DataError, match="same `interventions`"):
        total_effects(learnt, frame)
    same = total_effects(learnt, frame, interventions=intervened, source="a").iloc[0]
    assert same["mean"] == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("num_samples", [2, 300])  # with two, most paths are in none of the samples
def test_the_probability_of_an_effect_is_that_of_a_path(num_samples):
    data = simulate.linear_gaussian(num_variables=3, num_rows=30, random_state=0).frame
    posterior = gd.fit(data, method="exact", num_samples=num_samples)
    paths = posterior.path_probabilities()
    for row in total_effects(posterior, data).itertuples():
        assert row.probability == pytest.approx(paths.loc[row.source, row.target])


def test_a_parameter_that_bge_does_not_have_is_refused():
    data = simulate.linear_gaussian(num_variables=4, num_rows=30, random_state=0).frame
    with pytest.raises(ScoreError, match="alphaw"):
        total_effects(one_graph(DIAMOND, tuple(data.columns)), data, alphaw=9.0)


def test_variables_are_matched_by_name():
    drawn = simulate.linear_gaussian(num_rows=100, graph=DIAMOND, random_state=2)
    posterior = one_graph(DIAMOND)
    pd.testing.assert_frame_equal(
        total_effects(posterior, drawn.frame), total_effects(posterior, drawn.frame[list(NAMES[::-1])])
    )
    with pytest.raises(DataError, match="X4"):
        total_effects(posterior, drawn.frame.drop(columns="X4"))


def test_a_variable_has_no_effect_on_itself():
    data = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 4)), columns=list(NAMES))
    with pytest.raises(DataError, match="both 'X2'"):
        total_effects(one_graph(DIAMOND), data, source="X2", target="X2")
    alone = total_effects(one_graph(np.zeros((1, 1), bool), ("X1",)), data[["X1"]])
    assert alone.empty
    assert "probability" in alone


def test_discrete_data_are_refused():
    drawn = simulate.discrete(num_variables=4, num_rows=50, random_state=0)
    with pytest.raises(ScoreError, match="continuous"):
        total_effects(one_graph(DIAMOND), drawn.frame)


def test_quantiles_step_over_the_mass_at_zero():
    mixture = EffectMixture(np.array([0.5]), np.array([4.0]), np.array([1.0]), np.array([1e6]))
    assert mixture.quantile(0.3) == 0.0
    assert mixture.quantile(0.75) == pytest.approx(4.0, abs=1e-3)  # the median of the upper half
    assert mixture.cdf(mixture.quantile(0.9)) == pytest.approx(0.9)
