"""Ctrl-C or SIGTERM at any moment: one line, exit code 130 or 143, and what was done is kept."""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import TimeoutExpired

import pytest
from command_line import LONGEST, start, wait_for
from forked import Forker
from tallies import Tally

from gflowdag.cli import commands
from gflowdag.posterior import runs
from gflowdag.runtime.files import atomic_write, file_size, read_json, read_npz, write_json
from gflowdag.runtime.interrupts import Terminated, end_in_order_at_sigterm, repeat_lost_interrupts


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Signals as our program has them, also where the tests run in the background of a shell."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_in_order_at_sigterm()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@SIGNALS
def test_a_stopped_run_leaves_a_checkpoint_and_says_so(number: int, table: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    method = ("--method", "order-gflownet", "--iterations", "100000000")
    # JAX may crash on Python's way out; an interrupted program does not go there.
    crash = "import atexit, os; atexit.register(os.abort)"
    process = start("fit", table, *method, "--out", folder, "-q", first=crash)
    wait_for((folder / "checkpoint.npz").exists, process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=LONGEST)
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[number], errors
    assert errors.endswith(f"the same command with --resume --out {folder} goes on\n")
    assert errors.count("\n") == 1
    manifest = runs.read_manifest(folder)
    reason = {signal.SIGINT: "KeyboardInterrupt", signal.SIGTERM: "SIGTERM"}[number]
    assert (manifest["status"], manifest["reason"]) == ("stopped", reason)
    path = folder / "checkpoint.npz"
    assert json.loads(str(read_npz(path, max_bytes=file_size(path))["header"]))["leaves"]


@SIGNALS
def test_a_stopped_run_without_a_checkpoint_says_what_is_lost(
    number: int, table: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    process = start("fit", table, "--method", "mc3", "--out", folder, "-q")
    wait_for((folder / "manifest.json").exists, process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=LONGEST)
    code, what = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "stopped by SIGTERM")}[number]
    lost = "no checkpoint was written, so the work is lost: run the same command again"
    assert (process.returncode, errors) == (code, f"gflowdag: {what}; {lost}\n")
    assert runs.read_manifest(folder)["status"] == "stopped"


def test_ctrl_c_in_a_study_says_that_the_same_command_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    process = start("bench", "--quick", "--methods", "mc3", "--out", out, "-q")
    wait_for(out.exists, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LONGEST)
    assert process.returncode == 130, errors
    assert (
        errors == "gflowdag: interrupted; what is finished stays; run the same command again for the rest\n"
    )


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("method", "seconds"),
    [
        ("exact", 4),
        ("mc3", 12),
        ("order-mcmc", 12),
        ("order-gflownet", 12),
        ("dag-gflownet", 12),
        ("dibs", 12),
        ("bcd-nets", 12),
        ("bootstrap-ges", 4),
    ],
)
def test_ctrl_c_at_random_moments_is_one_line(
    method: str, seconds: float, tmp_path: Path, tally: Tally
) -> None:
    table, rng, hits = tmp_path / "table.csv", random.Random(0), 0
    commands.run_simulation(table, "linear-gaussian", 14, 100, 2.0, "erdos-renyi", 1)
    for attempt in range(8):
        process = start("fit", table, "--method", method, "--out", tmp_path / f"run{attempt}", "-q")
        try:
            process.communicate(timeout=rng.uniform(1, seconds))
        except TimeoutExpired:
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=LONGEST)
            if process.returncode in (0, -signal.SIGINT):
                continue  # it was about to end
            hits += 1
            assert process.returncode == 130, errors
            assert errors.count("\n") == 1, errors
    assert hits >= 2
    tally("stopped runs", f"{method}, SIGINT", tried=hits)


def _strike(number: int, seconds: float, folder: Path) -> str:
    """Code that sends the process a signal, some time after the run in a folder has begun."""
    return (
        "import os, threading, time; from pathlib import Path\n"
        f"manifest = Path({str(folder / runs.MANIFEST)!r})\n"
        "def strike():\n"
        "    while not manifest.exists() or '\"running\"' not in manifest.read_text(): time.sleep(0.002)\n"
        f"    time.sleep({seconds}); os.kill(os.getpid(), {number:d})\n"
        "threading.Thread(target=strike, daemon=True).start()\n"
    )


@SIGNALS
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("stops", [50])
def test_a_run_stopped_at_random_moments_ends_with_the_same_bytes(
    stops: int, number: int, table: Path, tmp_path: Path, forker: Forker, tally: Tally
) -> None:
    rng, folder, hits, finished = random.Random(number), tmp_path / "run0", 0, 0
    command = ("fit", table, "--method", "order-gflownet", "--iterations", "300", "--samples", "40", "-q")
    assert forker.run(*command, "--out", tmp_path / "compiled") == 0
    started = time.monotonic()
    assert forker.run(*command, "--out", tmp_path / "undisturbed") == 0
    seconds = time.monotonic() - started
    expected = (tmp_path / "undisturbed" / "posterior.npz").read_bytes()
    while hits < stops:
        strike = _strike(number, rng.uniform(0, 0.6) * seconds, folder)
        started = time.monotonic()
        answer = forker.ask(*command, "--resume", "--out", folder, first=strike)
        if answer.returncode != 0:
            hits += 1
            assert answer.returncode == 128 + number, answer.stderr
            assert answer.stderr.count("\n") == 1, answer.stderr
        else:  # it was over before: on a busy machine the next ones may be faster than the first
            seconds = min(seconds, time.monotonic() - started)
        if (folder / "posterior.npz").exists():  # if it was stopped, then as it wrote its report
            assert (folder / "posterior.npz").read_bytes() == expected
            assert answer.returncode == 0 or f"the answer is in {folder}" in answer.stderr
            finished += 1
            folder = tmp_path / f"run{finished}"
            continue
        assert runs.read_manifest(folder)["status"] == "stopped"
        advised = answer.stderr.endswith(f"the same command with --resume --out {folder} goes on\n")
        assert advised == (folder / "checkpoint.npz").exists(), answer.stderr
    assert forker.run(*command, "--resume", "--out", folder) == 0
    assert (folder / "posterior.npz").read_bytes() == expected
    tally("stopped runs", f"training of an order GFlowNet, {signal.Signals(number).name}", tried=hits)


@SIGNALS
@pytest.mark.usefixtures("interrupts")
def test_a_signal_takes_effect_when_the_file_is_whole(number: int, tmp_path: Path) -> None:
    def parts() -> Iterator[str]:
        yield "one "
        signal.raise_signal(number)
        yield "two"

    path = tmp_path / "file"
    with pytest.raises(KeyboardInterrupt), atomic_write(path) as stream:
        stream.writelines(parts())
    assert path.read_text() == "one two"
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)  # and from then on at once, as before


@pytest.mark.usefixtures("interrupts")
def test_ctrl_c_and_a_full_disk_together_end_the_program(
    tmp_path: Path, full_disk: Callable[[], None]
) -> None:
    full_disk()
    with pytest.raises(KeyboardInterrupt), atomic_write(tmp_path / "file"):
        signal.raise_signal(signal.SIGINT)
    assert not list(tmp_path.iterdir())


def test_a_thread_writes_without_touching_the_signals(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        threads.submit(write_json, tmp_path / "file.json", {"one": 1}).result()
    assert read_json(tmp_path / "file.json") == {"one": 1}


class _Swallower:
    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
@pytest.mark.usefixtures("interrupts")
def test_a_signal_that_a_destructor_has_swallowed_comes_again(
    number: int, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)  # restored afterwards
    repeat_lost_interrupts()
    _Swallower(number)
    with pytest.raises(error):
        time.sleep(100)
