"""The command line as a process that can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from fork_server import LONGEST

from gflowdag.posterior.runs import read_metrics

# Small networks, few weighted orders, a checkpoint at every look: a short run with many moments to die.
# Interrupts count even where the tests run in the background of a shell, which would ignore them.
SMALL_SETTINGS = """
import functools, inspect, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from gflowdag.cli import app as cli
from gflowdag.estimators import order_gflownet
from gflowdag.estimators.parent_set_mcmc import ParentSetMCMC
from gflowdag.mcmc.unrestricted import saved
order_gflownet.Options = functools.partial(order_gflownet.Options, checkpoint_seconds=0.0, chunk_seconds=0.02)
order_gflownet._NUM_WEIGHTED = order_gflownet._SAMPLING_BATCH = 256
inspect.unwrap(order_gflownet.OrderGFlowNet.__init__).__kwdefaults__.update(width=16, depth=1, batch_size=16)
inspect.unwrap(ParentSetMCMC.__init__).__kwdefaults__.update(max_error=1e-9)
saved.SECONDS_BETWEEN, saved.SHARE_OF_TIME = 0.0, 1.0
"""
SMALL_RUN = SMALL_SETTINGS + "cli.main()\n"


def start(*arguments: str | Path, first: str = "") -> subprocess.Popen[str]:
    """`gflowdag ARGUMENTS` with the settings of `SMALL_RUN`, in the background, after the code `first`."""
    return subprocess.Popen(
        [sys.executable, "-c", first + SMALL_RUN, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    )


def run(*arguments: str | Path, first: str = "") -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `gflowdag ARGUMENTS`."""
    process = start(*arguments, first=first)
    out, errors = process.communicate(timeout=LONGEST)
    return process.returncode, out, errors


def kill_at_step(step: int, folder: Path, *arguments: str | Path) -> None:
    """Start, and kill -9 when the metrics in `folder` tell of `step` iterations."""
    process = start(*arguments)
    wait_for(lambda: any(row["step"] >= step for row in read_metrics(folder)), process)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def wait_for(event: Callable[[], bool], process: subprocess.Popen[str], seconds: float = LONGEST) -> None:
    """Wait for an event that the process brings about."""
    deadline = time.monotonic() + seconds
    while not event():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.02)
