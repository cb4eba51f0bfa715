"""Sums over subsets against brute force in extended precision."""

from __future__ import annotations

import numpy as np
import pytest
from slow_sums import slow_log_sum

from gflowdag.score.subsets import log_subset_sums, sums_containing


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


@pytest.mark.parametrize("num_members", [1, 2, 3, 6])
def test_sums_over_the_sets_with_a_member_agree_with_fifty_digits(num_members):
    rng = np.random.default_rng(1)
    sets = np.arange(2**num_members)
    row = rng.normal(size=sets.size) * 100.0
    row[rng.random(sets.size) < 0.3] = -np.inf
    found = np.empty((num_members, sets.size // 2))
    sums_containing(row, found)
    for member in range(num_members):
        with_member = sets[sets >> member & 1 == 1]
        expected = [slow_log_sum(row[with_member[with_member & ~upper == 0]]) for upper in with_member]
        # One unit in the last place of a value of some hundred nats, a few times over.
        np.testing.assert_allclose(found[member], expected, rtol=1e-15, atol=1e-13)


def test_a_table_without_allowed_sets_sums_to_nothing():
    assert (log_subset_sums(np.full((1, 8), -np.inf)) == -np.inf).all()


def test_the_input_is_left_alone():
    table = np.zeros((3, 4))
    np.testing.assert_allclose(log_subset_sums(table)[0], np.log([1, 2, 2, 4]), atol=1e-15)
    assert (table == 0).all()
