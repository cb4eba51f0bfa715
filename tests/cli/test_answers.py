"""Answers of a finished run on the command line: statements, differences, effects."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import gflowdag as gd
from gflowdag.cli.app import app
from gflowdag.display.digest import digest
from gflowdag.display.report.words import findings
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
    assert (row["probability"], row["error"], row["exact"]) == (expected.probability, 0, True)
    told = gflowdag("query", run, "X1 - X2").stdout.splitlines()
    assert told[0] == f"X1 - X2: {posterior.probability('X1 - X2').probability:.4f}, exactly"
    assert told[1].startswith("Exact: ")


def test_a_number_of_a_doubtful_model_says_so_in_its_own_line(tmp_path: Path) -> None:
    frame = gd.simulate.linear_gaussian(3, 200, random_state=1).frame
    frame.iloc[7, 0] = 60 * frame.iloc[:, 0].std()  # an outlier
    posterior = gd.fit(frame, method="exact", num_samples=50, random_state=0)
    run = tmp_path / "posterior.npz"
    posterior.save(run)
    told = gflowdag("query", run, "X1 -> X2").stdout.splitlines()
    assert told[0].endswith(", if the model is right")
    assert [line.split(":")[0] for line in told[1:]] == ["Exact", "Doubtful"]
    (row,) = json.loads(gflowdag("query", run, "X1 -> X2", "--json").stdout)
    assert row["model_doubtful"]
    assert any("Surely connected if the model is right" in sentence for sentence in findings(posterior))
    assert "the table speaks against it" in digest(posterior, rest="the report", language="python").closing


@pytest.mark.parametrize(
    ("words", "problem"),
    [(("X1", "-", "X2"), "in quotes"), (("X1 ->",), "at the end: expected a variable")],
)
def test_what_is_no_statement_is_refused(run: Path, words: tuple[str, ...], problem: str) -> None:
    answer = gflowdag("query", run, *words)
    assert isinstance(answer.exception, GFlowDAGError)
    assert problem in str(answer.exception)


def test_two_runs_are_compared_by_their_settings(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    gd.simulate.linear_gaussian(3, 60, random_state=3).frame.to_csv(table, index=False)
    for prior in ("fair", "edge"):
        made = gflowdag("fit", table, "--prior", prior, "--samples", "20", "--out", tmp_path / prior, "-q")
        assert made.exit_code == 0, made.output
    answer = json.loads(gflowdag("diff", tmp_path / "fair", tmp_path / "edge", "--json").stdout)
    assert {"prior"} <= {row["setting"] for row in answer["settings"]} <= {"prior", "prior_parameters.beta"}
    first, second = (Posterior.load(tmp_path / prior) for prior in ("fair", "edge"))
    assert answer["edges"] == first.difference(second).edges.to_dict(orient="records")
    told = gflowdag("diff", tmp_path / "fair", tmp_path / "edge").stdout
    assert "prior: fair → edge" in told
    assert "more than sampling noise" in told
    assert "0 edges of 6" in gflowdag("diff", tmp_path / "fair", tmp_path / "fair").stdout


def test_effects_are_those_of_python(posterior: Posterior, run: Path) -> None:
    (row,) = json.loads(gflowdag("effect", run, "X1", "X3", "--json").stdout)
    expected = posterior.effect("X1", "X3").to_dict()
    assert {name: row[name] for name in ("mean", "lower", "upper", "probability")} == {
        name: expected[name] for name in ("mean", "lower", "upper", "probability")
    }
    told = gflowdag("effect", run, "X1", "X3", "--given", "X1 -> X3").stdout
    assert "X1 on X3: One unit more of X1 raises X3 by the effect." in told
    assert "any effect with probability 1.0000" in told
    assert "no hidden common cause" in told
    assert len(json.loads(gflowdag("effect", run, "X1", "--json").stdout)) == 3
    assert len(json.loads(gflowdag("effect", run, "--json").stdout)) == 12
    assert "12" not in gflowdag("effect", run).stdout.splitlines()[0]


def test_effects_of_discrete_tables_are_distributions(tmp_path: Path) -> None:
    frame = gd.simulate.discrete(3, 60, random_state=1).frame
    post = gd.fit(frame, method="exact", num_samples=20, random_state=0)
    replace(post, parameters=None).save(tmp_path / "posterior.npz")
    frame.to_csv(tmp_path / "table.csv", index=False)
    missing = gflowdag("effect", tmp_path, "X1", "X2")
    assert "--table TABLE" in str(missing.exception)
    answer = gflowdag("effect", tmp_path, "X1", "X2", "--table", tmp_path / "table.csv", "--json")
    (row,) = json.loads(answer.stdout)
    assert row["distribution"] == post.effect("X1", "X2").to_dict()["distribution"]
    told = gflowdag("effect", tmp_path, "X1", "X2", "--table", tmp_path / "table.csv").stdout
    assert "P(X2 = … | do(X1 = …))" in told


def test_two_settings_of_a_cause_are_compared(tmp_path: Path) -> None:
    frame = gd.simulate.discrete(3, 60, random_state=1).frame
    post = gd.fit(frame, method="exact", num_samples=20, random_state=0)
    post.save(tmp_path / "posterior.npz")
    found = post.effect("X1", "X2")
    to, base = (str(level) for level in found.cause_levels[:2])
    rows = json.loads(gflowdag("effect", tmp_path, "X1", "X2", "--to", to, "--base", base, "--json").stdout)
    for row, level in zip(rows, found.outcome_levels, strict=True):
        assert row["difference"] == found.difference(level, *found.cause_levels[:2]).to_dict()
        assert row["ratio"] == found.ratio(level, *found.cause_levels[:2]).to_dict()
    told = gflowdag("effect", tmp_path, "X1", "X2", "--to", to, "--base", base).stdout
    assert f"X1 set to {to}, compared with {base}" in told
    assert "--base LEVEL" in str(gflowdag("effect", tmp_path, "X1", "X2", "--to", to).exception)
    assert "X1 has no level '9'" in str(
        gflowdag("effect", tmp_path, "X1", "X2", "--to", "9", "--base", base).exception
    )


def test_settings_of_a_linear_effect_are_not_compared(run: Path) -> None:
    assert "linear" in str(gflowdag("effect", run, "X1", "X2", "--to", "1", "--base", "0").exception)


def test_one_pair_has_its_density_and_all_pairs_their_meaning(posterior: Posterior, run: Path) -> None:
    (row,) = json.loads(gflowdag("effect", run, "X1", "X3", "--json").stdout)
    draws = posterior.effect("X1", "X3").draws
    assert row["density"]["value"] == list(draws.density()["value"])
    assert row["density"]["mass_at_none"] == pytest.approx(1 - draws.probability)
    assert "raises the outcome by so much" in gflowdag("effect", run).stdout


def test_the_next_experiment_is_that_of_python(posterior: Posterior, run: Path) -> None:
    options = ("--rows", "20", "--outcomes", "20")
    answer = json.loads(gflowdag("next", run, *options, "--about", "X1 ~> X2", "--json").stdout)
    expected = posterior.next_experiments(about="X1 ~> X2", num_rows=20, num_outcomes=20)
    assert answer == expected.to_dict()
    told = gflowdag("next", run, *options, "--targets", "X1, X3").stdout
    assert "20 rows tells most about the graph" in told
    assert "nothing" in told
    assert "X2" not in told.split("gain, nats")[1]
    assert "Exact: " in told
