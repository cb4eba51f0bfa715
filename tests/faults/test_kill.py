"""Killed, interrupted and repeated runs: nothing is lost, and the answer is the same to the byte."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pandas as pd
import pytest
from command_line import kill_after, kill_at_deed, kill_at_step, run

import gflowdag
from gflowdag.cli import commands
from gflowdag.posterior import runs
from gflowdag.posterior.posterior import Posterior

ORDER_GFLOWNET = ("--method", "order-gflownet", "--iterations", "3000", "--samples", "40")
EXACT = ("--method", "exact", "--samples", "40")


def _finish(command: tuple, folder: Path) -> bytes:
    """Let a run finish, resuming what there is; the bytes of its answer."""
    code, _, errors = run(*command, "--resume")
    assert code == 0, errors
    assert not list(folder.glob(".*.part"))
    assert runs.read_manifest(folder)["status"] == "done"
    return (folder / "posterior.npz").read_bytes()


def _command(table: Path, method: tuple[str, ...], folder: Path) -> tuple:
    return ("fit", table, *method, "--out", folder, "-q")


def test_training_killed_while_it_writes_gives_the_same_bytes(table: Path, tmp_path: Path) -> None:
    brief = tuple("300" if item == "3000" else item for item in ORDER_GFLOWNET)
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "run"
    command = _command(table, brief, folder)
    assert kill_at_deed(60, folder / ".checkpoint", *command)  # some forty for the first checkpoint
    assert (folder / "checkpoint.npz").exists()
    assert list(folder.glob(".checkpoint.npz.*.part"))  # it died in the middle of the next one
    assert runs.read_manifest(folder)["status"] == "running"
    answer = _finish(command, folder)
    assert answer == _finish(_command(table, brief, undisturbed), undisturbed)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_training_killed_three_times_gives_the_same_bytes(table: Path, tmp_path: Path) -> None:
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "run"
    command = _command(table, ORDER_GFLOWNET, folder)
    rng = random.Random(0)
    for first, last in ((1, 900), (1000, 1900), (2000, 2900)):
        kill_at_step(rng.randint(first, last), folder, *command, "--resume")
        assert runs.read_manifest(folder)["status"] == "running"
    answer = _finish(command, folder)
    assert answer == _finish(_command(table, ORDER_GFLOWNET, undisturbed), undisturbed)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kills", [3, 100])
def test_a_run_killed_while_it_samples_gives_the_same_bytes(kills: int, table: Path, tmp_path: Path) -> None:
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "run"
    brief = tuple("300" if item == "3000" else item for item in ORDER_GFLOWNET)
    expected = _finish(_command(table, brief, undisturbed), undisturbed)
    (undisturbed / "posterior.npz").unlink()
    started = time.monotonic()
    assert _finish(_command(table, brief, undisturbed), undisturbed) == expected  # trained: it only samples
    seconds = time.monotonic() - started
    command, rng = _command(table, brief, folder), random.Random(0)
    kill_at_step(300, folder, *command)  # the last step is told of before the sampling begins
    for _ in range(kills - 1):
        kill_after(rng.uniform(0.3, 0.8) * seconds, *command, "--resume")
        assert not (folder / "posterior.npz").exists() or Posterior.load(folder).num_samples == 40
    assert _finish(command, folder) == expected


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("kills", "method"),
    [
        pytest.param(100, EXACT, id="100-exact"),
        pytest.param(100, ORDER_GFLOWNET, id="100-order-gflownet"),
    ],
)
def test_kills_at_random_moments_give_the_same_bytes(
    kills: int, method: tuple, table: Path, tmp_path: Path
) -> None:
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "run"
    _finish(_command(table, method, tmp_path / "compiled"), tmp_path / "compiled")
    started = time.monotonic()
    expected = _finish(_command(table, method, undisturbed), undisturbed)
    seconds = time.monotonic() - started
    command, rng, hits = _command(table, method, folder), random.Random(0), 0
    for _ in range(kills):
        hits += kill_after(rng.uniform(0.2, 1.0) * seconds, *command, "--resume")
        assert not (folder / "posterior.npz").exists() or Posterior.load(folder).num_samples == 40
    assert hits >= kills // 2
    assert _finish(command, folder) == expected


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_largest_exact_run_killed_twenty_times_gives_the_same_bytes(tmp_path: Path) -> None:
    # Twenty variables, the most that the command line takes: half a minute of work on one core.
    table, folder, undisturbed = tmp_path / "table.csv", tmp_path / "run", tmp_path / "undisturbed"
    commands.run_simulation(table, "linear-gaussian", 20, 60, 1.0, "erdos-renyi", 3)
    started = time.monotonic()
    expected = _finish(_command(table, EXACT, undisturbed), undisturbed)
    seconds = time.monotonic() - started
    rng = random.Random(0)
    for _ in range(20):
        assert kill_after(rng.uniform(0.1, 0.8) * seconds, *_command(table, EXACT, folder), "--resume")
        assert not (folder / "posterior.npz").exists()
    assert _finish(_command(table, EXACT, folder), folder) == expected


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("kills", "methods"), [(3, "exact"), (100, "exact,mc3")])
def test_a_killed_reproduction_keeps_its_rows_and_ends_with_the_same(
    kills: int, methods: str, tmp_path: Path
) -> None:
    command = ("reproduce", "small-graphs", "--quick", "--methods", methods, "--datasets", "3", "-q", "--out")
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "study"
    started = time.monotonic()
    code, _, errors = run(*command, undisturbed)
    assert code == 0, errors
    seconds = time.monotonic() - started
    rng, kept = random.Random(0), {}
    for _ in range(kills):
        kill_after(rng.uniform(0.3, 0.9) * seconds, *command, folder)
        rows = _rows(folder)
        assert kept.items() <= rows.items()  # nothing that was written is lost, or done again
        kept = rows
    code, _, errors = run(*command, folder)
    assert code == 0, errors
    assert kept.items() <= _rows(folder).items()
    assert _rows(folder).keys() == _rows(undisturbed).keys()
    for path in undisturbed.glob("posteriors/*.npz"):
        assert (folder / "posteriors" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("kills", [1, pytest.param(100, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
@pytest.mark.parametrize("command", ["export", "report", "compare"])
def test_a_kill_leaves_the_old_file_or_the_new_one(
    kills: int, command: str, table: Path, tmp_path: Path
) -> None:
    answer, path, rng = tmp_path / "answer", tmp_path / "out" / "file", random.Random(kills)
    gflowdag.fit(pd.read_csv(table), num_samples=20).save(answer)
    arguments = {
        "export": ("export", answer, "--to", path, "--format", "json"),
        "report": ("report", answer, "--to", path),
        "compare": ("compare", table, "--methods", "exact", "--samples", "20", "-q", "--report", path),
    }[command]
    end = "}\n" if command == "export" else "</html>\n"
    for _ in range(kills):
        path.parent.mkdir(exist_ok=True)
        path.write_text("old")
        killed = kill_at_deed(rng.randint(1, 5), path.parent, *arguments)
        assert path.read_text() == "old" or path.read_text().endswith(end)
        assert killed or path.read_text() != "old"


def _rows(folder: Path) -> dict[str, str]:
    """The finished tasks of a study, by name, as they were written."""
    return {path.name: path.read_text() for path in folder.glob("tasks/*.json")}


def test_a_killed_exact_run_can_be_repeated_in_its_folder(table: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    config = {"data": str(table), "samples": 40}
    runs.Run.start(folder, config)._release()  # as a killed process leaves it
    assert runs.read_manifest(folder)["status"] == "running"
    (folder / ".posterior.npz.abc.part").write_bytes(b"half")
    with runs.Run.start(folder, config, resume=True):
        assert not list(folder.glob(".*.part"))
