"""The report as a file: escaped, small, reproducible, and with the posterior's own numbers in it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from report_posteriors import HOSTILE_NAMES, hostile_posterior, noisy_posterior

import gflowdag as gd
from gflowdag import metrics
from gflowdag.graph import all_dags
from gflowdag.posterior import Posterior
from gflowdag.report.content import label
from gflowdag.report.curves import precision_recall_points, roc_points
from gflowdag.report.words import findings


class _Page(HTMLParser):
    """Elements, text, the embedded JSON and everything that could load something."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.sources: list[str] = []
        self.text = ""
        self.json = ""
        self._inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.ids.append(attributes.get("id") or "")
        self.sources += [attributes[name] or "" for name in ("src", "href") if name in attributes]
        self._inside = "json" if attributes.get("id") == "content" else tag

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside == "json":
            self.json += data
        elif self._inside not in ("script", "style"):
            self.text += data


def read(path) -> _Page:
    return _Page(path.read_text(encoding="utf-8"))


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
    content = json.loads(read(posterior.report(tmp_path / "report.html")).json)
    # Six significant digits are written.
    assert np.allclose(content["graph"]["edges"], posterior.edge_probabilities(), rtol=1e-5)
    assert np.allclose(
        content["graph"]["unweighted"], posterior.edge_probabilities(weighted=False), rtol=1e-5
    )
    assert np.allclose(content["graph"]["blankets"], posterior.markov_blanket_probabilities(), rtol=1e-3)
    assert len(content["pairs"]) == 15
    assert content["distributions"]["edges"]["mean"] == pytest.approx(
        metrics.expected_edges(posterior), rel=1e-5
    )
    assert sum(content["distributions"]["scores"]["mass"]) == pytest.approx(1.0, rel=1e-5)


def test_a_class_is_shown_as_its_cpdag_with_the_number_of_its_members(tmp_path):
    chain, reverse, collider = np.zeros((3, 3, 3), dtype=bool)
    chain[0, 1] = chain[1, 2] = reverse[2, 1] = reverse[1, 0] = collider[0, 2] = collider[1, 2] = True
    posterior = Posterior(np.stack([chain, chain, reverse, collider]), "abc")
    classes = json.loads(read(posterior.report(tmp_path / "report.html")).json)["classes"]
    first, second = classes["shown"]
    assert first["probability"] == 0.75
    assert first["undirected"] == [[0, 1], [1, 2]]
    assert first["directed"] == []
    assert (first["members"], first["sampled"]) == ("3", 2)
    assert second["directed"] == [[0, 2], [1, 2]]


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
    ("details", "expected"),
    [
        ({"verdict": "exact", "explanation": "All were summed."}, "no sampling error"),
        ({"verdict": "trusted", "explanation": "", "ess": 0.4, "pareto_k": 0.3}, "passed"),
        ({"verdict": "not converged", "explanation": "", "r_hat": 1.4}, "Do not draw conclusions"),
        ({"verdict": "not converged", "explanation": "", "r_hat": np.inf}, "∞"),
        ({"verdict": "not converged", "explanation": "", "effective_samples": 90.0}, "at least 400 needed"),
        ({}, "Nothing vouches"),
        ({}, "No check of its own"),
        ({"verdict": "unverified", "explanation": "", "r_hat": 1.0, "ess": 0.4}, "do not cover the whole"),
    ],
)
def test_the_verdict_is_said_in_words(details, expected, tmp_path):
    posterior = noisy_posterior(4, 30, details=details, log_evidence=-12.5, log_evidence_error=0.03)
    text = read(posterior.report(tmp_path / "report.html")).text
    assert expected in text
    assert "−12.5000 ± 0.03" in text


def test_long_traces_are_thinned_and_keep_both_ends(tmp_path):
    chains = np.arange(3000.0).reshape(3, 1000)
    posterior = noisy_posterior(
        4, 30, details={"verdict": "trusted", "explanation": "", "score_traces": chains}
    )
    history = [{"step": step, "seconds": 0.1, "loss": 1 / step, "note": "text"} for step in range(1, 2001)]
    loss, scores = json.loads(read(posterior.report(tmp_path / "report.html", history=history)).json)[
        "traces"
    ]
    assert (loss["title"], loss["x"][0], loss["x"][-1], len(loss["x"])) == ("loss", 1, 2000, 400)
    assert [len(line) for line in scores["lines"]] == [400, 400, 400]
    assert scores["lines"][2][-1] == 2999


def test_diagnostics_that_are_not_finite_do_not_break_the_page(tmp_path):
    posterior = noisy_posterior(4, 30, details={"verdict": "exact", "explanation": "", "pareto_k": -np.inf})
    assert read(posterior.report(tmp_path / "report.html")).json


def test_findings_tell_sure_edges_from_open_directions():
    certain = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype=bool)
    open_ = np.stack([certain, certain])
    open_[0, 1, 2] = open_[1, 2, 1] = True
    text = " ".join(findings(Posterior(open_, "ABC")))
    assert "90 % or more): A → B." in text
    assert "direction open: B – C." in text


def pair_posterior(*pairs: tuple[float, float]) -> Posterior:
    """Variables A, B, C, …; the first two have edges of these probabilities (→, ←), then the next two, …"""
    d = 2 * len(pairs)
    marginals = np.zeros((d, d))
    for k, (forward, reverse) in enumerate(pairs):
        marginals[2 * k, 2 * k + 1], marginals[2 * k + 1, 2 * k] = forward, reverse
    return Posterior(np.zeros((1, d, d), dtype=bool), "ABCDEFGHIJKLMNOP"[:d], marginals=marginals)


def test_findings_name_every_strong_connection_once_and_the_surest_first():
    posterior = pair_posterior(
        (0.95, 0.05), (0.872, 0.128), (0.894, 0.106), (0.7, 0.06), (0.4, 0.45), (0.5, 0.42), (0.3, 0.1)
    )
    assert findings(posterior)[1:] == [
        "Sure, direction included (90 % or more): A → B.",
        "Surely connected, most likely in this direction: E → F, C → D.",
        "Surely connected, but the data leave the direction open: K – L.",
        "Probably connected (75 to 90 %): J – I, G – H.",
        "Undecided whether connected at all (25 to 75 %): M – N.",
    ]


def test_findings_count_what_they_do_not_name():
    text = " ".join(findings(pair_posterior(*[(0.85, 0.1)] * 8)))
    assert "No edge is sure together with its direction" in text
    assert "I → J, K → L and 2 more." in text


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


def test_labels_fit_into_a_node_also_in_wide_letters():
    assert label("short") == "short"
    assert label("exactly-eighteen-c") == "exactly-eighteen-c"
    assert label("a" * 40) == "a" * 17 + "…"
    assert label("日" * 40) == "日" * 8 + "…"
    assert label("line\nbreak") == "line break"
