"""A study can be stopped, resumed and spread over workers without losing or repeating work."""

from __future__ import annotations

import json
import os
from pathlib import Path

from gflowdag.experiments.study import Task, run_tasks


def square(number: int, log: str) -> dict[str, int]:
    """Count the calls in a file, so that repeated work shows."""
    with open(log, "a", encoding="utf-8") as stream:
        stream.write(f"{number}\n")
    if number < 0:
        raise ValueError("negative")
    return {"square": number**2, "pid": os.getpid()}


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
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    log = tmp_path / "log"
    rows = run_tasks(_tasks(log, [1, 2, 3]), tmp_path, jobs=2)
    assert [row["square"] for row in rows] == [1, 4, 9]
    assert os.getpid() not in {row["pid"] for row in rows}
