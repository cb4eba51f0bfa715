"""Killed runs: nothing is lost, and the answer is the same to the byte."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pandas as pd
import pytest
from command_line import kill_at_step
from forked import Forker
from tallies import Tally

import gflowdag
from gflowdag.cli import commands
from gflowdag.posterior import runs
from gflowdag.posterior.posterior import Posterior

EXACT = ("--method", "exact", "--samples", "40")
ORDER_GFLOWNET = ("--method", "order-gflownet", "--iterations", "3000", "--samples", "40")
BRIEF = ("--method", "order-gflownet", "--iterations", "300", "--samples", "40")
CHAINS = ("--method", "parent-set-mcmc", "--iterations", "1500", "--samples", "40")
KILLED = -signal.SIGKILL


def _command(table: Path, method: tuple[str, ...], folder: Path) -> tuple:
    return ("fit", table, *method, "--out", folder, "-q")


def _finish(forker: Forker, command: tuple, folder: Path) -> bytes:
    """Let a run finish, resuming what there is; the bytes of its answer."""
    code = forker.run(*command, "--resume")
    assert code == 0, forker.errors.read_text()
    assert not list(folder.glob(".*.part"))
    assert runs.read_manifest(folder)["status"] == "done"
    return (folder / "posterior.npz").read_bytes()


def _undisturbed(forker: Forker, table: Path, method: tuple[str, ...], folder: Path) -> tuple[bytes, float]:
    """The bytes of an answer, and the seconds that it takes once its code is compiled."""
    _finish(forker, _command(table, method, folder / "compiled"), folder / "compiled")
    started = time.monotonic()
    expected = _finish(forker, _command(table, method, folder / "undisturbed"), folder / "undisturbed")
    return expected, time.monotonic() - started


def _is_whole(folder: Path) -> bool:
    """Whether the answer is there, and of all graphs, or not there at all."""
    return not (folder / "posterior.npz").exists() or Posterior.load(folder).num_samples == 40


def test_training_killed_while_it_writes_gives_the_same_bytes(
    table: Path, tmp_path: Path, forker: Forker
) -> None:
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "run"
    command = _command(table, BRIEF, folder)
    assert forker.kill_at_deed(60, folder / ".checkpoint", *command)  # some forty for the first checkpoint
    assert (folder / "checkpoint.npz").exists()
    assert list(folder.glob(".checkpoint.npz.*.part"))  # it died in the middle of the next one
    assert runs.read_manifest(folder)["status"] == "running"
    answer = _finish(forker, command, folder)
    assert answer == _finish(forker, _command(table, BRIEF, undisturbed), undisturbed)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_training_killed_three_times_gives_the_same_bytes(
    table: Path, tmp_path: Path, forker: Forker, tally: Tally
) -> None:
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "run"
    command = _command(table, ORDER_GFLOWNET, folder)
    rng = random.Random(0)
    for first, last in ((1, 900), (1000, 1900), (2000, 2900)):
        kill_at_step(rng.randint(first, last), folder, *command, "--resume")
        assert runs.read_manifest(folder)["status"] == "running"
    answer = _finish(forker, command, folder)
    assert answer == _finish(forker, _command(table, ORDER_GFLOWNET, undisturbed), undisturbed)
    tally("kill -9", "fit, training of an order GFlowNet, at three of its steps", tried=3)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kills", [100])
def test_a_run_killed_while_it_samples_gives_the_same_bytes(
    kills: int, table: Path, tmp_path: Path, forker: Forker, tally: Tally
) -> None:
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "run"
    expected, _ = _undisturbed(forker, table, BRIEF, tmp_path)
    (undisturbed / "posterior.npz").unlink()
    started = time.monotonic()
    assert _finish(forker, _command(table, BRIEF, undisturbed), undisturbed) == expected  # it only samples
    seconds = time.monotonic() - started
    command, rng, hits = _command(table, BRIEF, folder), random.Random(0), 1
    kill_at_step(300, folder, *command)  # the last step is told of before the sampling begins
    for _ in range(kills - 1):
        code = forker.run(*command, "--resume", kill_after=rng.uniform(0.1, 1.0) * seconds)
        hits += code == KILLED
        assert _is_whole(folder)
        if code == 0:
            (folder / "posterior.npz").unlink()  # so that there is something to kill
    assert hits >= kills // 4
    assert _finish(forker, command, folder) == expected
    tally("kill -9", "fit, sampling of an order GFlowNet", tried=kills, struck=hits)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("kills", "method", "name"),
    [
        pytest.param(100, EXACT, "exact", id="100-exact"),
        pytest.param(100, BRIEF, "training of an order GFlowNet", id="100-order-gflownet"),
        pytest.param(100, CHAINS, "chains of whole parent sets", id="100-parent-set-mcmc"),
    ],
)
def test_kills_at_random_moments_give_the_same_bytes(
    kills: int, method: tuple, name: str, table: Path, tmp_path: Path, forker: Forker, tally: Tally
) -> None:
    expected, seconds = _undisturbed(forker, table, method, tmp_path)
    rng, hits, finished = random.Random(0), 0, 0
    folder = tmp_path / "run0"
    for _ in range(kills):
        command = _command(table, method, folder)
        code = forker.run(*command, "--resume", kill_after=rng.uniform(0.05, 0.8) * seconds)
        hits += code == KILLED
        assert _is_whole(folder)
        if code == 0:  # this run is over: its answer is looked at, and the next one begins
            assert (folder / "posterior.npz").read_bytes() == expected
            finished += 1
            folder = tmp_path / f"run{finished}"
    assert hits >= kills // 4
    assert _finish(forker, _command(table, method, folder), folder) == expected
    tally("kill -9", f"fit, {name}", tried=kills, struck=hits)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_largest_exact_run_killed_twenty_times_gives_the_same_bytes(
    tmp_path: Path, forker: Forker, tally: Tally
) -> None:
    # Twenty variables, the most that the command line takes: half a minute of work on one core.
    table, folder, undisturbed = tmp_path / "table.csv", tmp_path / "run", tmp_path / "undisturbed"
    commands.run_simulation(table, "linear-gaussian", 20, 60, 1.0, "erdos-renyi", 3)
    started = time.monotonic()
    expected = _finish(forker, _command(table, EXACT, undisturbed), undisturbed)
    seconds = time.monotonic() - started
    rng, hits = random.Random(0), 0
    for _ in range(20):
        command = _command(table, EXACT, folder)
        hits += forker.run(*command, "--resume", kill_after=rng.uniform(0.1, 0.6) * seconds) == KILLED
        assert _is_whole(folder)
    assert _finish(forker, _command(table, EXACT, folder), folder) == expected
    tally("kill -9", "fit, exact, 20 variables", tried=20, struck=hits)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("kills", "methods"), [(100, "exact,mc3")])
def test_a_killed_reproduction_keeps_its_rows_and_ends_with_the_same(
    kills: int, methods: str, tmp_path: Path, forker: Forker, tally: Tally
) -> None:
    command = ("reproduce", "small-graphs", "--quick", "--methods", methods, "--datasets", "3", "-q", "--out")
    undisturbed = tmp_path / "undisturbed"
    for folder in (tmp_path / "compiled", undisturbed):
        started = time.monotonic()
        assert forker.run(*command, folder) == 0, forker.errors.read_text()
    seconds = time.monotonic() - started
    rng, hits, finished = random.Random(0), 0, 0
    folder, kept = tmp_path / "study0", {}
    for _ in range(kills):
        code = forker.run(*command, folder, kill_after=rng.uniform(0.1, 0.8) * seconds)
        hits += code == KILLED
        rows = _rows(folder)
        assert kept.items() <= rows.items()  # nothing that was written is lost, or done again
        kept = rows
        if code == 0:
            _assert_same_answers(folder, undisturbed)
            finished += 1
            folder, kept = tmp_path / f"study{finished}", {}
    assert hits >= kills // 4
    assert forker.run(*command, folder) == 0, forker.errors.read_text()
    assert kept.items() <= _rows(folder).items()
    _assert_same_answers(folder, undisturbed)
    tally("kill -9", "reproduce", tried=kills, struck=hits)


def _rows(folder: Path) -> dict[str, str]:
    """The finished tasks of a study, by name, as they were written."""
    return {path.name: path.read_text() for path in folder.glob("tasks/*.json")}


def _assert_same_answers(folder: Path, undisturbed: Path) -> None:
    assert _rows(folder).keys() == _rows(undisturbed).keys()
    for path in undisturbed.glob("posteriors/*.npz"):
        assert (folder / "posteriors" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("kills", [1, pytest.param(100, marks=[pytest.mark.long, pytest.mark.timeout(7200)])])
@pytest.mark.parametrize("command", ["export", "report", "compare"])
def test_a_kill_leaves_the_old_file_or_the_new_one(
    kills: int, command: str, table: Path, tmp_path: Path, forker: Forker, tally: Tally
) -> None:
    answer, path, rng, hits = tmp_path / "answer", tmp_path / "out" / "file", random.Random(kills), 0
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
        killed = forker.kill_at_deed(rng.randint(1, 5), path.parent, *arguments)
        hits += killed
        assert path.read_text() == "old" or path.read_text().endswith(end)
        assert killed or path.read_text() != "old"
    if kills > 1:
        tally("kill -9", command, tried=kills, struck=hits)


def test_a_killed_exact_run_can_be_repeated_in_its_folder(table: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    config = {"data": str(table), "samples": 40}
    runs.Run.start(folder, config)._release()  # as a killed process leaves it
    assert runs.read_manifest(folder)["status"] == "running"
    (folder / ".posterior.npz.abc.part").write_bytes(b"half")
    with runs.Run.start(folder, config, resume=True):
        assert not list(folder.glob(".*.part"))
