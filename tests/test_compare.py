"""Side-by-side runs: the right figures, failures named, posteriors matched by name."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import gflowdag as gd
from gflowdag.data import Knowledge
from gflowdag.errors import DataError


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 100))
    c = a + b + rng.normal(size=100)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": c + rng.normal(size=100)})


TRUTH = [("a", "c"), ("b", "c"), ("c", "d")]
QUICK = {"num_chains": 64, "burn_in": 400, "num_steps": 800, "thinning": 20, "random_state": 0}


@pytest.fixture(scope="module")
def comparison(table):
    learners = {
        "mc3": gd.MC3(**QUICK),
        "refuses": gd.BootstrapGES(num_bootstraps=0),
        "exact": gd.ExactPosterior(random_state=0),
    }
    return gd.compare(learners, data=table, truth=TRUTH)


def test_each_method_is_measured_against_truth_and_exact_posterior(comparison):
    rows = comparison.table()
    assert list(rows.index) == ["mc3", "exact", "refuses"]
    assert rows.loc["exact", "max_error"] == 0
    assert 0 < rows.loc["mc3", "max_error"] < 0.1
    assert rows.loc["mc3", "mean_error"] <= rows.loc["mc3", "max_error"]
    exact = comparison.posteriors["exact"]
    assert rows.loc["exact", "shd"] == gd.metrics.expected_shd(exact, TRUTH)
    assert rows.loc["exact", "auroc"] == gd.metrics.auroc(exact, TRUTH)
    assert rows.loc["exact", "log_evidence"] == exact.log_evidence
    assert np.isnan(rows.loc["mc3", "log_evidence"])
    assert rows.loc["mc3", "r_hat"] > 0
    assert (rows.loc[["mc3", "exact"], "seconds"] > 0).all()


def test_a_method_that_fails_is_named_and_does_not_stop_the_others(comparison):
    assert comparison.table().loc["refuses", "verdict"] == "failed"
    assert "num_bootstraps" in comparison.failures["refuses"]


def test_the_printed_table_has_every_method_and_reason(comparison):
    stream = io.StringIO()
    comparison.print(Console(width=160, file=stream))
    text = stream.getvalue()
    for word in ("mc3", "exact", "max error", "refuses failed: num_bootstraps"):
        assert word in text


def test_names_and_verdicts_stay_whole_in_a_narrow_terminal(comparison):
    posterior = replace(comparison.posteriors["mc3"], details={"verdict": "not converged"})
    stream = io.StringIO()
    gd.compare({"bootstrap-ges": posterior}, truth=TRUTH).print(Console(file=stream, width=80))
    line = stream.getvalue().splitlines()[-1]
    assert line.startswith("bootstrap-ges ")
    assert "not converged" in line


def test_the_exact_posterior_leads_the_report(comparison, tmp_path):
    html = comparison.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Answered by exact" in html
    assert "mc3" in html


def test_plots_have_a_panel_for_each_method_and_one_for_the_truth(comparison):
    assert len(comparison.plot().axes) == 2


def test_small_tables_get_an_exact_reference_unasked(table, tmp_path):
    alone = gd.compare({"mc3": gd.MC3(**QUICK)}, data=table)
    assert "exact (reference)" in alone.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert alone.reference is not None
    assert "max_error" in alone.table()
    assert "shd" not in alone.table()
    different = {"mc3": gd.MC3(**QUICK), "knows": gd.MC3(knowledge=Knowledge(required=[("a", "b")]), **QUICK)}
    assert gd.compare(different, data=table).reference is None


def test_posteriors_are_matched_by_name_not_by_position(comparison):
    exact = comparison.posteriors["exact"]
    order = [2, 0, 3, 1]
    shuffled = replace(
        exact,
        samples=exact.samples[:, order][:, :, order],
        names=[exact.names[i] for i in order],
        marginals=exact.marginals[np.ix_(order, order)],
        best_graph=None,
        details={"verdict": "unverified"},
    )
    rows = gd.compare({"exact": exact, "shuffled": shuffled}, truth=TRUTH).table()
    assert rows.loc["shuffled", "max_error"] == 0
    assert rows.loc["shuffled", "shd"] == rows.loc["exact", "shd"]
    other = replace(exact, names=["p", "q", "r", "s"])
    with pytest.raises(DataError, match="different variables"):
        gd.compare({"exact": exact, "other": other})


def test_methods_without_names_are_refused(table):
    with pytest.raises(DataError, match="by name"):
        gd.compare([gd.MC3()], data=table)


def test_estimators_without_data_are_refused():
    with pytest.raises(DataError, match="data"):
        gd.compare({"mc3": gd.MC3()})
