"""A study can be stopped, resumed and spread over workers without losing or repeating work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import fork_server
import pytest

from gflowdag_lab.paper.study import Task, run_tasks

# What programs that import this module find: its folder, and that of what it imports.
IMPORTABLE = os.pathsep.join(str(Path(file).parent) for file in (__file__, fork_server.__file__))


def square(folder: Path, number: int, log: str) -> dict[str, int]:
    """Count the calls in a file, so that repeated work shows."""
    assert folder.is_absolute()
    with open(log, "a", encoding="utf-8") as stream:
        stream.write(f"{number}\n")
    if number < 0:
        raise ValueError("negative")
    return {"square": number**2, "pid": os.getpid()}


_FATAL = 1  # the number whose first call kills its process


def fatal(folder: Path, number: int) -> dict[str, int]:
    """Die at the first call for one number, as a machine that is switched off."""
    with open(folder / "calls", "a", encoding="utf-8") as stream:
        stream.write(f"call-{number}\n")
    if number == _FATAL and not (folder / "killed").exists():
        (folder / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"square": number**2}


def always_fatal(folder: Path) -> dict[str, int]:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def slow_square(folder: Path, number: int, log: str) -> dict[str, int]:
    row = square(folder, number, log)
    time.sleep(0.3)
    return row


def halting_square(folder: Path, number: int, log: str) -> dict[str, int]:
    """Halt in the middle of the third, until the file `go` is there."""
    row = square(folder, number, log)
    if number == 2:
        _wait_for((folder / "go").exists)
    return row


def count_cores(folder: Path) -> dict[str, int]:
    import joblib

    return {"cores": joblib.effective_n_jobs(-1)}


def tolerated_growth(folder: Path) -> dict[str, int]:
    from joblib.externals.loky import process_executor

    return {"bytes": process_executor._MAX_MEMORY_LEAK_SIZE}


def long(folder: Path, number: int) -> dict[str, int]:
    (folder / f"worker-{os.getpid()}").touch()
    time.sleep(300)
    return {"number": number}


def _long_tasks() -> list[Task]:
    return [Task(f"long-{number}", "test_study:long", {"number": number}) for number in range(2)]


def _fatal_task(number: int) -> Task:
    return Task(f"fatal-{number}", f"{fatal.__module__}:fatal", {"number": number})


def _slow_tasks(log: Path) -> list[Task]:
    name = f"{slow_square.__module__}:slow_square"
    return [Task(f"slow-{number}", name, {"number": number, "log": str(log)}) for number in range(5)]


def _halting_tasks(log: Path) -> list[Task]:
    name = "test_study:halting_square"
    return [Task(f"halting-{number}", name, {"number": number, "log": str(log)}) for number in range(5)]


def _tasks(log: Path, numbers: list[int]) -> list[Task]:
    function = f"{square.__module__}:square"
    return [Task(f"square-{number}", function, {"number": number, "log": str(log)}) for number in numbers]


def test_finished_tasks_are_not_run_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run_tasks(_tasks(log, [1, 2]), tmp_path)
    rows = run_tasks(_tasks(log, [1, 2, 3]), tmp_path)
    assert [row["square"] for row in rows] == [1, 4, 9]
    assert log.read_text().split() == ["1", "2", "3"]


def test_other_arguments_are_another_task(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run_tasks([Task("one", f"{square.__module__}:square", {"number": 2, "log": str(log)})], tmp_path)
    rows = run_tasks([Task("one", f"{square.__module__}:square", {"number": 5, "log": str(log)})], tmp_path)
    assert rows[0]["square"] == 25


def trained(folder: Path, options: dict[str, float]) -> dict[str, float]:
    return {"seconds": options["budget"]}


def test_a_result_that_had_more_seconds_to_train_will_do_one_that_had_fewer_will_not(tmp_path: Path) -> None:
    def seconds(**options: float) -> float:
        task = Task("fit", f"{__name__}:trained", {"options": {"batch_size": 8, **options}})
        return run_tasks([task], tmp_path)[0]["seconds"]

    assert seconds(budget=5.0) == 5.0
    assert seconds(budget=3.0) == 5.0
    assert seconds(budget=7.0, iterations=100) == 7.0
    assert seconds(budget=5.0) == 7.0
    assert seconds(budget=2.0, batch_size=16) == 2.0


def test_a_result_stays_until_a_better_one_is_there(tmp_path: Path) -> None:
    short = Task("fit", f"{__name__}:trained", {"options": {"budget": 5.0}})
    [row] = run_tasks([short], tmp_path)
    longer = short._replace(arguments={"options": {"budget": 9.0}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gflowdag_lab.paper.study.run_task", lambda task, folder: task.name)  # as if killed
        assert run_tasks([longer], tmp_path)[0]["error"]
    assert run_tasks([short], tmp_path) == [row]


def test_a_fit_that_came_to_its_end_will_do_whatever_the_clock(tmp_path: Path) -> None:
    def fit(**limits: float) -> str:
        rows = run_tasks([Task("fit", f"{__name__}:ended", {"options": {"preset": 1, **limits}})], tmp_path)
        return rows[0]["limits"]

    assert fit(budget=9.0, iterations=100) == "9.0 100"
    assert fit() == "9.0 100"
    assert fit(budget=50.0) == "9.0 100"
    assert fit(preset=2) == "None None"


def ended(folder: Path, options: dict[str, float]) -> dict[str, object]:
    return {"limits": f"{options.get('budget')} {options.get('iterations')}", "iterations": 100}


def fails_in_the_long_run(folder: Path, options: dict[str, float]) -> dict[str, float]:
    if options["budget"] > 5:
        raise ValueError("too long")
    return {"seconds": options["budget"]}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_leaves_the_row_that_was_there(tmp_path: Path, monkeypatch, jobs: int) -> None:
    monkeypatch.setenv("PYTHONPATH", IMPORTABLE)
    function = f"{Path(__file__).stem}:fails_in_the_long_run"

    def rows(budget: float) -> list[dict[str, object]]:
        tasks = [Task(name, function, {"options": {"budget": budget}}) for name in "ab"]
        answer = run_tasks(tasks, tmp_path, jobs=jobs)
        return [{key: row.get(key) for key in ("task", "seconds", "error")} for row in answer]

    short = [{"task": name, "seconds": 5.0, "error": None} for name in "ab"]
    assert rows(5.0) == short
    assert [row["error"] for row in rows(9.0)] == ["ValueError: too long"] * 2
    assert rows(5.0) == short
    assert [row["error"] for row in rows(7.0)] == ["ValueError: too long"] * 2


def test_a_failure_is_a_row_and_is_tried_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    rows = run_tasks(_tasks(log, [-1, 2]), tmp_path)
    assert rows[0]["error"] == "ValueError: negative"
    assert rows[1]["square"] == 4
    run_tasks(_tasks(log, [-1, 2]), tmp_path)
    assert log.read_text().split() == ["-1", "2", "-1"]


def test_a_half_written_result_is_never_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run_tasks(_tasks(log, [4]), tmp_path)
    record = json.loads((tmp_path / "tasks" / "square-4.json").read_text())
    assert record["row"]["square"] == 16
    assert not [path for path in (tmp_path / "tasks").iterdir() if path.suffix != ".json"]


def test_workers_on_this_machine_give_the_same_rows(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", IMPORTABLE)
    log = tmp_path / "log"
    rows = run_tasks(_tasks(log, [1, 2, 3]), tmp_path, jobs=2)
    assert [row["square"] for row in rows] == [1, 4, 9]
    assert os.getpid() not in {row["pid"] for row in rows}


def test_workers_start_no_workers_of_their_own(tmp_path: Path, monkeypatch) -> None:
    # Idle children keep a worker from ending, for the five minutes of their patience.
    monkeypatch.setenv("PYTHONPATH", IMPORTABLE)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "4")
    tasks = [Task(f"count-{n}", "test_study:count_cores", {}) for n in range(2)]
    assert [row["cores"] for row in run_tasks(tasks, tmp_path, jobs=2)] == [1, 1]


def process_of(folder: Path, part: str, number: int) -> dict[str, int]:
    """The worker's process, once both workers have a task of the part."""
    (folder / f"{part}-{number}").touch()
    _wait_for(lambda: len(list(folder.glob(f"{part}-*"))) == 2)
    return {"pid": os.getpid()}


def test_workers_serve_all_experiments_of_a_program(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", IMPORTABLE)
    seen = [
        {row["pid"] for row in run_tasks(tasks, tmp_path, jobs=2)}
        for tasks in (
            [Task(f"{part}{n}", "test_study:process_of", {"part": part, "number": n}) for n in range(2)]
            for part in "ab"
        )
    ]
    assert seen[0] == seen[1]


def test_workers_are_not_replaced_for_the_programs_that_they_have_compiled(
    tmp_path: Path, monkeypatch
) -> None:
    # joblib's own limit is 300 MB, which three or four methods exceed.
    monkeypatch.setenv("PYTHONPATH", IMPORTABLE)
    tasks = [Task(f"growth-{n}", "test_study:tolerated_growth", {}) for n in range(2)]
    assert all(row["bytes"] > 1e12 for row in run_tasks(tasks, tmp_path, jobs=2))


def test_a_task_whose_process_was_killed_is_run_again(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", IMPORTABLE)
    tasks = [_fatal_task(number) for number in range(4)]
    rows = run_tasks(tasks, tmp_path, jobs=2)
    assert [row.get("square") for row in rows] == [0, 1, 4, 9]


def test_a_task_that_kills_every_worker_is_a_failure_and_the_others_are_done(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", IMPORTABLE)
    deadly = Task("deadly", f"{fatal.__module__}:always_fatal", {})
    rows = run_tasks([deadly, *_slow_tasks(tmp_path / "log")], tmp_path, jobs=2)  # it dies before one is done
    assert rows[0] == {"task": "deadly", "error": "the worker died"}
    assert [row.get("square") for row in rows[1:]] == [0, 1, 4, 9, 16]


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + fork_server.LONGEST
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _start_study(tasks: str, folder: Path, jobs: int) -> subprocess.Popen[bytes]:
    """Run the tasks that an expression over this module gives, in a program of their own."""
    program = (
        "import test_study as these; from gflowdag_lab.paper.study import run_tasks; "
        f"from pathlib import Path; run_tasks({tasks}, {str(folder)!r}, jobs={jobs})"
    )
    environment = {**os.environ, "PYTHONPATH": IMPORTABLE}
    return subprocess.Popen([sys.executable, "-c", program], env=environment)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_workers_of_a_killed_study_do_not_outlive_it(tmp_path: Path) -> None:
    study = _start_study("these._long_tasks()", tmp_path, jobs=2)
    _wait_for(lambda: len(list(tmp_path.glob("worker-*"))) == 2)
    study.kill()
    study.wait()
    workers = [int(path.name.split("-")[1]) for path in tmp_path.glob("worker-*")]
    _wait_for(lambda: not any(_is_alive(pid) for pid in workers))


def test_a_killed_study_goes_on_where_it_was(tmp_path: Path) -> None:
    log = tmp_path / "log"
    study = _start_study(f"these._halting_tasks(Path({str(log)!r}))", tmp_path, jobs=1)
    _wait_for(lambda: log.exists() and log.read_text().split() == ["0", "1", "2"])  # halts there
    study.kill()
    assert study.wait() == -signal.SIGKILL
    (tmp_path / "go").touch()
    rows = run_tasks(_halting_tasks(log), tmp_path)
    assert [row["square"] for row in rows] == [0, 1, 4, 9, 16]
    # Only the task that was killed half-way is there twice.
    assert log.read_text().split() == ["0", "1", "2", "2", "3", "4"]


def test_a_dask_worker_killed_in_the_middle_loses_one_task_not_the_study(tmp_path: Path, monkeypatch) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("PYTHONPATH", IMPORTABLE)
    tasks = [_fatal_task(number) for number in range(6)]
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        rows = run_tasks(tasks, tmp_path, scheduler=cluster.scheduler_address)
    assert [row.get("square") for row in rows] == [0, 1, 4, 9, 16, 25]
    calls = [int(name.split("-")[1]) for name in (tmp_path / "calls").read_text().split()]
    assert calls.count(_FATAL) == 2
    assert (tmp_path / "killed").exists()
