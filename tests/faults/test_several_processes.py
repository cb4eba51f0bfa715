"""The command line in two processes: one run folder, written by the first; one process can go on with it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest
from command_line import LONGEST, run, start

from gflowdag.cli import commands
from gflowdag.posterior.posterior import Posterior

ORDER_GFLOWNET = ("--method", "order-gflownet", "--iterations", "40", "--samples", "40")


@pytest.fixture(autouse=True)
def _quick_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS", "1")


def in_two_processes(*arguments: str | Path) -> list[tuple[int, str, str]]:
    """Exit code, standard output and standard error of each."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        coordinator = f"127.0.0.1:{server.getsockname()[1]}"
    together = ("--coordinator", coordinator, "--processes", "2")
    processes = [start(*arguments, *together, "--process-id", str(index)) for index in range(2)]
    return [_outcome(process) for process in processes]


def _outcome(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, errors = process.communicate(timeout=LONGEST)
    return process.returncode, out, errors


@pytest.mark.long
def test_two_processes_write_one_run_that_one_process_goes_on_with(tmp_path: Path) -> None:
    table, folder, alone = tmp_path / "table.csv", tmp_path / "run", tmp_path / "alone"
    commands.run_simulation(table, "linear-gaussian", 4, 60, 1.0, "erdos-renyi", 3)
    command = ("fit", table, *ORDER_GFLOWNET, "--out", folder)
    (code, out, errors), (other_code, other_out, other_errors) = in_two_processes(*command, "--json")
    assert (code, other_code) == (0, 0), errors + other_errors
    assert json.loads(out)["method"] == "order-gflownet"  # and nothing else: libraries print elsewhere
    assert other_out == ""
    answer = Posterior.load(folder)

    code, _, errors = run("fit", table, *ORDER_GFLOWNET, "--out", alone, "-q")
    assert code == 0, errors
    expected = Posterior.load(alone)
    # Sums of floats in another order; the graphs are drawn by the same numbers.
    assert answer.log_evidence == pytest.approx(expected.log_evidence, abs=1e-4)
    assert (answer.samples == expected.samples).all()

    (folder / "posterior.npz").unlink()
    code, _, errors = run(*command, "--resume", "-q")
    assert code == 0, errors
    assert Posterior.load(folder).log_evidence == pytest.approx(expected.log_evidence, abs=1e-4)

    (code, _, errors), (other_code, _, other_errors) = in_two_processes(*command)
    assert (code, other_code) == (2, 2)
    assert "already holds a run" in errors
    assert "process 0 could not start the run" in other_errors


def test_the_number_of_processes_needs_a_place_to_meet(tmp_path: Path) -> None:
    code, _, errors = run("fit", "sachs", "--processes", "2", "--out", tmp_path / "run")
    assert code == 2
    assert "--coordinator" in errors
    assert not (tmp_path / "run").exists()


def test_methods_that_do_not_train_have_no_use_for_devices(tmp_path: Path) -> None:
    code, _, errors = run("fit", "sachs", "--method", "exact", "--devices", "all", "--out", tmp_path / "run")
    assert code == 2
    assert "--devices does not apply" in errors
