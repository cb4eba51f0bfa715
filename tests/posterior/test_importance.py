"""The statistics of importance weights, on cases with known values."""

from __future__ import annotations

import numpy as np
import pytest

from gflowdag.posterior import importance


def test_equal_weights_are_all_effective() -> None:
    summary = importance.importance_summary(np.full(1000, -12.5))
    assert summary.ess == pytest.approx(1.0)
    assert summary.log_evidence == pytest.approx(-12.5)
    assert summary.log_evidence_error == pytest.approx(0.0, abs=1e-6)
    assert summary.pareto_k == -np.inf


def test_one_dominating_weight_leaves_one_effective_sample() -> None:
    log_weights = np.full(1000, -50.0)
    log_weights[3] = 0.0
    assert importance.relative_ess(log_weights) == pytest.approx(1e-3)


@pytest.mark.parametrize("shape", [0.2, 0.5, 1.0])
def test_pareto_k_finds_the_tail_of_pareto_weights(shape: float) -> None:
    draws = np.random.default_rng(1).pareto(1 / shape, 40000) + 1
    # 600 tail weights give a standard error of about (1 + k) / sqrt(600) = 0.08; three of them.
    assert importance.pareto_k(np.log(draws)) == pytest.approx(shape, abs=0.25)


def test_the_evidence_error_covers_the_truth() -> None:
    rng = np.random.default_rng(2)
    # Target and proposal densities of a normal shifted by 0.5: the true log evidence is 0.
    x = rng.normal(size=(200, 2000))
    log_weights = -0.5 * (x - 0.5) ** 2 + 0.5 * x**2
    z = [s.log_evidence / s.log_evidence_error for s in map(importance.importance_summary, log_weights)]
    assert np.std(z) == pytest.approx(1.0, abs=0.2)  # 200 repetitions: standard error 0.05


def test_flat_weights_are_told_in_words():
    diagnostics = importance.importance_diagnostics(importance.importance_summary(np.zeros(100)))
    assert diagnostics.verdict == "trusted"
    assert "no tail of large weights" in diagnostics.explanation
