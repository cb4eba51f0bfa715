"""Sums over subsets against brute force in extended precision."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from gflowdag.score.subsets import log_subset_sums


def slow_log_sum(values):
    """log Σ exp with 50 digits, −inf left out."""
    with localcontext() as context:
        context.prec = 50
        total = sum((Decimal(float(v)).exp() for v in values if v > -np.inf), Decimal(0))
        return float(total.ln()) if total else -np.inf


@pytest.mark.parametrize("spread", [1.0, 30.0, 1e4])
def test_subset_sums_agree_with_fifty_digits_over_any_range(spread):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(2, 64)) * spread
    table[1, rng.random(64) < 0.5] = -np.inf
    table[1, 0] = -np.inf
    sums = log_subset_sums(table)
    for row in range(2):
        expected = [slow_log_sum(table[row][(np.arange(64) & ~u) == 0]) for u in range(64)]
        # One unit in the last place of a value of `spread` nats, a few times over.
        np.testing.assert_allclose(sums[row], expected, rtol=1e-15, atol=8e-16 * spread)


def test_a_table_without_allowed_sets_sums_to_nothing():
    assert (log_subset_sums(np.full((1, 8), -np.inf)) == -np.inf).all()


def test_the_input_is_left_alone():
    table = np.zeros((3, 4))
    np.testing.assert_allclose(log_subset_sums(table)[0], np.log([1, 2, 2, 4]), atol=1e-15)
    assert (table == 0).all()
