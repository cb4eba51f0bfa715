"""Folders that cannot be written, are full, or belong to another process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from command_line import run
from forked import Forker
from tallies import Tally

import gflowdag as gd
from gflowdag.cli import commands
from gflowdag.errors import FileWriteError, GFlowDAGError
from gflowdag.gflownet.checkpoint import append_metrics, load_checkpoint, save_checkpoint
from gflowdag.posterior import runs
from gflowdag.runtime.checkpoints import CHECKPOINT
from gflowdag.runtime.files import atomic_write, move_to_free, read_json, write_json


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "table.csv"
    commands.run_simulation(path, "linear-gaussian", 3, 40, 1.0, "erdos-renyi", 3)
    return path


def test_a_full_disk_leaves_the_earlier_checkpoint(tmp_path: Path, full_disk: Callable[[], None]) -> None:
    save_checkpoint(tmp_path, {"step": jnp.array(1)}, "print")
    full_disk()
    with pytest.raises(FileWriteError, match=r"cannot write .*checkpoint\.npz: No space left"):
        save_checkpoint(tmp_path, {"step": jnp.array(2)}, "print")
    loaded = load_checkpoint(tmp_path, {"step": jnp.array(0)}, "print")
    assert loaded is not None
    assert int(loaded["step"]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.npz"]


def test_a_disk_that_is_full_when_the_answer_comes_is_told_without_a_traceback(
    table: Path, tmp_path: Path, forker: Forker
) -> None:
    gd.fit(pd.read_csv(table))  # compiled code is kept before the disk is full
    # A limit on the size of files fails as a full disk does: settings fit, the answer of 200 graphs does not.
    folder = tmp_path / "run"
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))"
    answer = forker.ask("fit", table, "--samples", "200", "--out", folder, first=limit)
    assert answer.returncode == 2
    assert f"cannot write {folder}/posterior.npz" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not (folder / "posterior.npz").exists()
    assert not list(folder.glob(".*.part"))
    assert runs.read_manifest(folder)["status"] == "stopped"


def test_a_disk_that_is_full_when_code_is_compiled_is_told_as_such(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))"
    code, _, errors = run("fit", table, "--out", tmp_path / "run", first=limit)
    assert code == 2
    assert errors.endswith("set the variable NUMBA_CACHE_DIR to a folder that has some\n")
    assert runs.read_manifest(tmp_path / "run")["status"] == "stopped"


def test_an_error_is_not_hidden_by_the_full_disk_that_follows(
    tmp_path: Path, full_disk: Callable[[], None]
) -> None:
    run = runs.Run.start(tmp_path / "run", {})
    full_disk()
    with pytest.raises(GFlowDAGError, match="the first"), run:
        raise GFlowDAGError("the first")


def test_a_file_in_place_of_the_folder_is_refused(table: Path, tmp_path: Path) -> None:
    for out in (table, table / "below"):
        with pytest.raises(FileWriteError, match=r"cannot write .*table\.csv"):
            runs.Run.start(out, {})
    with pytest.raises(FileWriteError, match="cannot write"):
        append_metrics(table / "below", {"step": 1.0})
    with pytest.raises(FileWriteError, match="Is a directory"), atomic_write(tmp_path) as stream:
        stream.write("text")


def test_a_device_is_written_to_and_not_replaced() -> None:
    with atomic_write("/dev/null") as stream:
        stream.write("text")
    assert Path("/dev/null").is_char_device()


def test_files_have_the_permissions_of_the_umask_and_temporary_ones_are_private(tmp_path: Path) -> None:
    path = tmp_path / "file"
    before = os.umask(0o027)
    try:
        with atomic_write(path) as stream:
            [temporary] = tmp_path.iterdir()
            assert temporary.stat().st_mode & 0o777 == 0o600
            stream.write("text")
        assert path.stat().st_mode & 0o777 == 0o640
        path.chmod(0o600)  # what the user has made private stays so
        with atomic_write(path) as stream:
            stream.write("text")
        assert path.stat().st_mode & 0o777 == 0o600
    finally:
        assert os.umask(before) == 0o027


def test_bytes_that_are_no_text_become_question_marks(tmp_path: Path) -> None:
    write_json(
        tmp_path / "config.json", {"data": "caf\udce9.csv"}
    )  # a file name in Latin-1, as Python has it
    assert read_json(tmp_path / "config.json") == {"data": "caf?.csv"}


def test_a_device_without_memory_leaves_the_training_that_was_done(
    table: Path, tmp_path: Path, forker: Forker
) -> None:
    # The device fails when the sampling begins, as JAX would say it; without the fault the run goes on.
    fault = (
        "from gflowdag.estimators import order_gflownet\n"
        "def full(*_, **__): raise RuntimeError('RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.')\n"
        "order_gflownet.sample = full\n"
    )
    folder = tmp_path / "run"
    command = ("fit", table, "--method", "order-gflownet", "--iterations", "100", "--out", folder, "-q")
    answer = forker.ask(*command, first=fault)
    assert answer.returncode == 1
    assert "not enough memory" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert runs.read_manifest(folder)["status"] == "stopped"
    trained = runs.read_metrics(folder)
    assert trained[-1]["step"] == 100
    answer = forker.ask(*command, "--resume")
    assert answer.returncode == 0, answer.stderr
    assert runs.read_metrics(folder) == trained


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that even root cannot write to")
def test_a_folder_that_cannot_be_written_to_is_named(table: Path, forker: Forker) -> None:
    answer = forker.ask("fit", table, "--out", "/proc/run")
    assert answer.returncode == 2
    assert "cannot write /proc/run" in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("command", ["check", "export"])
def test_a_full_standard_output_is_one_line(command: str, table: Path, tmp_path: Path) -> None:
    from gflowdag.posterior.posterior import Posterior

    Posterior(np.zeros((1, 2, 2)), ("a", "b")).save(tmp_path / "posterior.npz")
    arguments = [command, str(table if command == "check" else tmp_path)]
    with open("/dev/full", "w") as full:
        answer = subprocess.run(
            [sys.executable, "-m", "gflowdag", *arguments], stdout=full, stderr=subprocess.PIPE, text=True
        )
    message = "gflowdag: cannot write to standard output: No space left on device\n"
    assert (answer.returncode, answer.stderr) == (1, message)


def test_a_refused_run_leaves_its_name_free_and_the_last_is_resumed(tmp_path: Path) -> None:
    with pytest.raises(GFlowDAGError, match=r"no run in .*table-auto to continue"):
        runs.last_run(tmp_path, "table-auto")
    with pytest.raises(ValueError), runs.Run.start_new(tmp_path, "table-auto", {}):  # noqa: PT011
        raise ValueError("this score is not for discrete data")
    for name in ("table-auto", "table-auto-2"):
        with runs.Run.start_new(tmp_path, "table-auto", {}) as run:
            assert run.folder == tmp_path / name
            (run.folder / CHECKPOINT).touch()
    assert runs.last_run(tmp_path, "table-auto") == tmp_path / "table-auto-2"


def test_an_interrupted_run_without_a_folder_of_its_own_goes_on(
    table: Path, tmp_path: Path, forker: Forker
) -> None:
    command = ("fit", table.resolve(), "--method", "order-gflownet", "--iterations", "20", "-q")
    assert forker.run(*command, folder=tmp_path) == 0
    answer = forker.ask(*command, "--resume", folder=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [f"{table.stem}-order-gflownet"]


def test_two_runs_in_one_folder_at_the_same_time_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with runs.Run.start(folder, {}), pytest.raises(GFlowDAGError, match="another process is writing"):
        runs.Run.start(folder, {}, resume=True)
    with runs.Run.start(folder, {}, resume=True):
        pass


def test_runs_of_one_name_at_the_same_time_get_a_folder_each(tmp_path: Path, tally: Tally) -> None:
    refused = runs.Run.start(tmp_path / "table-auto", {})
    with pytest.raises(ValueError), refused:  # noqa: PT011
        raise ValueError("a folder that may be used again, by one of them")
    code = (
        "import sys; from gflowdag.posterior.runs import Run; sys.stdin.readline();"
        "run = Run.start_new(sys.argv[1], 'table-auto', {}); print(run.folder.name, flush=True);"
        "sys.stdin.readline()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    pipe = subprocess.PIPE
    programs = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()
    names = [program.stdout.readline().strip() for program in programs if program.stdout is not None]
    for program in programs:
        program.communicate("end\n")
    assert sorted(names) == ["table-auto", "table-auto-2", "table-auto-3", "table-auto-4"]
    tally("at once", "runs of one name", tried=len(names))


@pytest.mark.parametrize("links", [True, False])
def test_reports_of_one_name_at_the_same_time_get_a_name_each(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    def no_link(*_: object) -> None:
        raise PermissionError

    if not links:
        monkeypatch.setattr(os, "link", no_link)

    def write(number: int) -> Path:
        (tmp_path / f"{number}.part").write_text(str(number))
        return move_to_free(tmp_path / f"{number}.part", runs.numbered(tmp_path, "report", ".html"))

    with ThreadPoolExecutor(8) as threads:
        paths = list(threads.map(write, range(40)))
    assert [path.read_text() for path in paths] == [str(number) for number in range(40)]
    assert len(list(tmp_path.iterdir())) == 40
    tally("at once", f"reports of one name, {'with' if links else 'without'} links", tried=40)


def test_a_dead_process_does_not_hold_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code = (
        "import sys, time; from gflowdag.posterior.runs import Run; run = Run.start(sys.argv[1], {});"
        "print(1, flush=True); time.sleep(99)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    with pytest.raises(GFlowDAGError, match="another process is writing"):
        runs.Run.start(folder, {}, resume=True)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with runs.Run.start(folder, {}, resume=True):
        pass


def test_the_report_of_a_stranger_does_not_wait_for_a_pipe(tmp_path: Path) -> None:
    from gflowdag.posterior.posterior import Posterior

    os.mkfifo(tmp_path / "pipe")
    Posterior(np.zeros((1, 2, 2)), ("a", "b")).save(tmp_path / "posterior.npz")
    (tmp_path / "config.json").write_text(f'{{"data": "{tmp_path}/pipe"}}')
    (tmp_path / "manifest.json").write_text("{}")
    assert commands.rewrite_report(tmp_path, None).exists()
    (tmp_path / "config.json").unlink()
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(GFlowDAGError, match="not a regular file"):
        commands.rewrite_report(tmp_path, None)
