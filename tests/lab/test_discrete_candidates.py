"""The default for discrete tables is the candidate that the study chose."""

from __future__ import annotations

import numpy as np
from score_problems import discrete

from gflowdag.score import make_score
from gflowdag_lab.measurements.discrete_candidates import ROUNDS, Table


def test_the_default_is_what_was_measured():
    for data in (discrete(d=6, n=30), discrete(d=6, n=300, seed=1)):
        measured = ROUNDS[3]["ess of 1, 4, 16 averaged, cells<=N/1, 4^-k"].table(Table(data))
        np.testing.assert_allclose(make_score(data).dense_table(), measured, atol=1e-9)
