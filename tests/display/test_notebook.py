"""What a notebook shows of a posterior and of an estimator."""

from __future__ import annotations

import pytest
from report_posteriors import HOSTILE_NAMES, hostile_posterior, noisy_posterior

import gflowdag as gd
from gflowdag.display.notebook import comparison_html


@pytest.fixture(scope="module")
def frame():
    return gd.simulate.linear_gaussian(4, 80, random_state=5).frame


def test_a_notebook_shows_verdict_evidence_and_edges(frame) -> None:
    post = gd.fit(frame)
    html = post._repr_html_()
    first = post.edge_table().iloc[0]
    assert type(html) is str
    assert "Exact" in html
    assert f"{post.log_evidence:.4f}" in html
    assert f"{first.source} → {first.target}" in html


def test_a_notebook_expects_nothing_of_what_nothing_vouches_for() -> None:
    html = noisy_posterior(5, 50)._repr_html_()
    assert "edges on average in the samples" in html
    assert "expected" not in html


def test_hostile_names_are_text_in_a_notebook() -> None:
    html = hostile_posterior()._repr_html_()
    assert "&lt;script&gt;" in html
    assert "<script" not in html
    assert "<img" not in html


def test_a_notebook_shows_the_methods_side_by_side_and_why_one_failed(frame) -> None:
    methods = {"exact": gd.ExactPosterior(num_samples=5), "small": gd.ExactPosterior(max_variables=2)}
    html = comparison_html(gd.compare(methods, data=frame))
    assert type(html) is str
    assert "2 methods side by side" in html
    assert '<td style="text-align: left">exact</td>' in html
    assert f">{gd.fit(frame).log_evidence:.2f}</td>" in html
    assert "small failed:</strong> the exact posterior over 4 variables" in html


def test_hostile_methods_are_text_in_a_notebook() -> None:
    posterior = noisy_posterior(4, 20)
    html = comparison_html(gd.Comparison({HOSTILE_NAMES[0]: posterior}, failures={"b": HOSTILE_NAMES[1]}))
    assert "&lt;script&gt;" in html
    assert "<script" not in html
    assert "<img" not in html


def test_a_fitted_estimator_shows_itself_in_a_notebook(frame) -> None:
    estimator = gd.ExactPosterior(num_samples=5).fit(frame)
    assert "ExactPosterior" in estimator._repr_mimebundle_()["text/html"]
