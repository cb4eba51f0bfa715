"""`check` shows columns and costs whatever is wrong, and ends in a command that works."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import Result
from typer.testing import CliRunner

import gflowdag as gd
from gflowdag.cli.app import app
from gflowdag.cli.inspect import examine
from gflowdag.cli.proposal import proposed
from gflowdag.data import Dataset
from gflowdag.data.read_options import ReadOptions
from gflowdag.errors import DataError, TooLargeError
from gflowdag.posterior.posterior import Posterior

RNG = np.random.default_rng(0)
ROWS = 60
NUMBERS = pd.DataFrame(RNG.normal(size=(ROWS, 3)), columns=["a", "b", "c"])
AGE = np.where(np.arange(ROWS) % 7 == 0, np.nan, RNG.normal(size=ROWS))
UNREADY = {
    "gaps": NUMBERS.assign(age=AGE),
    "half-empty": NUMBERS.assign(age=AGE, dose=np.where(np.arange(ROWS) < 50, np.nan, NUMBERS["a"] ** 2)),
    "constant without gaps": NUMBERS.assign(
        arm=["u"] * 30 + ["v"] * 30, late=np.where(np.arange(ROWS) < 29, 1.0 * np.arange(ROWS), np.nan)
    ),
    "dates": NUMBERS.assign(day=[f"2021-03-{row % 28 + 1:02d}" for row in range(ROWS)]),
    "identifiers": NUMBERS.assign(patient=[f"P{row}" for row in range(ROWS)]),
    "constant": NUMBERS.assign(flat=1.0, site="Wien"),
    "copies": NUMBERS.assign(twin=3 - 2 * NUMBERS["a"], total=NUMBERS["b"] + NUMBERS["c"]),
    "mixed": NUMBERS.assign(arm=RNG.choice(["u", "v", "w"], ROWS), sex=RNG.choice([1.0, 2.0], ROWS)),
    "numbers with few rows each": NUMBERS.assign(waist=np.arange(ROWS) % 10)[:40],
    "no name": NUMBERS.assign(note=["x"] * ROWS).rename(columns={"note": ""}),
    "everything": NUMBERS.assign(
        age=AGE, id=[f"P{row}" for row in range(ROWS)], day="2021-03-01", flat=1, sex=[1, 2] * 30
    ),
}


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize("name", UNREADY)
def test_the_proposed_command_works(name: str, tmp_path: Path) -> None:
    table = tmp_path / "t able.csv"
    UNREADY[name].to_csv(table, index=False)
    answer = call("check", str(table))
    (proposed,) = [line for line in answer.output.splitlines() if line.startswith("Next: ")]
    words = shlex.split(proposed.removeprefix("Next: gflowdag "))
    short = ["--samples", "10", "--completions", "8", "--method", "exact", "-q"]
    fitted = call(*words, *short, "--out", str(tmp_path / "run"))
    assert fitted.exit_code == 0, fitted.exception


def test_columns_and_costs_are_shown_beside_problems(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    UNREADY["everything"].to_csv(table, index=False)
    answer = call("check", str(table))
    assert isinstance(answer.exception, DataError)
    assert "3 problems" in str(answer.exception)  # missing cells are none
    for word in ("cannot be used", "parent-set-mcmc", "estimated time", "missing"):
        assert word in answer.output
    stored = json.loads(call("check", str(table), "--json").output)
    assert [column["name"] for column in stored["columns"]] == list(UNREADY["everything"])
    assert stored["columns"][3]["missing"] == 9
    assert stored["methods"]
    assert stored["problems"]
    assert stored["command"].startswith("gflowdag fit ")


def test_what_is_left_for_after_the_fit_is_said(tmp_path: Path) -> None:
    for name, later in (("dates", False), ("mixed", True)):
        table = tmp_path / f"{name}.csv"
        UNREADY[name].drop(columns="day", errors="ignore").to_csv(table, index=False)
        told = " ".join(call("check", str(table)).output.split())
        assert "speaks against it" in told
        assert ("shapes of the continuous columns are checked after the fit" in told) == later


def test_columns_and_costs_are_shown_where_nothing_helps(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    NUMBERS.head(1).assign(day="2021-03-01").to_csv(table, index=False)
    answer = call("check", str(table))
    assert "Too few rows" in str(answer.exception)
    assert "parent-set-mcmc" in answer.output
    assert "Next:" not in answer.output


def test_the_columns_are_those_of_the_proposed_command_and_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=50), "b": rng.normal(size=50)})
    frame.to_csv(path, index=False)
    said = "The columns as the command below takes them:"
    assert said not in call("check", str(path)).output
    frame.assign(same=1).to_csv(path, index=False)
    assert said in call("check", str(path)).output


def test_knowledge_of_another_table_does_not_hide_the_columns(tmp_path: Path) -> None:
    NUMBERS.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "k.toml").write_text('forbidden = [["a", "nobody"]]')
    answer = call("check", str(tmp_path / "t.csv"), "--knowledge", str(tmp_path / "k.toml"))
    assert "nobody" in str(answer.exception)
    assert "continuous" in answer.output
    assert "Next:" not in answer.output


@pytest.mark.parametrize("named", [("a,b",), ("a", "b")])
def test_exogenous_variables_are_an_option(named: tuple[str, ...], tmp_path: Path) -> None:
    frame = NUMBERS.assign(b=NUMBERS["a"] + 0.1 * NUMBERS["b"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = [word for name in named for word in ("--exogenous", name)]
    answer = call("check", str(tmp_path / "t.csv"), *options)
    (proposed,) = [line for line in answer.output.splitlines() if line.startswith("Next: ")]
    words = shlex.split(proposed.removeprefix("Next: gflowdag "))
    fitted = call(*words, "--method", "exact", "-q", "--out", str(tmp_path / "run"))
    assert fitted.exit_code == 0, fitted.exception
    post = Posterior.load(tmp_path / "run")
    assert post.edge_probabilities().loc[:, ["a", "b"]].to_numpy().max() == 0
    stored = json.loads((tmp_path / "run" / "config.json").read_text())
    assert stored["knowledge"]["exogenous"] == ["a", "b"]


def test_a_column_that_varies_is_not_called_constant() -> None:
    with pytest.raises(DataError, match=r"'arm' varies, .*missing in 'late' \(31 of 60 rows\)"):
        Dataset.from_frame(UNREADY["constant without gaps"], missing="drop")


def test_levels_and_kinds_are_those_of_the_whole_table() -> None:
    gaps = np.where(np.arange(ROWS) < 20, np.nan, RNG.normal(size=ROWS))
    frame = pd.DataFrame(
        {"arm": ["w"] * 20 + ["u", "v"] * 20, "stage": [*range(20)] + [1, 2] * 20, "x": gaps}
    )
    data = Dataset.from_frame(frame, missing="drop")
    assert data.levels[0] == ("u", "v", "w")
    assert data.kinds[1] == "continuous"  # two values are left of twenty
    assert any("No row has the level 'w' of 'arm'" in note for note in data.notes)


def test_a_table_that_lies_on_its_side_is_told_so(tmp_path: Path) -> None:
    side = NUMBERS.T.reset_index(names="gene")
    assert any("transpose the table (df.T)" in note for note in Dataset.from_frame(side).notes)
    side.assign(broken="x").to_csv(tmp_path / "t.csv", index=False)
    answer = call("check", str(tmp_path / "t.csv"))
    assert "'gene' seems to name variables" in str(answer.exception)
    assert "swap rows and columns in the file" in str(answer.exception)
    assert not any("transpose" in note for note in Dataset.from_frame(NUMBERS).notes)


@pytest.mark.parametrize(
    "cells", [[1, 2] * 30, [1.0, 2.0] * 30, [0.25, 0.75] * 30, [1, 2, 7] * 20, [1.0, 2.0, 7.0] * 20]
)
def test_few_values_are_levels_however_they_are_stored(cells: list[float]) -> None:
    data = Dataset.from_frame(pd.DataFrame({"v": cells, "w": RNG.choice(["x", "y"], 60)}))
    assert data.is_discrete
    assert data.levels[0] == tuple(sorted(set(cells)))
    assert any("few different numbers: v" in note and "continuous=['v']" in note for note in data.notes)
    assert Dataset.from_frame(pd.DataFrame({"v": cells}), continuous=["v"]).is_continuous


def test_names_of_rows_are_told_apart_from_levels() -> None:
    few = pd.DataFrame({"site": list("abcdefgh"), "arm": ["u", "v"] * 4, "x": RNG.normal(size=8)})
    (note,) = [note for note in Dataset.from_frame(few).notes if "identifiers" in note]
    assert "'site'" in note
    assert "drop=['site']" in note


def test_integers_and_floats_of_the_same_values_are_the_same_table() -> None:
    whole = pd.DataFrame({"v": [1, 2, 7] * 20})
    assert Dataset.from_frame(whole).sha256 == Dataset.from_frame(whole.astype(float)).sha256


def test_copies_of_levels_are_a_note_and_no_refusal(tmp_path: Path) -> None:
    words = pd.DataFrame({"a": RNG.choice(["x", "y"], 60), "b": RNG.choice(["x", "y"], 60)})
    words["twin"] = words["a"].map({"x": "no", "y": "yes"})
    words.to_csv(tmp_path / "t.csv", index=False)
    fitted = call("fit", str(tmp_path / "t.csv"), "--out", str(tmp_path / "run"))
    assert fitted.exit_code == 0, fitted.exception
    assert "'a' and 'twin' hold the same information" in " ".join(fitted.output.split())
    assert "--drop twin" in fitted.output


def messy(rows: int = 120) -> pd.DataFrame:
    """A clinical table as people have them: names, dates, a site, words and codes for gaps, a copy."""
    rng = np.random.default_rng(4)
    age = rng.normal(55, 12, rows).round()
    pressure = (120 + 0.5 * (age - 55) + rng.normal(0, 8, rows)).round(1)
    answer = np.where(rng.random(rows) < 1 / (1 + np.exp(-(pressure - 120) / 8)), "yes", "no")
    frame = pd.DataFrame(
        {
            "patient": [f"P{row}" for row in range(rows)],
            "visit": [f"2021-03-{row % 28 + 1:02d}" for row in range(rows)],
            "age": age,
            "arm": rng.choice(["drug", "placebo"], rows),
            "pressure": pressure,
            "crp": np.exp(rng.normal(0, 1, rows)).round(3),
            "answer": answer,
            "status": np.where(answer == "yes", 1, 0),
            "site": "Wien",
        }
    ).astype(object)
    frame.loc[3, "age"] = "."
    frame.loc[[7, 9], "pressure"] = -9999
    frame.loc[11, "crp"] = "<0.01"
    frame.loc[30, "arm"] = "?"
    return frame


def test_fit_yes_does_what_check_proposes_and_writes_it_down(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    messy().to_csv(table, index=False)
    answer = call("check", str(table))
    (proposed,) = [line for line in answer.output.splitlines() if line.startswith("Next: ")]
    assert "--drop patient,visit,site,status" in proposed
    assert "'arm=?,pressure=-9999,crp=<0.01'" in proposed
    assert "--transform crp=log" in proposed
    words = shlex.split(proposed.removeprefix("Next: gflowdag "))
    quick = ("--samples", "10", "--completions", "8", "-q", "--out")
    assert call(*words, *quick, str(tmp_path / "typed")).exit_code == 0
    decided = call("fit", str(table), "--yes", *quick, str(tmp_path / "decided"))
    assert decided.exit_code == 0, decided.exception
    typed, yes = (json.loads((tmp_path / run / "config.json").read_text()) for run in ("typed", "decided"))
    assert yes["data_sha256"] == typed["data_sha256"]
    assert yes["question_sha256"] == typed["question_sha256"]
    assert yes["drop"] == ["patient", "visit", "site", "status"]
    assert yes["missing_values"] == ["arm=?", "pressure=-9999", "crp=<0.01"]
    notes = Posterior.load(tmp_path / "decided").diagnosis.notes
    (note,) = [
        note for note in notes if note.startswith("Decided by check: --drop patient,visit,site,status")
    ]
    assert "5 of 9 columns and 120 of 120 rows are used" in note


def test_yes_adds_nothing_to_a_table_that_needs_nothing(tmp_path: Path) -> None:
    NUMBERS.to_csv(tmp_path / "t.csv", index=False)
    answer = call("fit", str(tmp_path / "t.csv"), "--yes", "-q", "--out", str(tmp_path / "run"))
    assert answer.exit_code == 0, answer.exception
    assert not [note for note in Posterior.load(tmp_path / "run").diagnosis.notes if "Decided" in note]


def test_numbers_with_few_rows_each_are_measurements(tmp_path: Path) -> None:
    frame = NUMBERS[:30].assign(waist=np.arange(30) % 9 + 30, grade=np.arange(30) % 3)
    proposal = proposed(frame)
    assert proposal is not None
    assert proposal.options.continuous == ("waist",)
    assert proposal.data.kinds[3:] == ("continuous", "discrete")
    said = proposed(frame, ReadOptions(discrete=["waist"]))
    assert said is not None
    assert not said.options.continuous


def test_a_skewed_column_with_gaps_is_transformed_beside_levels() -> None:
    crp = np.where(np.arange(ROWS) == 5, np.nan, np.exp(np.random.default_rng(1).normal(size=ROWS)))
    proposal = proposed(NUMBERS.assign(crp=crp, arm=["u", "v"] * 30))
    assert proposal is not None
    assert proposal.options.transform == {"crp": "log"}


def test_what_the_user_said_stays(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    messy().to_csv(table, index=False)
    answer = call("check", str(table), "--discrete", "status", "--transform", "rank")
    (proposed,) = [line for line in answer.output.splitlines() if line.startswith("Next: ")]
    assert "--discrete status" in proposed
    assert "--transform rank" in proposed
    assert "log" not in proposed


def test_yes_says_why_where_nothing_helps(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    answer = call("fit", str(tmp_path / "t.csv"), "--yes", "--out", str(tmp_path / "run"))
    assert isinstance(answer.exception, DataError)
    assert "Too few rows" in str(answer.exception)


def test_more_columns_than_memory_is_there_for_are_refused_before_they_are_read(monkeypatch) -> None:
    monkeypatch.setattr("gflowdag.estimators.parent_set_mcmc.total_memory", lambda: 100 << 20)
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(5, 60)))
    with pytest.raises(TooLargeError, match="60 variables are too many for parent-set-mcmc"):
        gd.fit(frame, method="parent-set-mcmc")
    monkeypatch.setattr("gflowdag.cli.inspect.table_problems", None)  # it must not come that far
    facts = examine(frame)
    assert (facts["rows"], facts["variables"], facts["options"]) == (5, 60, None)
    assert "and this machine has 100 MiB, enough for" in facts["refusal"]
    assert "leave out the others (drop)" in facts["refusal"]
    assert {row["method"] for row in facts["methods"]} >= {"exact", "parent-set-mcmc"}
