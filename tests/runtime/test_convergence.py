"""R-hat and effective sample sizes against numbers that ArviZ gives for the same draws."""

from __future__ import annotations

import numpy as np
import pytest

from gflowdag.runtime.convergence import bulk_ess, mean_error, rank_r_hat, stated_error, tail_ess


def draws() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)

    def autoregressive(num_chains: int, num_draws: int, rho: float, shift: float = 0.0) -> np.ndarray:
        x, noise = np.zeros((num_chains, num_draws)), rng.normal(size=(num_chains, num_draws))
        for t in range(1, num_draws):
            x[:, t] = rho * x[:, t - 1] + noise[:, t]
        return x + shift * np.arange(num_chains)[:, None]

    return {
        "independent": autoregressive(4, 100, 0),
        "sticky": autoregressive(4, 101, 0.9),
        "apart": autoregressive(4, 100, 0.3, 0.5),
        "binary": (autoregressive(3, 80, 0.5) > 0.8).astype(float),
        "alternating": autoregressive(2, 64, -0.7),
    }


# az.rhat(x), az.ess(x, method="bulk"), az.ess(x, method="tail"), az.mcse(x)
# with ArviZ 0.23.4 and the draws above.
ARVIZ = {
    "independent": (1.0018349224715284, 423.2847597028665, 415.537520876585, 0.04844547487787292),
    "sticky": (1.0684956223359334, 33.785610306140036, 37.77786423953126, 0.3720384925289463),
    "apart": (1.2164351362845882, 14.586272725712321, 182.13483853368874, 0.311796186148951),
    "binary": (1.010356210517433, 140.84282357678478, 140.8428235767848, 0.03941551740655814),
    "alternating": (1.0122843227561802, 269.72287611492715, 141.351588672257, 0.08439451807121534),
}


@pytest.mark.parametrize("name", ARVIZ)
def test_answers_are_those_of_arviz(name):
    x = draws()[name]
    answers = [float(answer(x)) for answer in (rank_r_hat, bulk_ess, tail_ess, mean_error)]
    assert answers == pytest.approx(ARVIZ[name], rel=1e-9)  # the same formula, in another order


@pytest.mark.parametrize("answer", [rank_r_hat, bulk_ess, tail_ess, mean_error, stated_error])
def test_many_quantities_at_once_are_judged_as_each_alone(answer):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4, 50, 3, 5)).cumsum(axis=1)
    x[..., 0] = rng.integers(2, size=(4, 50, 3))
    alone = [[float(answer(x[..., i, j])) for j in range(5)] for i in range(3)]
    np.testing.assert_allclose(answer(x), alone, rtol=1e-10)


def test_constant_chains_agree_or_never_will():
    x = np.zeros((4, 20, 2))
    x[2, :, 1] = 1.0
    assert rank_r_hat(x).tolist() == [1.0, np.inf]
    assert bulk_ess(x)[0] == 80


def test_edges_of_graphs_are_judged_without_ranks():
    x = draws()["binary"].astype(bool)
    for answer in (rank_r_hat, bulk_ess, tail_ess):
        assert float(answer(x)) == pytest.approx(float(answer(x.astype(float))), rel=1e-9)


def test_rounding_is_no_disagreement():
    """Means of many equal log scores round worse than means of a few: a trace of both once had R-hat 1.25."""
    rng = np.random.default_rng(9)
    x = -1236.7676446 * (1 + 1e-15 * rng.integers(-1, 2, size=(8, 200)) * (np.arange(200) >= 100))
    assert rank_r_hat(x) == 1.0
    assert bulk_ess(x) == tail_ess(x) == 1600
    x[rng.random(x.shape) < 0.05] -= 0.4  # now and then another graph
    assert rank_r_hat(x) < 1.01
    assert bulk_ess(x) > 400
    x[:4] += 1e-3
    assert rank_r_hat(x) > 1.5


def test_stuck_chains_are_told_from_mixed_ones():
    mixed = np.random.default_rng(3).normal(size=(4, 500, 2))
    assert rank_r_hat(mixed).max() < 1.02
    assert rank_r_hat(mixed + np.arange(4)[:, None, None]).min() > 1.3


def test_the_effective_size_of_an_autoregressive_chain():
    rng = np.random.default_rng(4)
    noise, chain = rng.normal(size=(4, 8000)), np.zeros((4, 8000))
    for t in range(1, 8000):
        chain[:, t] = 0.8 * chain[:, t - 1] + noise[:, t]
    expected = 4 * 8000 * (1 - 0.8) / (1 + 0.8)
    assert float(bulk_ess(chain)) == pytest.approx(expected, rel=0.15)


def rare_visits(repetitions: int) -> np.ndarray:
    """Eight chains of 600 draws, one in fifty of them 1, in visits of eight draws: twelve on average."""
    rng = np.random.default_rng(6)
    x = np.zeros((8, 600, repetitions))
    x[:, 0] = rng.random((8, repetitions)) < 0.02
    for t in range(1, 600):
        stays = np.where(x[:, t - 1] == 1, 1 - 1 / 8, 0.02 / 0.98 / 8)
        x[:, t] = rng.random((8, repetitions)) < stays
    return x


def test_stated_errors_cover_more_than_plain_ones_where_visits_are_few():
    """Not 95 % either: the number of visits is skewed, and no error to either side knows that."""
    x = rare_visits(1_000)
    distance = np.abs(x.mean(axis=(0, 1)) - 0.02)
    plain, stated = (float((distance < 2 * error(x)).mean()) for error in (mean_error, stated_error))
    assert stated > 0.90
    assert stated > plain + 0.02
    far_plain, far_stated = (float((distance > 4 * error(x)).mean()) for error in (mean_error, stated_error))
    assert far_stated < 0.75 * far_plain


def test_a_stated_error_is_the_plain_one_where_visits_are_many():
    x = np.random.default_rng(7).normal(size=(8, 2_000, 20))
    assert (stated_error(x) / mean_error(x)).max() < 1.05


def test_the_error_of_what_one_part_of_one_chain_has_seen_has_two_degrees_of_freedom():
    x = np.zeros((8, 100))
    x[3, 20:25] = 1.0
    student, normal = 4.302653, 1.959964  # their 97.5 % quantiles
    factor = float(stated_error(x) / mean_error(x))
    assert factor == pytest.approx(student / normal, rel=0.05)  # the visit moves the mean


def test_too_few_draws_are_refused():
    with pytest.raises(ValueError, match="at least 4 draws"):
        rank_r_hat(np.zeros((4, 3)))
