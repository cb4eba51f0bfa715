"""Whether chains agree, on cases with known values."""

from __future__ import annotations

import numpy as np
import pytest

from gflowdag.posterior import r_hat


def test_r_hat_tells_mixed_from_stuck_chains() -> None:
    rng = np.random.default_rng(3)
    mixed = rng.normal(size=(4, 500, 2))
    stuck = mixed + np.arange(4)[:, None, None]
    assert r_hat.split_r_hat(mixed).max() < 1.02
    assert r_hat.split_r_hat(stuck).min() > 1.5


def test_constant_chains_agree_or_do_not() -> None:
    agreeing = np.ones((3, 10, 1))
    differing = agreeing * np.arange(3)[:, None, None]
    assert r_hat.split_r_hat(agreeing) == 1.0
    assert r_hat.split_r_hat(differing) == np.inf
    assert r_hat.chain_ess(agreeing) == 30


@pytest.mark.parametrize("drift", [0.0, 1e-13])
def test_rounding_is_no_disagreement(drift: float) -> None:
    rng = np.random.default_rng(9)
    values = -rng.uniform(10, 5000, size=200)  # log scores
    equal = np.broadcast_to(values, (64, 100, 200)) * (1 + drift * rng.normal(size=(64, 100, 200)))
    assert (r_hat.split_r_hat(equal) == 1.0).all()
    assert (r_hat.chain_ess(equal) == 6400).all()
    differing = equal + 1e-3 * np.arange(64)[:, None, None]
    assert (r_hat.split_r_hat(differing) > 1e3).all()


def test_the_effective_size_of_an_autoregressive_chain() -> None:
    rng = np.random.default_rng(4)
    noise, chain = rng.normal(size=(4, 8000)), np.zeros((4, 8000))
    for t in range(1, 8000):
        chain[:, t] = 0.8 * chain[:, t - 1] + noise[:, t]
    expected = 4 * 8000 * (1 - 0.8) / (1 + 0.8)
    assert r_hat.chain_ess(chain[:, :, None])[0] == pytest.approx(expected, rel=0.15)
