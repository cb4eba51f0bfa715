"""The panels of effects and of the next experiment: what they choose, and what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_posteriors import HOSTILE_NAMES, noisy_posterior
from report_reader import read

import gflowdag as gd
from gflowdag.display.report.answers import effects, experiments
from gflowdag.graph import erdos_renyi
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.deadline import Deadline


@pytest.fixture(scope="module")
def linear() -> Posterior:
    """A chain with a strong and a weak link; knowledge of the order leaves no direction open."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    b = 3 * a + rng.normal(size=300)
    c = 0.4 * b + 2 * rng.normal(size=300)
    frame = pd.DataFrame({"a": a, "b": b, "c": c})
    known = gd.Knowledge(tiers=[["a"], ["b"], ["c"]])
    return gd.fit(frame, knowledge=known, method="exact", random_state=0)


def test_the_strongest_effects_come_first_in_the_numbers_of_effect(linear: Posterior) -> None:
    rows = effects(linear).rows
    assert [(row.cause, row.outcome) for row in rows] == [("a", "b"), ("b", "c"), ("a", "c")]
    one: Any = linear.effect("a", "b", num_draws=2000)
    assert rows[0].values == (one.draws.median(), *one.draws.interval())
    assert rows[0].bar == pytest.approx([value / 3.2 for value in rows[0].values], rel=0.1)  # in deviations
    assert rows[0].meaning == "One unit more of a raises b by the effect."


def test_where_effects_take_long_the_report_has_fewer_and_says_so(linear: Posterior) -> None:
    found = effects(linear, Deadline.after(0.0))
    assert [(row.cause, row.outcome) for row in found.rows] == [("a", "b")]
    assert found.left_out == 2


def test_of_levels_the_largest_difference_is_told() -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(3, size=400)
    b = np.where(rng.random(400) < np.array([0.1, 0.2, 0.9])[a], "yes", "no")
    frame = pd.DataFrame({"a": pd.Categorical(a), "b": b})
    post = gd.fit(frame, knowledge=gd.Knowledge(tiers=[["a"], ["b"]]), method="exact", random_state=0)
    (row,) = effects(post).rows
    assert row.meaning == "P(b = yes) with a = 2, less that with 0."
    assert row.values[0] == pytest.approx(0.8, abs=0.1)
    assert row.bar == row.values


def test_of_both_kinds_means_are_compared(tmp_path) -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(2, size=300)
    frame = pd.DataFrame({"a": pd.Categorical(a), "x": 5.0 * a + rng.normal(size=300)})
    post = gd.fit(frame, knowledge=gd.Knowledge(tiers=[["a"], ["x"]]), method="exact", random_state=0)
    (row,) = effects(post).rows
    assert row.meaning == "x with a = 1, less that with 0."
    assert row.values[0] == pytest.approx(5, abs=0.5)
    assert experiments(post) is None  # its parameters cannot be integrated out
    text = read(post.report(tmp_path / "r.html", data=gd.Dataset.from_frame(frame))).text
    assert "2 variables (1 continuous, 1 discrete)" in text


def test_the_next_experiment_is_that_of_next_experiments() -> None:
    frame = gd.simulate.linear_gaussian(4, 200, noise_variance=1.0, random_state=1).frame
    post = gd.fit(frame, method="exact", num_samples=150, random_state=0)
    panel = experiments(post)
    assert panel is not None
    again = post.next_experiments(num_rows=100, num_outcomes=60, targets=list(post.names))
    assert panel.found.summary() == again.summary()
    assert panel.left_out == 0
    unsure = post.with_diagnostics(verdict="not converged")
    assert experiments(unsure) is None


def test_a_report_has_the_panels_and_one_without_a_table_has_none(linear: Posterior, tmp_path) -> None:
    page = read(linear.report(tmp_path / "a.html"))
    assert "effects" in page.ids
    assert "a on b" in page.text
    assert "next" not in page.ids or "What to try next" in page.text
    bare = read(noisy_posterior(5, 30).report(tmp_path / "b.html"))
    assert "effects" not in bare.ids
    assert "next" not in bare.ids


def test_names_of_a_panel_are_only_text(tmp_path) -> None:
    frame = gd.simulate.linear_gaussian(3, 100, noise_variance=1.0, random_state=0).frame
    frame.columns = HOSTILE_NAMES[:3]
    post = gd.fit(frame, method="exact", random_state=0, num_samples=50)
    page = read(post.report(tmp_path / "r.html"))
    assert "img" not in page.tags
    assert page.tags.count("script") == 2


def test_options_are_not_broken_by_the_end_of_a_line(linear: Posterior, tmp_path) -> None:
    told = linear.with_diagnostics(explanation="Use --resume & <b>--budget</b> again.")
    path = told.report(tmp_path / "r.html")
    html = path.read_text(encoding="utf-8")
    assert '<span class="option">--resume</span> &amp; &lt;b&gt;<span class="option">--budget</span>' in html
    assert "Use --resume & <b>--budget</b> again." in read(path).text


def test_where_many_rows_tell_all_that_the_graphs_can_show_fewer_are_compared() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 10)) @ (np.eye(10) + np.triu(rng.normal(size=(10, 10)), 1))
    graphs = np.array([erdos_renyi(10, 20, rng) for _ in range(8)])
    few = Posterior(graphs, list("abcdefghij"), diagnosis=Diagnostics("trusted", ""))
    post = few.with_parameters(pd.DataFrame(x, columns=few.names))
    many = post.next_experiments(num_rows=100, num_outcomes=60)
    assert many.tells_nearly_all
    assert "fewer rows" in many.summary()
    panel = experiments(post)
    assert panel is not None
    assert panel.found.num_rows < 100
    assert not panel.found.tells_nearly_all


def test_the_largest_effects_of_levels_come_first() -> None:
    """Of two causes of one outcome, and a common cause that makes the weaker look strong."""
    rng = np.random.default_rng(4)
    a = rng.random(2000) < 0.5
    b = rng.random(2000) < np.where(a, 0.95, 0.05)
    c = rng.random(2000) < np.where(a, 0.8, 0.2) + np.where(b, 0.1, -0.1)
    frame = pd.DataFrame({"a": a, "b": b, "c": c}).astype("category")
    post = gd.fit(frame, knowledge=gd.Knowledge(tiers=[["a"], ["b"], ["c"]]), method="exact", random_state=0)
    sizes = [row.size for row in effects(post).rows]
    assert sizes == sorted(sizes, reverse=True)
    assert [(row.cause, row.outcome) for row in effects(post).rows][-1] == ("b", "c")
