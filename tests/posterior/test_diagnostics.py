"""The statistics that decide whether an answer is trusted, on cases with known values."""

from __future__ import annotations

import numpy as np
import pytest

from gflowdag.posterior import diagnostics


def test_equal_weights_are_all_effective() -> None:
    summary = diagnostics.importance_summary(np.full(1000, -12.5))
    assert summary["ess"] == pytest.approx(1.0)
    assert summary["log_evidence"] == pytest.approx(-12.5)
    assert summary["log_evidence_error"] == pytest.approx(0.0, abs=1e-6)
    assert summary["pareto_k"] == -np.inf


def test_one_dominating_weight_leaves_one_effective_sample() -> None:
    log_weights = np.full(1000, -50.0)
    log_weights[3] = 0.0
    assert diagnostics.relative_ess(log_weights) == pytest.approx(1e-3)


@pytest.mark.parametrize("shape", [0.2, 0.5, 1.0])
def test_pareto_k_finds_the_tail_of_pareto_weights(shape: float) -> None:
    draws = np.random.default_rng(1).pareto(1 / shape, 40000) + 1
    # 600 tail weights give a standard error of about (1 + k) / sqrt(600) = 0.08; three of them.
    assert diagnostics.pareto_k(np.log(draws)) == pytest.approx(shape, abs=0.25)


def test_the_evidence_error_covers_the_truth() -> None:
    rng = np.random.default_rng(2)
    # Target and proposal densities of a normal shifted by 0.5: the true log evidence is 0.
    x = rng.normal(size=(200, 2000))
    log_weights = -0.5 * (x - 0.5) ** 2 + 0.5 * x**2
    z = [
        s["log_evidence"] / s["log_evidence_error"] for s in map(diagnostics.importance_summary, log_weights)
    ]
    assert np.std(z) == pytest.approx(1.0, abs=0.2)  # 200 repetitions: standard error 0.05


def test_r_hat_tells_mixed_from_stuck_chains() -> None:
    rng = np.random.default_rng(3)
    mixed = rng.normal(size=(4, 500, 2))
    stuck = mixed + np.arange(4)[:, None, None]
    assert diagnostics.split_r_hat(mixed).max() < 1.02
    assert diagnostics.split_r_hat(stuck).min() > 1.5


def test_constant_chains_agree_or_do_not() -> None:
    agreeing = np.ones((3, 10, 1))
    differing = agreeing * np.arange(3)[:, None, None]
    assert diagnostics.split_r_hat(agreeing) == 1.0
    assert diagnostics.split_r_hat(differing) == np.inf
    assert diagnostics.chain_ess(agreeing) == 30


@pytest.mark.parametrize("drift", [0.0, 1e-13])
def test_rounding_is_no_disagreement(drift: float) -> None:
    rng = np.random.default_rng(9)
    values = -rng.uniform(10, 5000, size=200)  # log scores
    equal = np.broadcast_to(values, (64, 100, 200)) * (1 + drift * rng.normal(size=(64, 100, 200)))
    assert (diagnostics.split_r_hat(equal) == 1.0).all()
    assert (diagnostics.chain_ess(equal) == 6400).all()
    differing = equal + 1e-3 * np.arange(64)[:, None, None]
    assert (diagnostics.split_r_hat(differing) > 1e3).all()


def test_the_effective_size_of_an_autoregressive_chain() -> None:
    rng = np.random.default_rng(4)
    noise, chain = rng.normal(size=(4, 8000)), np.zeros((4, 8000))
    for t in range(1, 8000):
        chain[:, t] = 0.8 * chain[:, t - 1] + noise[:, t]
    expected = 4 * 8000 * (1 - 0.8) / (1 + 0.8)
    assert diagnostics.chain_ess(chain[:, :, None])[0] == pytest.approx(expected, rel=0.15)


def test_flat_weights_are_told_in_words():
    verdict = diagnostics.importance_verdict(diagnostics.importance_summary(np.zeros(100)))
    assert verdict["verdict"] == "trusted"
    assert "weights without a tail" in verdict["explanation"]
