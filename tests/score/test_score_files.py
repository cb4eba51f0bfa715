"""Local scores go through a file and come back the same; files of other programs are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gflowdag as gd
from gflowdag.cli.app import app
from gflowdag.errors import DataError, FileFormatError, ScoreError
from gflowdag.graph import all_dags
from gflowdag.score import make_score, write_local_scores
from gflowdag.score.score_files import read_local_scores

# Written by pygobnilp 1.0 for `_rain()`: `learn("rain.dat", end="local scores", score="BDeu", alpha=1.0,
# palim=2, pruning=False)`, then `write_local_scores`. There is a blank after an empty set.
GOBNILP = """3
Rain 4
-29.602075027921188 0\x20
-31.231064279808344 1 Wet
-31.819258983071727 1 Sprinkler
-36.31754277217477 2 Sprinkler Wet
Sprinkler 4
-29.602075027921188 0\x20
-30.209032605242427 1 Wet
-31.819258983071727 1 Rain
-35.29551109760885 2 Rain Wet
Wet 4
-29.602075027921188 0\x20
-30.209032605242427 1 Sprinkler
-31.231064279808344 1 Rain
-34.70731639434547 2 Rain Sprinkler
"""

# Some sets alone, as after pruning, and variables in an order of their own.
PRUNED = """3
Rain 2
-11.25 1 Sprinkler
-12.5 0\x20
Wet 3
-5.5 2 Sprinkler Rain
-7.0 1 Rain
-20.125 0\x20
Sprinkler 1
-9.75 0\x20
"""


@pytest.fixture(scope="module")
def table() -> gd.Dataset:
    return gd.Dataset.from_frame(gd.simulate.discrete(4, 80, random_state=3).frame)


def test_scores_that_were_written_and_read_give_the_same_posterior(table: gd.Dataset, tmp_path: Path) -> None:
    score = make_score(table, score="bde", prior="uniform")
    number = write_local_scores(score, tmp_path / "all.jkl")
    assert number == 4 * 8
    again = make_score(table, score=str(tmp_path / "all.jkl"), prior="uniform")
    graphs = all_dags(4)
    np.testing.assert_array_equal(again.log_score(graphs), score.log_score(graphs))
    found, expected = (
        gd.fit(table, method="exact", score=one, prior="uniform", num_samples=10).edge_probabilities()
        for one in (gd.ScoreFile(tmp_path / "all.jkl"), "bde")
    )
    np.testing.assert_allclose(found, expected, atol=1e-12)


def _rain() -> gd.Dataset:
    values = np.random.default_rng(0).integers(2, size=(40, 3))
    return gd.Dataset.from_array(values, names=["Sprinkler", "Rain", "Wet"])


def test_the_scores_of_gobnilp_are_those_of_bdeu(tmp_path: Path) -> None:
    (tmp_path / "theirs.jkl").write_text(GOBNILP)
    write_local_scores(make_score(_rain(), score="bde"), tmp_path / "ours.jkl")
    theirs, ours = (
        read_local_scores(name, (tmp_path / name).read_text()) for name in ("theirs.jkl", "ours.jkl")
    )
    for name, sets in ours.items():
        assert theirs[name].keys() == sets.keys()
        for parents, value in sets.items():
            assert theirs[name][parents] == pytest.approx(value, abs=1e-10)  # sums of 24 lnΓ of float64


def test_sets_that_a_file_leaves_out_are_in_no_graph(tmp_path: Path) -> None:
    path = tmp_path / "scores.jkl"
    path.write_text(PRUNED)
    assert read_local_scores(path, PRUNED)["Wet"][frozenset({"Rain", "Sprinkler"})] == -5.5
    frame = _rain().to_frame()
    post = gd.fit(frame, score=str(path), prior="uniform", method="exact", num_samples=500)
    # Five graphs can be made of the listed sets: sets of Wet times those of Rain, none with a cycle.
    weights = np.exp([[-5.5 - 11.25, -7 - 11.25, -20.125 - 11.25], [-5.5 - 12.5, -7 - 12.5, -20.125 - 12.5]])
    p = post.edge_probabilities()
    assert p.loc["Sprinkler", "Rain"] == pytest.approx(weights[0].sum() / weights.sum())
    assert p.loc["Rain", "Wet"] == pytest.approx(weights[:, :2].sum() / weights.sum())
    assert p.loc["Wet", "Rain"] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "number of variables"),
        ("x\n", "is not a whole number, 0 or more"),
        ("1\nA 1\n", "a score, a number"),
        ("1\nA 1\nnan 0\n", "finite"),
        ("1\nA 1\n-1.0 1 B\n", "parent B"),
        ("1\nA 1\n-1.0 2 A\n", "a score, a number"),
        ("1\nA 1\n-1.0 1 A\n", "none of them the variable itself"),
        ("1\nA 1\n-1.0 0\nB 1\n", "goes on"),
        ("1\nA 0\n", "no parent sets"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(FileFormatError, match=problem):
        read_local_scores("bad.jkl", text)


def test_other_variables_are_refused(table: gd.Dataset, tmp_path: Path) -> None:
    (tmp_path / "other.jkl").write_text(PRUNED)
    with pytest.raises(DataError, match="no scores of"):
        gd.fit(table, score=str(tmp_path / "other.jkl"))
    with pytest.raises(ScoreError, match=r"Cannot read .*absent"):
        gd.ScoreFile(tmp_path / "absent.jkl")


def test_a_score_file_is_what_it_was_when_it_was_named(table: gd.Dataset, tmp_path: Path) -> None:
    path = tmp_path / "scores.jkl"
    write_local_scores(make_score(table, score="bde"), path)
    score, graphs = gd.ScoreFile(path), all_dags(4)
    before = make_score(table, score=score).log_score(graphs)
    path.write_text(PRUNED)
    np.testing.assert_array_equal(make_score(table, score=score).log_score(graphs), before)


def test_the_command_line_writes_and_reads_scores(tmp_path: Path) -> None:
    table, file = tmp_path / "table.csv", tmp_path / "scores.jkl"
    gd.simulate.discrete(3, 60, random_state=1).frame.to_csv(table, index=False)
    runner = CliRunner()
    told = runner.invoke(app, ["scores", str(table), "--to", str(file), "--score", "bde"])
    assert "12 parent sets" in told.stdout
    options = ["--prior", "uniform", "--samples", "20", "-q"]
    for name, which in (("a", ["--scores", str(file)]), ("b", ["--score", "bde"])):
        made = runner.invoke(app, ["fit", str(table), *which, *options, "--out", str(tmp_path / name)])
        assert made.exit_code == 0, made.output
    found, expected = (gd.Posterior.load(tmp_path / name).edge_probabilities() for name in "ab")
    np.testing.assert_allclose(found, expected, atol=1e-12)
    both = runner.invoke(app, ["fit", str(table), "--scores", str(file), "--score", "bde"])
    assert "leave out --score" in str(both.exception)


def test_no_remedy_is_tried_on_scores_that_cannot_follow_it(tmp_path: Path) -> None:
    table, file = tmp_path / "table.csv", tmp_path / "scores.jkl"
    rng = np.random.default_rng(0)
    pd.DataFrame(np.exp(1.5 * rng.normal(size=(200, 3))), columns=list("abc")).to_csv(table, index=False)
    runner = CliRunner()
    runner.invoke(app, ["scores", str(table), "--to", str(file)])
    options = ["--scores", str(file), "--samples", "20", "-q", "--out", str(tmp_path / "run")]
    made = runner.invoke(app, ["fit", str(table), *options])
    assert made.exit_code == 0, made.output
    model_fit = gd.Posterior.load(tmp_path / "run").diagnosis.model_fit
    assert model_fit is not None
    assert any(finding.remedy for finding in model_fit.findings)
    assert not any(finding.tried == "tried" for finding in model_fit.findings)
