"""A study is a set of independent tasks whose results are files: it can be stopped, resumed and spread out.

A task calls a module-level function with JSON arguments and stores what it returns under its own name. A
task whose file is there, for the same arguments or with more seconds to train, is not run again; a worker
that dies loses the one task it held, which is run again, in the end by itself. On one machine tasks run in
joblib's spawned workers, on many on a Dask cluster that shares the folder. Studies that ran elsewhere are
merged by copying their files.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from gflowdag.errors import FileFormatError, MissingExtraError
from gflowdag.runtime import Progress, silent, strict_json, write_json

# Options whose names have changed since rows were stored.
_RENAMED = {"num_guides": "num_training_graphs", "num_witnesses": "num_held_out_graphs"}
_MAX_DEATHS = 3  # of workers by one task, before it counts as failed
# Workers share the cores and the GPU: one thread each, and none takes all of the GPU's memory at once. Nor do
# they start workers of their own: one with idle children would take minutes to end.
_SHARING = {
    "LOKY_MAX_CPU_COUNT": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}


class Task(NamedTuple):
    """One unit of work: `module:function(folder, **arguments)` returns a flat dictionary, the row.

    `folder` is the study's folder, where the function may leave larger results; it is no argument, so that a
    study can be moved.
    """

    name: str  # unique in its study, and a file name
    function: str  # "package.module:function"
    arguments: dict[str, Any]  # plain JSON values
    since: str | None = None  # version that last changed what the function does; older results are others


def run_tasks(
    tasks: Sequence[Task],
    folder: str | Path,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Progress = silent,
) -> list[dict[str, Any]]:
    """Run the tasks that are not done yet and return the rows of all, in the order of `tasks`.

    A task that fails gives a row with `error`; it is tried again by the next call.

    Args:
        tasks: what to do.
        folder: rows go to `folder/tasks/NAME.json`, failures to `folder/failures/NAME.json`.
        jobs: worker processes on this machine; 1 runs in this process.
        scheduler: address of a Dask scheduler (`tcp://host:8786`) to run on instead.
        progress: told after every task.
    """
    folder = Path(folder).absolute()
    pending = [task for task in tasks if stored_row(task, folder) is None]
    for task in pending:
        _failure(task, folder).unlink(missing_ok=True)  # an old failure must not pass for a new one
        _held(task, folder).unlink(missing_ok=True)
    done = len(tasks) - len(pending)
    progress(done, len(tasks))
    for _ in _completed(pending, folder, jobs, scheduler):
        done += 1
        progress(done, len(tasks))
    return [stored_row(task, folder) or _stored_failure(task, folder) for task in tasks]


def run_task(task: Task, folder: str | Path) -> str:
    """Run one task in this process and store its row; returns the task's name."""
    folder = Path(folder)
    started = time.perf_counter()
    try:
        module, function = task.function.split(":")
        row = getattr(importlib.import_module(module), function)(folder, **task.arguments)
        store_row(task, folder, row, time.perf_counter() - started)
    except Exception as error:
        said = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        write_json(_failure(task, folder), _record(task) | said)
    return task.name


def store_row(task: Task, folder: Path, row: dict[str, Any], seconds: float) -> None:
    """Store what a task returned, and how long it took."""
    row = {**row, "task_seconds": round(seconds, 3)}
    write_json(_path(task, folder), _record(task) | {"row": row})
    _failure(task, folder).unlink(missing_ok=True)


def _record(task: Task) -> dict[str, Any]:
    return {"function": task.function, "since": task.since, "arguments": task.arguments}


def stored_row(task: Task, folder: Path) -> dict[str, Any] | None:
    """The row that a finished task left, or None if it has to be run."""
    record = read_record(_path(task, folder))
    if record is None or (record.get("function"), record.get("since")) != (task.function, task.since):
        return None
    row = record.get("row", {})
    serves = row and _serves(record.get("arguments", {}), row, strict_json.standard(task.arguments))
    return {"task": task.name, **row} if serves else None


def _stored_failure(task: Task, folder: Path) -> dict[str, Any]:
    record = read_record(_failure(task, folder)) or {"error": "the worker died"}
    return {"task": task.name, "error": record["error"]}


def read_record(path: Path) -> dict[str, Any] | None:
    """What the file of a task holds, None where there is none; of its row, infinities are numbers again.

    A value that was NaN is None.
    """
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FileFormatError(f"{path} is not a task's result: move it away ({error})") from error
    return record | {"row": strict_json.with_infinities(record["row"])} if record.get("row") else record


def _serves(done: dict[str, Any], row: dict[str, Any], asked: dict[str, Any]) -> bool:
    """Whether the row for these arguments will do: they are equal, but for more seconds to train."""
    (done, had, enough), (asked, wanted, _) = _and_limits(done), _and_limits(asked)
    came_to_its_end = row.get("iterations", 0) >= enough
    return done == asked and (had >= wanted or came_to_its_end)


def _and_limits(arguments: dict[str, Any]) -> tuple[dict[str, Any], float, float]:
    """Arguments without the limits of training by the clock, and its seconds and iterations at most."""
    options = {_RENAMED.get(name, name): value for name, value in arguments.get("options", {}).items()}
    if "budget" not in options:
        return {**arguments, "options": options}, math.inf, math.inf
    rest = {name: value for name, value in options.items() if name not in ("budget", "iterations")}
    return {**arguments, "options": rest}, options["budget"], options.get("iterations", math.inf)


def _path(task: Task, folder: Path) -> Path:
    return folder / "tasks" / f"{task.name}.json"


def _failure(task: Task, folder: Path) -> Path:
    return folder / "failures" / f"{task.name}.json"


def _held(task: Task, folder: Path) -> Path:
    return folder / "held" / task.name


def _is_open(task: Task, folder: Path) -> bool:
    """Whether a task has neither a row nor a failure."""
    return stored_row(task, folder) is None and not _failure(task, folder).exists()


def _completed(tasks: Sequence[Task], folder: Path, jobs: int, scheduler: str | None) -> Iterator[str]:
    """Names of the tasks, as they finish."""
    if scheduler is not None:
        yield from _on_dask(tasks, folder, scheduler)
    elif jobs <= 1 or len(tasks) <= 1:
        yield from (run_task(task, folder) for task in tasks)
    else:
        suspects: list[Task] = []
        while tasks := [task for task in tasks if _is_open(task, folder) and task not in suspects]:
            try:
                yield from _on_processes(tasks, folder, jobs)
            except BrokenProcessPool:
                # With one worker all end, and any task that was held may be why: those wait until the end.
                suspects += [task for task in tasks if _held(task, folder).exists()] or tasks
        for task in suspects * _MAX_DEATHS:
            if _is_open(task, folder):
                with suppress(BrokenProcessPool):
                    yield from _on_processes([task], folder, jobs)


def _on_processes(tasks: Sequence[Task], folder: Path, jobs: int) -> Iterator[str]:
    from joblib import Parallel, delayed

    before = {name: os.environ.get(name) for name in _SHARING}
    os.environ.update(_SHARING)  # inherited by the spawned workers
    try:
        calls = (delayed(_hold_and_run)(task, folder) for task in tasks)
        pool = Parallel(
            n_jobs=jobs,
            backend="loky",
            return_as="generator_unordered",
            initializer=_beginning(os.getpid()),
        )
        for name in pool(calls):
            yield str(name)
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def _hold_and_run(task: Task, folder: Path) -> str:
    """Run a task, with a mark that stays if the process dies of it."""
    mark = _held(task, folder)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    name = run_task(task, folder)
    mark.unlink(missing_ok=True)
    return name


@cache
def _beginning(study: int) -> Callable[[], None]:
    """What workers of the process `study` do first; always the same object, or joblib would replace them."""
    return partial(_begin_worker, study)


def _begin_worker(study: int) -> None:
    """What a worker of the process `study` does first."""
    _keep_compiled_programs()
    threading.Thread(target=_end_with, args=(study,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End when the parent has ended: a killed study would leave workers that are busy with their task."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _keep_compiled_programs() -> None:
    """Keep joblib from replacing a worker that has grown by 300 MB, which it takes for a leak.

    Here it is compiled programs that grow, and a new worker would spend its time on compiling them again.
    """
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize


def _on_dask(tasks: Sequence[Task], folder: Path, scheduler: str) -> Iterator[str]:
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise MissingExtraError('Dask is not installed: pip install "gflowdag[dask]"') from error
    with Client(scheduler) as client:
        # Not pure: Dask must not answer from its own memory, and a task on a worker that died is run again.
        futures = [client.submit(run_task, task, folder, pure=False, retries=2) for task in tasks]
        for future in as_completed(futures):
            yield future.result() if future.status == "finished" else ""
