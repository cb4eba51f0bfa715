"""Computed, modelled, causal: three lines everywhere, and "exact" vouches for the first alone."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_reader import read
from rich.console import Console

import gflowdag as gd
from gflowdag.display.console import print_posterior
from gflowdag.display.trust import sentences, trust_lines
from gflowdag.estimators.remedies import with_remedies_tried
from gflowdag.posterior.posterior import Posterior


def table(*, skewed: bool) -> pd.DataFrame:
    noise = np.random.default_rng(3).normal(size=(300, 3))
    frame = pd.DataFrame(noise, columns=["a", "b", "c"])
    frame["b"] += frame["a"]
    return frame.assign(b=np.exp(frame["b"])) if skewed else frame


def shown(post: Posterior, where: str, folder: Path) -> str:
    if where == "notebook":
        return post._repr_html_()
    if where == "report":
        return read(post.report(folder / "report.html", config={"command": "gflowdag fit"})).text
    console = Console(file=io.StringIO(), width=200, highlight=False)
    print_posterior(post, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("where", ["terminal", "notebook", "report"])
def test_all_three_kinds_of_trust_are_named(where: str, tmp_path: Path) -> None:
    text = shown(gd.fit(table(skewed=True), method="exact"), where, tmp_path)
    for word in ("Computed", "Exact", "Modelled", "Doubtful", "Causal", "Assumed", "hidden common cause"):
        assert word in text
    remedy = "transform=&#39;rank&#39;" if where == "notebook" else "--transform rank"
    assert remedy in text
    assert "an arrow can be wrong even at a probability of 1" in " ".join(text.split())
    fits = shown(gd.fit(table(skewed=False), method="exact"), where, tmp_path)
    assert "an arrow can be wrong even" not in " ".join(fits.split())


def test_exact_vouches_for_the_computation_alone() -> None:
    wrong = trust_lines(gd.fit(table(skewed=True), method="exact"))
    right = trust_lines(gd.fit(table(skewed=False), method="exact"))
    assert [line.colour for line in wrong] == ["good", "bad", "unsure"]
    assert [line.colour for line in right] == ["good", "good", "unsure"]


def test_what_a_remedy_changes_is_shown_beside_the_verdict() -> None:
    frame = table(skewed=True)
    post = gd.fit(frame, method="exact", prior="fair")
    tried = with_remedies_tried(post, gd.Dataset.from_frame(frame), score="auto", prior="fair")
    other = gd.fit(frame, method="exact", prior="fair", transform="rank")
    expected = (other.edge_probabilities() - post.edge_probabilities()).abs().to_numpy().max()
    assert f"changes by up to {expected:.2f}" in trust_lines(tried)[1].explanation


def test_where_the_exact_posterior_is_slow_the_findings_say_that_nothing_was_tried(monkeypatch) -> None:
    monkeypatch.setattr("gflowdag.estimators.remedies.MOST_SECONDS", 0.0)
    frame = table(skewed=True)
    post = gd.fit(frame, method="exact")
    tried = with_remedies_tried(post, gd.Dataset.from_frame(frame), score="auto", prior="uniform")
    assert "takes longer than a second" in tried.diagnostics().model_fit.findings[0].sentence()


def test_a_table_of_both_kinds_is_looked_at_too() -> None:
    frame = table(skewed=False).assign(c=np.where(table(skewed=False)["c"] > 0, "yes", "no"))
    right = gd.fit(frame, method="exact", score="conditional-gaussian")
    assert trust_lines(right)[1].state == "No objection"
    wrong = gd.fit(frame.assign(b=np.exp(frame["b"])), method="exact", score="conditional-gaussian")
    assert trust_lines(wrong)[1].state == "Doubtful"


def test_a_table_of_few_rows_is_not_said_to_fit() -> None:
    post = gd.fit(table(skewed=False).head(20), method="exact")
    assert trust_lines(post)[1].state == "Not checked"


def test_a_remedy_of_several_findings_is_said_once_and_names_them() -> None:
    fit = gd.fit(table(skewed=True), method="exact").diagnostics().model_fit
    checks = [finding.check for finding in fit.findings]
    assert len({finding.remedy for finding in fit.findings}) == 1 < len(checks)
    said = sentences(fit, "command line")
    assert [("Remedy" in text) for text in said] == [False] * (len(said) - 1) + [True]
    assert f"Remedy for {', '.join(checks)}: --transform rank." in said[-1]
