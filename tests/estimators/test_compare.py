"""Side-by-side runs: the right values, failures named, posteriors matched by name."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import gflowdag as gd
from gflowdag.cli import commands
from gflowdag.data import Knowledge
from gflowdag.display.console import print_comparison
from gflowdag.errors import DataError, GFlowDAGError
from gflowdag.posterior.diagnostics import Diagnostics


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
    assert comparison.table().loc["refuses", "failure"] == comparison.failures["refuses"]
    assert repr(comparison).endswith("exact: exact, refuses: failed>")
    assert "num_bootstraps" in comparison._repr_html_()


def test_the_printed_table_has_every_method_and_reason(comparison):
    stream = io.StringIO()
    comparison.print(Console(width=160, file=stream))
    text = stream.getvalue()
    for word in ("mc3", "exact", "max error", "refuses failed: num_bootstraps"):
        assert word in text


def test_names_and_verdicts_stay_whole_in_a_narrow_terminal(comparison):
    posterior = replace(comparison.posteriors["mc3"], diagnosis=Diagnostics(verdict="not converged"))
    stream = io.StringIO()
    gd.compare({"bootstrap-ges": posterior}, truth=TRUTH).print(Console(file=stream, width=80))
    line = stream.getvalue().splitlines()[-1]
    assert line.startswith("bootstrap-ges ")
    assert "not converged" in line


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_figures_stay_whole_at_every_width_and_what_is_missing_is_named(width):
    values = {"edges": 17.25, "shd": 21.75, "auroc": 0.812, "max_error": 0.031, "log_evidence": -10709.47}
    values |= {"ess": 0.412, "pareto_k": 0.33, "r_hat": 1.012, "verdict": "trusted", "seconds": 1234.5}
    table = pd.DataFrame([values], index=["order-gflownet"])
    stream = io.StringIO()
    print_comparison(table, Console(file=stream, width=width), rest="--json")
    row = next(line for line in stream.getvalue().splitlines() if line.startswith("order-gflownet")).split()
    words = " ".join(stream.getvalue().split())
    left_out = words.partition("narrow for ")[2].partition(":")[0].split(", ")
    for name, value in values.items():
        assert (str(value) in row) != (name.replace("_", " ") in left_out)
    assert ("--json has all columns" in words) == (width < 100)
    assert max(map(len, stream.getvalue().splitlines())) <= width


def test_the_comparison_is_there_by_name_and_its_module_leaves_the_function_alone(comparison):
    import gflowdag.posterior.comparison

    assert isinstance(comparison, gd.Comparison)
    assert gd.compare is gflowdag.estimators.compare.compare


def test_the_exact_posterior_leads_the_report(comparison, tmp_path):
    html = comparison.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Method: exact" in html
    assert "mc3" in html
    assert "num_bootstraps" in html


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
        diagnosis=Diagnostics(verdict="unverified"),
    )
    rows = gd.compare({"exact": exact, "shuffled": shuffled}, truth=TRUTH).table()
    assert rows.loc["shuffled", "max_error"] == 0
    assert rows.loc["shuffled", "shd"] == rows.loc["exact", "shd"]
    other = replace(exact, names=["p", "q", "r", "s"])
    with pytest.raises(DataError, match="different variables"):
        gd.compare({"exact": exact, "other": other})


def test_a_comparison_of_nothing_is_refused(table):
    for data in (None, table):
        with pytest.raises(DataError, match="nothing to compare"):
            gd.compare({}, data=data)


def test_methods_without_names_are_refused(table):
    with pytest.raises(DataError, match="by name"):
        gd.compare([gd.MC3()], data=table)


def test_estimators_without_data_are_refused():
    with pytest.raises(DataError, match="data"):
        gd.compare({"mc3": gd.MC3()})


def test_what_is_no_method_is_refused(table):
    for wrong in (gd.MC3, "mc3", None):
        with pytest.raises(DataError, match="neither a posterior nor an estimator"):
            gd.compare({"wrong": wrong}, data=table)


def test_a_truth_is_read_once_and_before_the_work(table):
    post = gd.fit(table, method="exact", num_samples=50)
    edges = [(table.columns[0], table.columns[1]), (table.columns[1], table.columns[2])]
    rows = gd.compare({"one": post, "two": post}, truth=iter(edges)).table()
    assert rows.loc["one", "shd"] == rows.loc["two", "shd"]
    assert rows["auroc"].notna().all()
    broken = gd.MC3(num_chains=-1)  # would be among the failures, had it been tried
    with pytest.raises(DataError, match="unknown variables: nobody"):
        gd.compare({"mc3": broken}, data=table, truth=[("nobody", table.columns[0])])


def table_of(columns: int, kind: str) -> gd.Dataset:
    rng = np.random.default_rng(0)
    if kind == "discrete":
        return gd.Dataset.from_frame(pd.DataFrame(rng.integers(2, size=(50, columns)).astype(str)))
    return gd.Dataset.from_array(rng.normal(size=(50, columns)))


def take(learner, data: gd.Dataset) -> None:
    """Have a method refuse the table, or work on it for a moment; the exact one refuses before it works."""
    moments = {
        "mc3": {"num_chains": 4, "burn_in": 4, "num_steps": 8, "thinning": 1},
        "parent-set-mcmc": {"num_chains": 4, "iterations": 64},
    }
    if learner.method == "exact":
        learner._check(data)
    else:
        learner.set_params(**moments[learner.method]).fit(data)


@pytest.mark.parametrize(
    ("columns", "kind", "expected"),
    [
        (1, "continuous", ["exact"]),
        (2, "continuous", ["exact", "mc3"]),
        (20, "continuous", ["exact", "mc3"]),
        (21, "continuous", ["exact", "mc3"]),
        (24, "continuous", ["parent-set-mcmc", "mc3"]),
        (1, "discrete", ["exact"]),
        (2, "discrete", ["exact", "mc3"]),
        (24, "discrete", ["parent-set-mcmc", "mc3"]),
    ],
)
def test_the_methods_compared_by_default_can_take_the_table(columns, kind, expected, monkeypatch):
    asked = {}
    monkeypatch.setattr("gflowdag.estimators.compare.compare", lambda methods, **_: asked.update(methods))
    data = table_of(columns, kind)
    commands.run_comparison(data, methods=None, truth=None, samples=1, seed=0, verbose=False)
    assert list(asked) == expected
    for learner in asked.values():
        take(learner, data)
    if "mc3" not in asked:
        with pytest.raises(GFlowDAGError):
            take(gd.MC3(), data)
