"""`check` and `fit` say whether the model fits; the options that they propose work as they are printed."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gflowdag as gd
from gflowdag.cli.app import app

NOISE = np.random.default_rng(5).normal(size=(200, 3))
PLANTED = {
    "skewed": pd.DataFrame(np.exp(NOISE), columns=["a b", "c,d", "e"]),
    "heavy": pd.DataFrame(NOISE / np.abs(NOISE[:, ::-1]), columns=["a", "b", "c"]),
    "two-valued": pd.DataFrame(NOISE, columns=["a", "b", "sex"]).assign(
        sex=np.where(NOISE[:, 0] > 0, 1.5, 2.5)
    ),
    "determined": pd.DataFrame(NOISE, columns=["a", "b", "c"]).assign(
        c=NOISE[:, 0] + NOISE[:, 1] + 1e-4 * NOISE[:, 2]
    ),
}


def run(*arguments: str) -> str:
    answer = CliRunner().invoke(app, list(arguments))
    assert answer.exit_code == 0, answer.output
    return answer.output


@pytest.mark.parametrize("name", PLANTED)
def test_every_remedy_that_check_prints_can_be_typed(name: str, tmp_path: Path) -> None:
    PLANTED[name].to_csv(tmp_path / "t.csv", index=False)
    data = gd.Dataset.from_frame(PLANTED[name], kinds="continuous")
    from gflowdag.posterior.model_fit import check_table

    found = [finding for finding in check_table(data).findings if finding.remedy]
    assert found
    numbers = [part for column in PLANTED[name] for part in ("--continuous", column)]
    printed = " ".join(run("check", str(tmp_path / "t.csv"), *numbers).split())
    for finding in found:
        typed = finding.remedy.text("command line")
        assert typed in printed
        run("check", str(tmp_path / "t.csv"), *shlex.split(typed))


def test_check_and_fit_hold_the_findings_in_their_json(tmp_path: Path) -> None:
    PLANTED["skewed"].to_csv(tmp_path / "t.csv", index=False)
    before = json.loads(run("check", str(tmp_path / "t.csv"), "--json"))["model_fit"]["findings"]
    answer = json.loads(run("fit", str(tmp_path / "t.csv"), "--json", "--out", str(tmp_path / "run")))
    after = answer["diagnostics"]["model_fit"]["findings"]
    assert {finding["check"] for finding in before} == {finding["check"] for finding in after} == {"skewness"}
    assert before[0]["change"] is None
    assert 0 <= after[0]["change"]["after"] <= 1
    assert "Doubtful" in (tmp_path / "run" / "report.html").read_text("utf-8")


def test_max_parents_is_an_option_and_a_part_of_the_question(tmp_path: Path) -> None:
    frame = pd.DataFrame(NOISE, columns=["a", "b", "c"])
    frame["c"] += frame["a"] + frame["b"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    run("fit", str(tmp_path / "t.csv"), "--max-parents", "1", "-q", "--out", str(tmp_path / "run"))
    post = gd.Posterior.load(tmp_path / "run")
    assert post.samples.sum(axis=1).max() == 1
    assert json.loads((tmp_path / "run" / "config.json").read_text())["knowledge"]["max_parents"] == 1


def test_the_demo_shows_what_the_scale_changes(tmp_path: Path) -> None:
    text = run("demo", "--out", str(tmp_path / "run"))
    assert "Doubtful" in text
    assert re.search(
        r"as measured: (\d+) arrows above 0.9; the published graph has \1 of them the other way", text
    )
    assert "--transform log, or rank" in " ".join(text.split())
