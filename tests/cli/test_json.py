"""Every JSON that we write is read by a parser that knows the standard alone: no NaN, no Infinity."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import jax.numpy as jnp
import numpy as np
import pytest
from tallies import Tally
from typer.testing import CliRunner

import gflowdag as gd
from gflowdag.cli.app import app
from gflowdag.estimators import estimator_class
from gflowdag.gflownet.checkpoint import append_metrics, save_checkpoint
from gflowdag.posterior import runs
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.imputation import Imputation
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.checkpoints import CHECKPOINT
from gflowdag.runtime.files import file_size, read_npz

FILES = Path(__file__).parent / "files"
COMMANDS = {
    "fit": ("fit", "table.csv", "--method", "mc3", "--samples", "20", "--out", "run"),
    "check": ("check", "table.csv"),
    "query": ("query", "done", "edge", "x"),
    "effect": ("effect", "done", "x", "y", "--table", "table.csv"),
    "diff": ("diff", "done", "done"),
    "next_": ("next", "done", "--table", "table.csv", "--rows", "5"),
    "compare": ("compare", "table.csv", "--methods", "mc3,dibs", "--samples", "20", "--report", "c.html"),
    "datasets": ("datasets",),
    "doctor": ("doctor",),
}
NOT_FINITE = Diagnostics(
    pareto_k=-np.inf,
    ess=np.nan,
    r_hat=np.inf,
    acceptance={"add": np.nan},
    score_traces=np.array([[1.0, -np.inf, np.nan, 2.0]]),
    extra={"elbo": -np.inf, "array": np.array([np.nan, 1.0])},
    imputation=Imputation(missing_cells=3, completions=10, num_chains=4, r_hat=np.inf),
)


def strictly(text: str) -> Any:
    """What a strict parser reads; Python's own takes words that are no JSON."""

    def refuse(word: str) -> NoReturn:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table, and the folder `done` of a run; every method answers with values that are not finite."""
    shutil.copy(FILES / "table.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    graphs = np.zeros((4, 3, 3), dtype=bool)
    graphs[:2, 0, 1] = True
    posterior = Posterior(graphs, "xyz", "mc3", log_evidence=math.nan, diagnosis=NOT_FINITE)
    for method in ("mc3", "dibs"):
        monkeypatch.setattr(estimator_class(method), "_infer", lambda *_: posterior)
    with runs.Run.start(tmp_path / "done", {"data": "table.csv", "bound": math.inf}) as run:
        append_metrics(run.folder, {"step": 1, "loss": math.nan, "gap": -math.inf})
        append_metrics(run.folder, {"step": 2, "loss": 0.5, "gap": 1.0})
        run.finish(posterior, note=math.nan)
    return tmp_path


def test_every_command_that_prints_json_is_tried_here() -> None:
    commands = [command.callback for command in app.registered_commands if command.callback is not None]
    printing = {command.__name__ for command in commands if "json" in command.__annotations__}
    assert printing == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_prints_is_strict_json(command: str, folder: Path, tally: Tally) -> None:
    answer = CliRunner().invoke(app, [*COMMANDS[command], "--json"])
    assert answer.exit_code == 0, answer.output
    assert strictly(answer.stdout)
    if command == "fit":
        diagnostics = strictly(answer.stdout)["diagnostics"]
        assert (diagnostics["pareto_k"], diagnostics["r_hat"]) == ("-Infinity", "Infinity")
        assert diagnostics["ess"] is None
        assert (diagnostics["imputation"]["missing_cells"], diagnostics["imputation"]["r_hat"]) == (
            3,
            "Infinity",
        )
    tally("exports", f"JSON of {command}", tried=1)


def test_an_export_is_strict_json(folder: Path) -> None:
    answer = CliRunner().invoke(app, ["export", "done", "--format", "json"])
    assert strictly(answer.stdout)["names"] == ["x", "y", "z"]


def test_the_files_of_a_run_are_strict_json(folder: Path) -> None:
    done = folder / "done"
    assert strictly((done / runs.CONFIG).read_text())["bound"] == "Infinity"
    assert strictly((done / runs.MANIFEST).read_text())["note"] is None
    rows = [strictly(line) for line in (done / runs.METRICS).read_text().splitlines()]
    assert rows[0] == {"step": 1, "loss": None, "gap": "-Infinity"}
    meta = strictly(str(read_npz(done / runs.POSTERIOR, max_bytes=1 << 20)["meta"]))
    assert meta["diagnostics"]["pareto_k"] == "-Infinity"
    assert meta["extra"]["array"] == [None, 1.0]


def test_the_numbers_in_a_report_are_strict_json(folder: Path) -> None:
    posterior = Posterior.load(folder / "done")
    posterior = replace(posterior, log_scores=np.array([1.0, -np.inf, 2.0, 3.0]))
    others = {"other": posterior.with_diagnostics(pareto_k=np.inf)}
    page = posterior.report(folder / "r.html", history=runs.read_metrics(folder / "done"), others=others)
    text = page.read_text(encoding="utf-8").partition('id="content"')[2].partition(">")[2]
    traces = {trace["title"]: trace for trace in strictly(text.partition("</script>")[0])["traces"]}
    assert traces["gap"]["lines"] == [[None, 1.0]]  # the curve has a gap where there is no number
    assert traces["log score of each chain"]["lines"] == [[1.0, None, None, 2.0]]


def test_the_header_of_a_checkpoint_is_strict_json(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, {"weights": jnp.array([jnp.nan])}, "print")
    path = tmp_path / CHECKPOINT
    assert strictly(str(read_npz(path, max_bytes=file_size(path))["header"]))["fingerprint"] == "print"


def test_infinities_in_a_history_are_numbers_again(folder: Path) -> None:
    first, _ = runs.read_metrics(folder / "done")
    assert first == {"step": 1, "loss": None, "gap": -math.inf}
    axes = gd.plot.traces(runs.read_metrics(folder / "done"), value="loss")
    assert len(axes.lines[0].get_xdata()) == 1  # the row without a loss is left out
