"""Answers of a finished run on the command line: statements, differences, effects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import gflowdag as gd
from gflowdag.cli.app import app
from gflowdag.errors import GFlowDAGError
from gflowdag.posterior.posterior import Posterior


def gflowdag(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    frame = gd.simulate.linear_gaussian(4, 60, random_state=3).frame
    return gd.fit(frame, method="exact", num_samples=50, random_state=0)


@pytest.fixture(scope="module")
def run(posterior: Posterior, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "posterior.npz"
    posterior.save(path)
    return path


def test_a_statement_is_answered_as_in_python(posterior: Posterior, run: Path) -> None:
    statement = "X1 -> X2 or X2 -> X1"
    (row,) = json.loads(gflowdag("query", run, statement, "--json").stdout)
    expected = posterior.probability(statement)
    assert (row["probability"], row["error"], row["exact"]) == (expected.probability, expected.error, False)
    told = gflowdag("query", run, "X1 - X2").stdout.splitlines()
    assert told[0] == f"X1 - X2: {posterior.probability('X1 - X2').probability:.4f}"
    assert told[1].startswith("Exact: ")


@pytest.mark.parametrize(
    ("words", "problem"),
    [(("X1", "-", "X2"), "in quotes"), (("X1 ->",), "at the end: expected a variable")],
)
def test_what_is_no_statement_is_refused(run: Path, words: tuple[str, ...], problem: str) -> None:
    answer = gflowdag("query", run, *words)
    assert isinstance(answer.exception, GFlowDAGError)
    assert problem in str(answer.exception)


def test_two_runs_are_compared_by_what_they_were_asked(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    gd.simulate.linear_gaussian(3, 60, random_state=3).frame.to_csv(table, index=False)
    for prior in ("fair", "edge"):
        made = gflowdag("fit", table, "--prior", prior, "--samples", "20", "--out", tmp_path / prior, "-q")
        assert made.exit_code == 0, made.output
    answer = json.loads(gflowdag("diff", tmp_path / "fair", tmp_path / "edge", "--json").stdout)
    assert {"prior"} <= {row["setting"] for row in answer["asked"]} <= {"prior", "prior_parameters.beta"}
    first, second = (Posterior.load(tmp_path / prior) for prior in ("fair", "edge"))
    assert answer["edges"] == first.difference(second).edges.to_dict(orient="records")
    told = gflowdag("diff", tmp_path / "fair", tmp_path / "edge").stdout
    assert "prior: fair → edge" in told
    assert "more than sampling noise" in told
    assert "0 edges of 6" in gflowdag("diff", tmp_path / "fair", tmp_path / "fair").stdout
