"""Directions that the score forces are told as assumed, wherever an edge is told."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import gflowdag as gd
from gflowdag.display.console import print_posterior
from gflowdag.display.report.content import assumed_content
from gflowdag.display.report.words import findings
from gflowdag.errors import DataError, ScoreError


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    height = rng.normal(size=300)
    arm = np.where(rng.random(300) < 1 / (1 + np.exp(-3 * height)), "yes", "no")
    weight = height + rng.normal(size=300)
    return pd.DataFrame({"height": height, "arm": arm, "weight": weight})


@pytest.fixture(scope="module")
def posterior(frame: pd.DataFrame) -> gd.Posterior:
    return gd.ExactPosterior(score="conditional-gaussian", random_state=0).fit(frame).posterior_


def test_an_edge_between_kinds_is_marked_and_what_follows_from_it(posterior: gd.Posterior) -> None:
    assert posterior.edge_table()["assumed"].all()  # arm → height, and so height → weight; no arm → weight
    assert posterior.edge_probabilities().loc["arm", "height"] > 0.99  # the truth is the other direction
    assert any("Direction assumed" in note and "arm" in note for note in posterior.diagnostics().notes)


def test_an_assumed_direction_is_never_told_as_sure(posterior: gd.Posterior) -> None:
    sentences = findings(posterior)
    assert not any(sentence.startswith("Sure, direction") for sentence in sentences)
    assert any("direction assumed" in sentence and "arm – height" in sentence for sentence in sentences)
    shown = {frozenset(posterior.names[index] for index in pair) for pair in assumed_content(posterior)}
    table = posterior.edge_table().query("assumed")
    assert shown == {frozenset(pair) for pair in zip(table["source"], table["target"], strict=True)}
    out = io.StringIO()
    print_posterior(posterior, Console(file=out, width=100))
    assert "arm → height (assumed)" in out.getvalue()
    assert "Direction assumed" in " ".join(out.getvalue().split())


def test_a_stored_posterior_still_knows_what_was_assumed(posterior: gd.Posterior, tmp_path) -> None:
    posterior.save(tmp_path / "posterior.npz")
    found = gd.Posterior.load(tmp_path / "posterior.npz")
    np.testing.assert_array_equal(found.diagnosis.assumed_directions, posterior.diagnosis.assumed_directions)
    pd.testing.assert_frame_equal(found.edge_table(), posterior.edge_table())


def test_a_direction_that_the_data_chose_is_not_assumed() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 500))
    c = a + b + 0.5 * rng.normal(size=500)
    arm = rng.choice(["yes", "no"], 500)
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "d": rng.normal(size=500) + (arm == "yes"), "arm": arm})
    posterior = gd.ExactPosterior(score="conditional-gaussian", random_state=0).fit(frame).posterior_
    assumed = posterior.diagnosis.assumed_directions
    assert posterior.edge_probabilities().loc["a", "c"] > 0.9  # a and b collide in c
    names = list(posterior.names)
    assert not assumed[names.index("a"), names.index("c")]
    assert assumed[names.index("arm"), names.index("d")]
    assert any(
        sentence.startswith("Sure, direction") and "a → c" in sentence for sentence in findings(posterior)
    )


def test_what_knowledge_forbids_is_known_and_not_assumed(frame: pd.DataFrame) -> None:
    tiers = gd.Knowledge(tiers=[["arm"], ["height", "weight"]])
    score = gd.ConditionalGaussian()
    posterior = gd.ExactPosterior(score=score, knowledge=tiers, random_state=0).fit(frame).posterior_
    assert not posterior.edge_table()["assumed"].any()
    free = gd.ExactPosterior(score=score, random_state=0).fit(frame).posterior_
    assert free.diagnosis.knowledge is None


def test_a_score_with_all_directions_assumes_none(frame: pd.DataFrame) -> None:
    posterior = gd.ExactPosterior(score="degenerate-gaussian", random_state=0).fit(frame).posterior_
    assert posterior.diagnosis.assumed_directions is None
    assert not posterior.edge_table()["assumed"].any()
    assert posterior.edge_probabilities().loc["height", "arm"] > 0.1


def test_effects_of_a_mixed_table_are_refused_with_the_reason(
    posterior: gd.Posterior, frame: pd.DataFrame
) -> None:
    with pytest.raises(DataError, match=r"Effects are for continuous columns.*'arm'"):
        gd.total_effects(posterior, frame, source="height", target="arm")


def test_methods_that_cannot_leave_out_edges_or_test_both_kinds_refuse(frame: pd.DataFrame) -> None:
    with pytest.raises(ScoreError, match=r"BootstrapGES cannot leave out edges"):
        gd.BootstrapGES(score="conditional-gaussian").fit(frame)
    with pytest.raises(DataError, match=r"BootstrapPC needs columns of one kind"):
        gd.BootstrapPC(score="degenerate-gaussian").fit(frame)
