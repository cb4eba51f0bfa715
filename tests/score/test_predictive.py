"""Likelihoods of rows not yet seen are ratios of scores, and simulated rows follow them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gflowdag as gd
from gflowdag.graph import all_dags
from gflowdag.score import BDeu, BGe, make_score
from gflowdag.score.predictive import draw_rows, log_predictive

DAGS = all_dags(3)


def _after(data: gd.Dataset, rows: np.ndarray, target: int | None, score: object) -> np.ndarray:
    """Log likelihood of each graph with the rows, less that without them, by the scores themselves."""
    mask = np.zeros(rows.shape, bool)
    if target is not None:
        mask[:, target] = True
    more = gd.Dataset(data.columns, rows.copy(), mask)
    both = data.concatenate(more)
    return make_score(both, score=score).log_likelihood(DAGS) - make_score(data, score=score).log_likelihood(
        DAGS
    )


@pytest.mark.parametrize("target", [None, 0, 2])
@pytest.mark.parametrize("ess", [2.0, (1.0, 4.0, 16.0)])
def test_discrete_predictives_are_ratios_of_scores(
    target: int | None, ess: float | tuple[float, ...]
) -> None:
    data = gd.Dataset.from_frame(gd.simulate.discrete(3, 60, random_state=0).frame)
    score = BDeu(ess=ess, cells_per_row=None)
    parameters = make_score(data, score=score).likelihood.parameter_posterior
    rows = draw_rows(parameters, DAGS[-1], 15, target, 4, np.random.default_rng(0))
    found = log_predictive(parameters, DAGS, rows, target)
    for k in range(4):
        assert found[k] == pytest.approx(_after(data, rows[k], target, score), abs=1e-8)


@pytest.mark.parametrize("target", [None, 1])
def test_continuous_predictives_are_ratios_of_scores_whose_mean_is_known(target: int | None) -> None:
    """BGe with a prior mean of 1e8 rows knows it; rounding then leaves about eight digits of the scores."""
    frame = gd.simulate.linear_gaussian(3, 40, random_state=1).frame
    data = gd.Dataset.from_frame(frame)
    score = BGe(alpha_mu=1e8, scale=0.5)
    parameters = make_score(data, score=score).likelihood.parameter_posterior
    rows = draw_rows(parameters, DAGS[-1], 7, target, 3, np.random.default_rng(0))
    found = log_predictive(parameters, DAGS, rows, target)
    for k in range(3):
        assert found[k] == pytest.approx(_after(data, rows[k], target, score), abs=1e-4)


def test_rows_of_earlier_interventions_count_for_the_others_alone() -> None:
    frame = gd.simulate.discrete(3, 60, random_state=0).frame
    data = gd.Dataset.from_frame(frame, interventions=[(40, None), (20, "X2")])
    score = BDeu(ess=2.0, cells_per_row=None)
    parameters = make_score(data, score=score).likelihood.parameter_posterior
    rows = draw_rows(parameters, DAGS[-1], 15, 0, 2, np.random.default_rng(0))
    found = log_predictive(parameters, DAGS, rows, 0)
    for k in range(2):
        assert found[k] == pytest.approx(_after(data, rows[k], 0, score), abs=1e-8)


def test_simulated_rows_have_the_moments_of_the_table() -> None:
    """Of many rows, a dense network of both columns gives back their covariance; 4000 rows: errors of 3 %."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    frame = pd.DataFrame({"a": x, "b": 0.8 * x + 0.6 * rng.normal(size=4000)})
    data = gd.Dataset.from_frame(frame)
    parameters = make_score(data).likelihood.parameter_posterior
    graph = np.array([[0, 1], [0, 0]], bool)
    (rows,) = draw_rows(parameters, graph, 4000, None, 1, rng)
    assert np.cov(rows.T) == pytest.approx(np.cov(data.values.T), abs=0.12)
    (rows,) = draw_rows(parameters, graph, 4000, 1, 1, rng)
    assert abs(np.corrcoef(rows.T)[0, 1]) < 0.08  # four standard errors: b was set
    assert rows[:, 1].std() == pytest.approx(1, abs=0.05)
