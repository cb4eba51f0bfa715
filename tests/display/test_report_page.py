"""The report as a file: escaped, small, reproducible, and with the posterior's own numbers in it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_posteriors import HOSTILE_NAMES, LONG_NAMES, hostile_posterior, noisy_posterior
from report_reader import read

import gflowdag as gd
from gflowdag import metrics
from gflowdag.display.curves import precision_recall_points, roc_points
from gflowdag.display.report.words import findings
from gflowdag.display.truncate import num_columns, truncated_names
from gflowdag.estimators import estimator_class
from gflowdag.graph import all_dags
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior

EXACT = Diagnostics("exact", "All were summed.")


def test_hostile_names_are_text_and_survive_unchanged(tmp_path):
    frame = pd.DataFrame(
        np.random.default_rng(0).normal(size=(30, len(HOSTILE_NAMES))), columns=list(HOSTILE_NAMES)
    )
    data = gd.Dataset.from_frame(frame)
    page = read(
        hostile_posterior().report(tmp_path / "report.html", data=data, config={"data": HOSTILE_NAMES[0]})
    )
    assert page.tags.count("script") == 2  # the numbers and the program
    assert "img" not in page.tags
    assert json.loads(page.json)["graph"]["names"] == list(HOSTILE_NAMES)
    assert HOSTILE_NAMES[0] in page.text


def test_nothing_is_loaded_from_anywhere(tmp_path):
    path = hostile_posterior().report(tmp_path / "report.html")
    assert all(source.startswith(("#", "data:,")) for source in read(path).sources)
    style = re.search(r"<style>(.*?)</style>", path.read_text(encoding="utf-8"), re.S)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]


def test_fifty_variables_stay_under_three_megabytes(tmp_path):
    posterior = noisy_posterior(50, 200)
    others = {"second": noisy_posterior(50, 200, seed=1)}
    history = [{"step": step, "loss": 1 / step} for step in range(1, 5000)]
    truth = posterior.map_graph()
    path = posterior.report(tmp_path / "report.html", others=others, history=history, truth=truth)
    assert path.stat().st_size < 3e6
    assert json.loads(read(path).json)["graph"]["widths"]


def test_the_same_posterior_gives_the_same_bytes(tmp_path):
    first = hostile_posterior().report(tmp_path / "1.html").read_bytes()
    assert hostile_posterior().report(tmp_path / "2.html").read_bytes() == first


def test_the_embedded_numbers_are_those_of_the_posterior(tmp_path):
    posterior = noisy_posterior(6, 100, log_weights=np.random.default_rng(1).normal(size=100))
    page = read(posterior.report(tmp_path / "report.html"))
    content = json.loads(page.json)
    # Six significant digits are written.
    assert np.allclose(page.matrix("edges"), posterior.edge_probabilities(), rtol=1e-6)
    assert np.allclose(page.matrix("unweighted"), posterior.edge_probabilities(weighted=False), rtol=1e-6)
    assert np.allclose(page.matrix("blankets"), posterior.markov_blanket_probabilities(), rtol=1e-3)
    assert np.allclose(page.matrix("paths"), posterior.path_probabilities(), rtol=1e-3)
    assert np.allclose(page.matrix("errors"), posterior.edge_errors(), rtol=1e-3)
    assert content["distributions"]["edges"]["mean"] == pytest.approx(
        metrics.expected_edges(posterior), rel=1e-5
    )
    assert sum(content["distributions"]["scores"]["mass"]) == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("spread", [0.0, 1e-9, 1e-3])
def test_log_scores_that_hardly_differ_are_no_histogram(spread, tmp_path):
    graphs = np.zeros((50, 3, 3), bool)
    scores = -327_000.0 + spread * np.linspace(0, 1, 50)  # many rows, discretised
    page = read(Posterior(graphs, ("a", "b", "c"), log_scores=scores).report(tmp_path / "report.html"))
    assert "scores" not in json.loads(page.json)["distributions"]


def test_chains_that_did_not_mix_have_no_errors(tmp_path):
    for verdict, known in (("not converged", False), ("trusted", True)):
        posterior = noisy_posterior(4, 50, diagnosis=Diagnostics(verdict, "So it is."))
        page = read(posterior.report(tmp_path / "report.html"))
        assert all((page.matrix(f) is not None) == known for f in ("errors", "pathErrors", "blanketErrors"))


def test_panels_without_content_are_absent(tmp_path):
    optional = {"truth", "methods", "traces", "data"}
    assert optional.isdisjoint(read(hostile_posterior().report(tmp_path / "bare.html")).ids)
    drawn = gd.simulate.linear_gaussian(num_variables=4, num_rows=50, random_state=0)
    posterior = noisy_posterior(4, 50, names=list(drawn.frame))
    page = read(
        posterior.report(
            tmp_path / "full.html",
            data=gd.Dataset.from_frame(
                drawn.frame, knowledge=gd.Knowledge(forbidden=[("X1", "X2")], max_parents=3)
            ),
            truth=drawn.truth,
            others={"again": posterior},
            history=[{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}],
            config={"command": "gflowdag fit table.csv --seed 7", "seed": 7},
        )
    )
    assert optional <= set(page.ids)
    for expected in ("gflowdag fit table.csv --seed 7", "Forbidden edges", "X1 → X2", "AUROC"):
        assert expected in page.text


@pytest.mark.parametrize(
    ("diagnostics", "expected"),
    [
        (Diagnostics("exact", "All were summed."), "no sampling error"),
        (Diagnostics("trusted", "", ess=0.4, pareto_k=0.3), "passed"),
        (Diagnostics("not converged", "", r_hat=1.4), "Do not draw conclusions"),
        (Diagnostics("not converged", "", r_hat=np.inf), "∞"),
        (Diagnostics("not converged", "", effective_samples=90.0), "at least 400 needed"),
        (Diagnostics(), "These samples were not checked"),
        (Diagnostics(), "no check of its own"),
        (Diagnostics("unverified", "", r_hat=1.0, ess=0.4), "do not cover the whole"),
    ],
)
def test_the_verdict_is_said_in_words(diagnostics, expected, tmp_path):
    posterior = noisy_posterior(4, 30, diagnosis=diagnostics, log_evidence=-12.5, log_evidence_error=0.03)
    text = read(posterior.report(tmp_path / "report.html")).text
    assert expected in text
    assert "−12.5000 ± 0.03" in text
    assert "under one prior only" in text


def test_long_traces_are_thinned_and_keep_both_ends(tmp_path):
    chains = np.arange(3000.0).reshape(3, 1000)
    posterior = noisy_posterior(
        4, 30, diagnosis=Diagnostics(verdict="trusted", explanation="", score_traces=chains)
    )
    history = [{"step": step, "seconds": 0.1, "loss": 1 / step, "note": "text"} for step in range(1, 2001)]
    loss, scores = json.loads(read(posterior.report(tmp_path / "report.html", history=history)).json)[
        "traces"
    ]
    assert (loss["title"], loss["x"][0], loss["x"][-1], len(loss["x"])) == ("loss", 1, 2000, 400)
    assert [len(line) for line in scores["lines"]] == [400, 400, 400]
    assert scores["lines"][2][-1] == 2999


def test_diagnostics_that_are_not_finite_do_not_break_the_page(tmp_path):
    posterior = noisy_posterior(
        4, 30, diagnosis=Diagnostics(verdict="exact", explanation="", pareto_k=-np.inf)
    )
    assert read(posterior.report(tmp_path / "report.html")).json


def test_findings_tell_sure_edges_from_open_directions():
    certain = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype=bool)
    open_ = np.stack([certain, certain])
    open_[0, 1, 2] = open_[1, 2, 1] = True
    text = " ".join(findings(Posterior(open_, "ABC", diagnosis=EXACT)))
    assert "90 % or more): A → B." in text
    assert "direction open: B – C." in text


def pair_posterior(*pairs: tuple[float, float]) -> Posterior:
    """Variables A, B, C, …; the first two have edges of these probabilities (→, ←), then the next two, …"""
    d = 2 * len(pairs)
    marginals = np.zeros((d, d))
    for k, (forward, reverse) in enumerate(pairs):
        marginals[2 * k, 2 * k + 1], marginals[2 * k + 1, 2 * k] = forward, reverse
    names = "ABCDEFGHIJKLMNOP"[:d]
    return Posterior(np.zeros((1, d, d), dtype=bool), names, marginals=marginals, diagnosis=EXACT)


def test_findings_name_every_strong_connection_once_and_the_surest_first():
    posterior = pair_posterior(
        (0.95, 0.05), (0.872, 0.128), (0.894, 0.106), (0.7, 0.06), (0.4, 0.45), (0.5, 0.42), (0.3, 0.1)
    )
    assert findings(posterior)[1:] == [
        "Sure, direction included (90 % or more): A → B.",
        "Surely connected, most likely in this direction: E → F, C → D.",
        "Surely connected, but the data leave the direction open: K – L.",
        "Probably connected (75 to 90 %): J – I, G – H.",
        "Undecided whether they are connected (25 to 75 %): M – N.",
    ]


def test_findings_count_what_they_do_not_name():
    text = " ".join(findings(pair_posterior(*[(0.85, 0.1)] * 8)))
    assert "No edge is sure together with its direction" in text
    assert "I → J, K → L and 2 more." in text


@pytest.mark.parametrize("verdict", ["not converged", "unverified"])
def test_what_nothing_vouches_for_is_only_what_the_samples_say(verdict, tmp_path):
    diagnostics = Diagnostics(verdict, "")
    posterior = replace(
        pair_posterior((0.95, 0.05), (0.872, 0.128), (0.5, 0.42), (0.7, 0.1), (0.3, 0.1)),
        diagnosis=diagnostics,
    )
    assert findings(posterior) == [
        "4.1 edges on average among 45 pairs of variables; 40 pairs are unconnected (90 % or more).",
        "In this direction in 90 % or more: A → B.",
        "Connected in 90 % or more, mostly in this direction: C → D.",
        "Connected in 90 % or more, in either direction: E – F.",
        "Connected in 75 to 90 %: G – H.",
        "Connected in 25 to 75 %: I – J.",
    ]
    text = read(posterior.report(tmp_path / "report.html")).text
    assert "What the samples say" in text
    assert "not conclusions" in text
    assert "What stands out" not in text
    assert not re.search(r"\bsure", text, re.IGNORECASE)


def test_findings_that_a_verdict_vouches_for_stand_out(tmp_path):
    text = read(pair_posterior((0.95, 0.05)).report(tmp_path / "report.html")).text
    assert "What stands out" in text
    assert "among 1 pair of variables" in text
    assert "not conclusions" not in text


@pytest.mark.parametrize(
    ("method", "has_prior"),
    [("mc3", True), ("bootstrap-ges", False), ("bootstrap-pc", False), ("bcd-nets", False)],
)
def test_a_method_without_a_structure_prior_claims_none(method, has_prior, tmp_path, monkeypatch):
    kind = estimator_class(method)  # its record decides; what it would compute does not matter here
    monkeypatch.setattr(kind, "_infer", lambda *_: noisy_posterior(4, 30, method=method))
    posterior = kind().fit(np.random.default_rng(0).normal(size=(30, 4))).posterior_
    text = read(posterior.report(tmp_path / "report.html", config={"prior": "uniform"})).text
    assert ("with a uniform prior over graphs" in text) == has_prior


@pytest.mark.parametrize("others", [{}, {"mc3": noisy_posterior(4, 30, seed=1)}])
def test_methods_that_failed_are_listed_with_their_reasons(others, tmp_path):
    failures = {"gadget": "needs <sumu>", "exact": "too many variables"}
    page = read(noisy_posterior(4, 30).report(tmp_path / "report.html", others=others, failures=failures))
    assert "methods" in page.ids
    assert "gadget failed: needs <sumu>" in page.text
    assert "exact failed: too many variables" in page.text
    assert ("Where they differ most" in page.text) == bool(others)
    plain = read(noisy_posterior(4, 30).report(tmp_path / "plain.html", others=others))
    assert "failed:" not in plain.text


def test_one_of_a_kind_is_not_spoken_of_in_the_plural(tmp_path):
    frame = pd.DataFrame({"only": np.arange(10.0)})
    data = gd.Dataset.from_frame(frame, interventions=[None] * 9 + ["only"])
    posterior = Posterior(np.zeros((5, 1, 1), dtype=bool), ["only"], diagnosis=EXACT)
    text = read(posterior.report(tmp_path / "report.html", data=data)).text
    assert "Posterior over 1 variable" in text
    assert "A single variable has no edges." in text
    assert "1 row is an intervention" in text
    assert not re.search(r"\b1 (variables|rows|pairs|graphs)|\b0 pairs", text)


def test_the_heat_map_is_explained_in_words_that_hold_on_a_dark_page_too(tmp_path):
    text = read(hostile_posterior().report(tmp_path / "report.html")).text
    assert "the stronger the colour, the more probable" in text
    assert "darker" not in text


def test_the_curves_have_the_areas_of_the_metrics():
    posterior = Posterior(all_dags(4), "ABCD", log_weights=np.random.default_rng(2).normal(size=543))
    truth = [("A", "B"), ("B", "C"), ("A", "D")]
    fpr, tpr = roc_points(posterior, truth).T
    assert np.trapezoid(tpr, fpr) == pytest.approx(metrics.auroc(posterior, truth))
    recall, precision = precision_recall_points(posterior, truth).T
    assert np.diff(recall, prepend=0) @ precision == pytest.approx(metrics.auprc(posterior, truth))
    assert roc_points(posterior, []).shape == precision_recall_points(posterior, []).shape == (0, 2)


def test_labels_fit_into_a_node_also_in_wide_letters():
    names = ["short", "exactly-eighteen-c", "a" * 40, "日" * 40, "line\nbreak"]
    assert truncated_names(names, 18) == [
        "short",
        "exactly-eighteen-c",
        "a" * 9 + "…" + "a" * 8,
        "日日日日…日日日日",
        "line break",
    ]


def test_labels_of_names_that_are_mostly_alike_show_where_they_differ(tmp_path):
    content = json.loads(read(noisy_posterior(5, 30, names=LONG_NAMES).report(tmp_path / "report.html")).json)
    assert content["graph"]["labels"] == [
        "mean_arte…systolic",
        "mean_arte…iastolic",
        "mean_arte…_at_rest",
        "concen…glucose_in…",
        "concen…insulin_in…",
    ]


@given(
    st.lists(st.text("a1234… \n日", max_size=40), min_size=1, max_size=12, unique=True), st.integers(12, 24)
)
def test_no_two_labels_are_alike_and_all_fit_whatever_the_names_are(names, width):
    labels = truncated_names(names, width)
    assert len(set(labels)) == len(names)
    assert max(map(num_columns, labels)) <= width


def test_a_label_that_is_numbered_differs_from_a_name_with_that_number():
    assert truncated_names(["same name", "same  name", "same name…2"], 18) == [
        "same name…1",
        "same name…5",
        "same name…2",
    ]


def test_labels_differ_wherever_names_do():
    rng = np.random.default_rng(0)
    for _ in range(300):
        lengths = rng.integers(1, 60, size=12)
        names = sorted({"".join(rng.choice(list("aaaab日"), size=length)) for length in lengths})
        labels = truncated_names([*names, "two  blanks", "two blanks"], 18)
        assert len(set(labels)) == len(names) + 2
        assert max(map(num_columns, labels)) <= 18
