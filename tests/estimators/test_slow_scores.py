"""DAG-GFlowNet with a score of the user's own, beyond the sizes that have a table of all parent sets."""

from __future__ import annotations

import numpy as np
import pytest

import gflowdag as gd
from gflowdag.estimators import held_out
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.precision import double_precision
from gflowdag.score import make_score


class Counted(gd.LocalScore):
    """The cost of a parent grows with its distance; counts the sets that it is asked for."""

    num_asked = 0

    def local(self, node, parents):
        type(self).num_asked += len(parents)
        return -(parents @ (2.0 + np.abs(np.arange(parents.shape[1]) - node)))


@pytest.fixture
def table():
    return gd.Dataset.from_frame(gd.simulate.linear_gaussian(21, 30, random_state=0).frame)


@double_precision
def test_chains_ask_a_score_in_python_for_fewer_sets(table):
    Counted.num_asked = 0
    score = make_score(table, score=Counted())
    graphs = held_out.order_chains(score, 0, 8, num_chains=1, iterations=8).samples
    assert graphs.shape == (8, 21, 21)
    # Fourteen candidates have this many subsets, and the search for candidates asks for more beside them.
    assert Counted.num_asked < 21 * 2**14


@double_precision
def test_a_score_that_knows_a_faster_way_keeps_its_candidates(table, monkeypatch):
    asked = {}

    class Chains(held_out.OrderMCMC):
        def graphs(self, score, seed, progress):
            asked["candidates"] = self.num_candidates
            return np.zeros((1, 21, 21), bool)

    monkeypatch.setattr(held_out, "OrderMCMC", Chains)
    for score, deadline, expected in (
        (gd.BGe(), Deadline(), None),
        (Counted(), Deadline(), 10),
        (Counted(), Deadline.after(60.0), None),  # as many as the time allows
    ):
        bound = make_score(table, score=score)
        held_out.order_chains(bound, 0, 8, num_chains=1, iterations=8, deadline=deadline)
        assert asked["candidates"] == expected
