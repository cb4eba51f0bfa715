"""Tables from a score's own prior. That its probabilities are frequencies, the calibration tests say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import gflowdag as gd
from gflowdag import simulate
from gflowdag.errors import DataError, OptionError, ScoreError
from gflowdag.score.logistic import LEAST_ROWS
from gflowdag.score.prior_draws import draw_table

CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])


def test_parameters_of_a_regression_follow_the_normal_wishart_prior():
    score = gd.BGe(alpha_mu=2.0, alpha_w=7.0, scale=3.0, prior_mean=1.5)
    rng = np.random.default_rng(0)
    nets = [
        simulate.from_prior(num_rows=0, score=score, graph=CHAIN, random_state=rng).network
        for _ in range(1000)
    ]
    variance = np.array([net.deviations[1][0] ** 2 for net in nets])
    intercept, slope = np.array([net.coefficients[1][0, 0] for net in nets]).T
    unit = slope / np.sqrt(variance / 3.0), (intercept + 1.5 * slope - 1.5) / np.sqrt(variance / 2.0)
    assert stats.kstest(3.0 / variance, stats.chi2(7 - 3 + 1 + 1).cdf).pvalue > 0.001
    for values in unit:
        assert stats.kstest(values, "norm").pvalue > 0.001


def test_the_evidence_is_how_often_a_table_comes():
    """Three rows of two binary columns have 64 tables: a frequency each, under one size and under several."""
    graph = np.array([[0, 1], [0, 0]], bool)
    codes = np.array(np.meshgrid(*[[0, 1]] * 6)).reshape(6, -1).T.reshape(-1, 3, 2)
    for ess in (2.0, (1.0, 4.0, 16.0)):
        score, rng = gd.BDeu(ess=ess), np.random.default_rng(1)
        levels = np.array([2, 2])
        drawn = [draw_table(graph, 3, levels, score, rng)[1].ravel() for _ in range(4000)]
        keys = np.array(drawn, int) @ 2 ** np.arange(6)
        found = np.bincount(keys, minlength=64)[(codes.reshape(-1, 6) @ 2 ** np.arange(6))]
        expected = 4000 * np.array([probability(table, np.atleast_1d(ess)) for table in codes])
        assert expected.sum() == pytest.approx(4000)
        statistic = ((found - expected) ** 2 / expected).sum()
        assert statistic < 63 + 5 * np.sqrt(126)  # χ², five deviations


def probability(table: np.ndarray, sizes: np.ndarray) -> float:
    """Of a table under X1 → X2: a complete graph, on which the size is one random number."""
    return float(np.mean([urn(table[:, :1], size) * conditional(table, size) for size in sizes]))


def urn(columns: np.ndarray, size: float) -> float:
    """Rows one after the other, each as likely as the rows before and the prior make it."""
    cells, value = 2 ** columns.shape[1], 1.0
    for row in range(len(columns)):
        same = (columns[:row] == columns[row]).all(axis=1).sum()
        value *= (same + size / cells) / (row + size)
    return value


def conditional(table: np.ndarray, size: float) -> float:
    return urn(table, size) / urn(table[:, :1], size)


def test_graphs_keep_to_the_limit_and_to_the_kinds():
    rng = np.random.default_rng(0)
    for _ in range(40):
        graph = simulate.from_prior(6, 20, num_levels=[2, 3, 4, 2, 3, 4], random_state=rng).truth.to_numpy()
        cells = np.where(graph, np.array([2, 3, 4, 2, 3, 4])[:, None], 1).prod(axis=0) * [2, 3, 4, 2, 3, 4]
        assert ((cells <= 20) | (graph.sum(axis=0) <= 1)).all()
        within_cells = simulate.from_prior(
            4, 20, score="conditional-gaussian", num_levels=[2, 0, 0, 3], random_state=rng
        )
        mixed = within_cells.truth.to_numpy()
        assert not mixed[np.ix_([1, 2], [0, 3])].any()


def test_a_table_has_its_kinds_names_and_held_out_rows():
    drawn = simulate.from_prior(3, 30, num_levels=[2, 0, 3], held_out=7, random_state=0)
    assert [str(kind) for kind in drawn.frame.dtypes] == ["category", "float64", "category"]
    assert (len(drawn.frame), len(drawn.held_out)) == (30, 7)
    again = simulate.from_prior(3, 30, num_levels=[2, 0, 3], held_out=7, random_state=0)
    assert drawn.frame.equals(again.frame)


def test_levels_shift_a_mean_or_have_regressions_of_their_own_and_few_rows_have_no_slope():
    graph = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    shared, num_tables = 0, 400
    for seed in range(num_tables):
        network = simulate.from_prior(3, 50, num_levels=[2, 0, 0], graph=graph, random_state=seed).network
        shared += bool(np.ptp(network.coefficients[2][:, 0, 1]) == 0)
        assert np.ptp(network.deviations[2]) == 0
    assert 0.4 < shared / num_tables < 0.6  # four errors of a fair coin
    for seed in range(20):
        drawn = simulate.from_prior(3, 60, num_levels=[2, 0, 2], graph=graph, random_state=seed)
        rows = drawn.frame["X1"].value_counts().reindex(range(2), fill_value=0)
        slopes = drawn.network.coefficients[2][:, :, 1]
        assert ((slopes == 0).all(axis=1) == (rows < LEAST_ROWS)).all()


def test_a_seed_that_is_none_is_refused_in_a_sentence():
    with pytest.raises(OptionError, match="random_state must be a whole number, 0 or more"):
        simulate.from_prior(3, 10, random_state=-1)


def test_what_has_no_prior_to_draw_from_is_refused():
    with pytest.raises(ScoreError, match="no prior on the parameters"):
        simulate.from_prior(3, 30, score="degenerate-gaussian")
    with pytest.raises(ScoreError, match="no prior on the parameters"):
        simulate.from_prior(3, 30, score="bge", num_levels=2)
    with pytest.raises(ScoreError, match="continuous parent"):
        simulate.from_prior(score="conditional-gaussian", num_levels=[0, 2, 2], graph=CHAIN)
    with pytest.raises(DataError, match="num_levels"):
        simulate.from_prior(3, 30, num_levels=1)
