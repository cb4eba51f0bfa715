"""Sums over all parent sets are planned before the training, and end with the budget."""

from __future__ import annotations

import numpy as np
import pytest

import gflowdag as gd
from gflowdag.data import Dataset
from gflowdag.estimators import weighed_orders
from gflowdag.estimators.chain_lessons import lessons_of
from gflowdag.estimators.weighed_orders import timed_sums
from gflowdag.runtime import deadline
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.precision import double_precision
from gflowdag.score import make_score


class Clock:
    """A clock that stands still until somebody moves it."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(deadline, "time", clock)
    monkeypatch.setattr(weighed_orders, "time", clock)
    return clock


@pytest.fixture
@double_precision
def sums(clock, monkeypatch):
    """Sums over six variables, of which an order takes a tenth of a second by the clock."""
    score = make_score(Dataset.as_dataset(gd.simulate.linear_gaussian(6, 50, random_state=1).frame))
    graphs = np.triu(np.random.default_rng(0).random((4, 10, 6, 6)) < 0.3, 1)
    weigh = weighed_orders.weigh_orders

    def slowly(table, orders, *given, **options):
        clock.now += 0.1 * len(orders)
        return weigh(table, orders, *given, **options)

    monkeypatch.setattr(weighed_orders, "weigh_orders", slowly)
    return timed_sums(score, lessons_of(score, graphs, num_held_out=10, seed=0))


def test_the_planned_number_of_orders_falls_with_the_time_that_is_left(sums, clock):
    assert sums.seconds_per_order == pytest.approx(0.1)
    planned = [sums.num_affordable(100, Deadline(clock.now + left), 6) for left in (1e5, 1200, 800, 400, 1)]
    assert planned[0] == sums.num_affordable(100, Deadline(), 6) == 4096
    assert sorted(planned, reverse=True) == planned
    assert planned[0] > planned[1] > planned[2] > planned[3] > planned[4] == 256
    for left, number in zip((1200, 800, 400), planned[1:4], strict=True):
        assert sums.seconds(number, 100) <= 0.3 * left + 1e-9
    near = Deadline(clock.now + 1000)
    before = sums.num_affordable(100, near, 6)
    clock.now += 500
    assert sums.num_affordable(100, near, 6) < before


def test_more_graphs_leave_time_for_fewer_orders(sums, clock):
    ends = Deadline(clock.now + 1000)
    assert sums.num_affordable(1000, ends, 6) < sums.num_affordable(10, ends, 6)
