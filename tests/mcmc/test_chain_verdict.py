"""The verdict that the chain samplers share, and the traces that go with it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import gflowdag as gd
from gflowdag.estimators.chain_verdict import chain_verdict
from gflowdag.estimators.precise import downgrade_if_imprecise
from gflowdag.posterior.diagnostics import Diagnostics


def test_traces_are_thinned_to_a_few_chains_and_keep_both_ends():
    log_scores = np.arange(20 * 1200.0).reshape(20, 1200)
    diagnostics, _ = chain_verdict(np.zeros((20, 1200, 2, 2), bool), log_scores)
    traces = diagnostics.score_traces
    assert traces.shape == (8, 500)
    np.testing.assert_array_equal(traces[:, [0, -1]], log_scores[:8, [0, -1]])


def moving(num_chains: int, num_draws: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Graphs with an edge that comes and goes, and scores that follow."""
    graphs = np.random.default_rng(0).random((num_chains, num_draws, 3, 3)) < 0.5
    graphs[:, :, 0] = False
    return graphs, graphs.sum(axis=(2, 3)).astype(float)


def test_chains_that_never_move_are_one_sample_each() -> None:
    graphs = np.zeros((4, 500, 3, 3), bool)
    few, _ = chain_verdict(graphs, np.full((4, 500), -10.0))
    assert few.verdict == "not converged"  # 2,000 equal draws are 4 samples
    assert few.effective_samples == 4
    many, _ = chain_verdict(np.repeat(graphs, 16, axis=0), np.full((64, 500), -10.0))
    assert many.verdict == "trusted"


def test_edges_that_no_chain_changes_say_nothing_against_chains_that_move() -> None:
    diagnostics, _ = chain_verdict(*moving(4))
    assert diagnostics.verdict == "trusted"
    assert 400 <= diagnostics.effective_samples < 1200


def test_fewer_than_four_chains_are_never_trusted() -> None:
    diagnostics, _ = chain_verdict(*moving(3, 2000))
    assert diagnostics.verdict == "not converged"
    assert "takes at least 4 of them, and there are 3" in diagnostics.explanation


@pytest.fixture(scope="module")
def parity() -> gd.Dataset:
    """Four columns of chance and their parity: from few edges no single one more leads to the truth."""
    codes = np.random.default_rng(5).integers(0, 2, (1000, 5))
    codes[:, 4] = codes[:, :4].sum(axis=1) % 2
    return gd.Dataset.from_array(codes, kinds="discrete")


def test_a_few_chains_of_single_edges_that_miss_the_parity_are_not_trusted(parity: gd.Dataset) -> None:
    """Version 0.2 trusted such chains, with edge probabilities that were wrong by 0.41."""
    found = gd.MC3(num_chains=4, burn_in=0, num_steps=20_000, thinning=20, prior="uniform", random_state=0)
    post = found.fit(parity).posterior_
    assert post.edge_probabilities().to_numpy().sum() < 3  # all chains are where they began
    assert post.diagnosis.r_hat < 1.05
    assert post.diagnosis.effective_samples > 400
    assert post.diagnosis.verdict == "not converged"
    assert "takes at least 60 of them, and there are 4" in post.diagnosis.explanation


def test_chains_that_had_no_time_to_scatter_are_not_trusted() -> None:
    table = np.random.default_rng(0).normal(size=(30, 3))
    options = {"num_chains": 64, "num_steps": 2000, "thinning": 20, "random_state": 0}
    short, long = (gd.MC3(burn_in=b, **options).fit(table).posterior_.diagnosis for b in (380, 400))
    assert (short.verdict, long.verdict) == ("not converged", "trusted")
    assert "A burn-in of 380 steps is too short to scatter the chains: give it 400" in short.explanation


def test_an_edge_that_is_hardly_known_is_not_trusted() -> None:
    trusted = Diagnostics("trusted", "Chains agree.")
    errors = np.array([[0.0, 0.009], [0.0, 0.0]])
    assert downgrade_if_imprecise(trusted, errors).verdict == "trusted"
    found = downgrade_if_imprecise(trusted, 2 * errors)
    assert found.verdict == "not converged"
    assert "Monte-Carlo error of 0.018 (0.01 or less is needed)" in found.explanation
    assert found.edge_errors is not None
    unverified = Diagnostics("unverified", "A restriction.")
    assert downgrade_if_imprecise(unverified, 2 * errors).verdict == "unverified"


def test_chains_of_structure_mcmc_start_at_scattered_graphs(monkeypatch) -> None:
    """From one common start they agree whether they mix or not, where the burn-in does not part them."""
    from gflowdag.mcmc import structure

    started = []
    init = structure.init
    monkeypatch.setattr(
        structure, "init", lambda graphs, *rest: started.append(graphs) or init(graphs, *rest)
    )
    knowledge = gd.Knowledge(required=[("X1", "X2")], forbidden=[("X4", "X3")], max_parents=2)
    estimator = gd.MC3(num_chains=20, burn_in=0, num_steps=20, thinning=5, knowledge=knowledge)
    estimator.fit(np.random.default_rng(0).normal(size=(40, 6)))
    graphs = started[0]
    assert len(np.unique(graphs.reshape(20, -1), axis=0)) > 15
    assert graphs[:, 0, 1].all()
    assert not graphs[:, 3, 2].any()
    assert graphs.sum(axis=1).max() <= 2


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
