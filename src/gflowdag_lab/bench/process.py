"""A measurement in a process of its own: its peak memory is its own, and it can be killed.

Run as a module it is that process: a task as JSON comes as the argument, rows go out as lines of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gflowdag.posterior import device_name
from gflowdag.runtime import strict_json
from gflowdag_lab.bench.stored_rows import Row
from gflowdag_lab.bench.tasks import Task

_ROW = "row "  # what a line of ours begins with; libraries print too
_PATIENCE = 3.0  # times the cap, and
_PREPARATION = 300.0  # seconds for imports, tables and compilation, until a measurement is killed
_CACHE_EVERYTHING = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}


def measure_apart(task: Task, references: Path) -> Row:
    """The row of a task, with its peak memory, or with what it had when it failed or was killed."""
    command = [sys.executable, "-m", __name__, strict_json.dumps([task.as_json(), str(references)])]
    started = time.perf_counter()
    patience = _PATIENCE * task.cap + _PREPARATION
    with tempfile.TemporaryDirectory() as cache:
        # Empty at first: a measurement compiles everything, but only once.
        environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": cache, **_CACHE_EVERYTHING}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        try:
            out, errors = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            process.kill()
            out, errors = process.communicate()
        finally:
            process.kill()  # where we are interrupted
    rows = [json.loads(line[len(_ROW) :]) for line in out.splitlines() if line.startswith(_ROW)]
    row = {"name": task.name, **task.as_json(), **(rows[-1] if rows else {})}
    row["elapsed"] = round(time.perf_counter() - started, 2)
    if process.returncode < 0:
        row["error"] = f"killed by signal {-process.returncode} (no row may take over {patience:.0f} s)"
    elif process.returncode:
        row["error"] = (errors.strip().splitlines() or ["no message"])[-1][:500]
    return row


def _main(argument: str) -> None:
    from gflowdag_lab.bench.measure import MEASUREMENTS

    given, references = json.loads(argument)
    task = Task(**given)
    for row in MEASUREMENTS[task.kind](task, Path(references)):
        print(_ROW + strict_json.dumps({**row, **_machine()}), flush=True)


def _machine() -> dict[str, Any]:
    """The device, and the peak memory so far in MiB, of the process and, where it says, of the device."""
    import jax

    unit = 2**20 if sys.platform == "darwin" else 2**10
    found = {"device": device_name(), "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit}
    device = jax.devices()[0]
    if device.platform != "cpu":
        found["device_mib"] = (device.memory_stats() or {}).get("peak_bytes_in_use", 0) / 2**20
    return found


if __name__ == "__main__":
    _main(sys.argv[1])
