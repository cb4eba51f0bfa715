"""The verdict that the chain samplers share, and the traces that go with it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import gflowdag as gd
from gflowdag.estimators.chain_verdict import chain_verdict


def test_traces_are_thinned_to_a_few_chains_and_keep_both_ends():
    log_scores = np.arange(20 * 1200.0).reshape(20, 1200)
    diagnostics, _ = chain_verdict(np.zeros((20, 1200, 2, 2), bool), log_scores)
    traces = diagnostics.score_traces
    assert traces.shape == (8, 500)
    np.testing.assert_array_equal(traces[:, [0, -1]], log_scores[:8, [0, -1]])


@pytest.mark.parametrize(
    "estimator",
    [
        gd.OrderMCMC(iterations=30, num_chains=3, num_records=10, num_samples=20, random_state=0),
        gd.MC3(num_chains=3, burn_in=20, num_steps=50, thinning=5, num_samples=20, random_state=0),
    ],
    ids=["order-mcmc", "mc3"],
)
def test_score_traces_of_the_chains_reach_the_report_through_a_saved_file(estimator, tmp_path):
    values = np.random.default_rng(0).normal(size=(40, 4))
    posterior = estimator.fit(values).posterior_
    traces = posterior.diagnosis.score_traces
    assert traces.shape == (3, 10)
    assert np.ptp(traces) > 0
    posterior.save(tmp_path / "posterior.npz")
    loaded = gd.Posterior.load(tmp_path / "posterior.npz")
    np.testing.assert_array_equal(loaded.diagnosis.score_traces, traces)
    page = loaded.report(tmp_path / "report.html").read_text(encoding="utf-8")
    content = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert content
    drawn = [
        trace for trace in json.loads(content[1])["traces"] if trace["title"] == "log score of each chain"
    ]
    assert np.shape(drawn[0]["lines"]) == (3, 10)
