"""The laboratory's files are JSON for every parser, and its readers understand what stands in for NaN."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gflowdag_lab
from gflowdag_lab.bench.stored_rows import Results
from gflowdag_lab.bench.tasks import Task as BenchTask
from gflowdag_lab.paper.study import Task, run_tasks, stored_row

STORED = sorted(Path(gflowdag_lab.__file__).parent.rglob("*.json"))


def odd_row(folder: Path) -> dict[str, object]:
    return {"pareto_k": -math.inf, "r_hat": np.float64("inf"), "auroc": math.nan, "log_evidence": None}


def test_a_row_that_is_not_finite_is_stored_strictly_and_read_as_numbers(tmp_path: Path) -> None:
    task = Task("odd", f"{__name__}:odd_row", {})
    (row,) = run_tasks([task], tmp_path)
    text = (tmp_path / "tasks" / "odd.json").read_text(encoding="utf-8")
    assert json.loads(text, parse_constant=pytest.fail)["row"]["pareto_k"] == "-Infinity"
    assert stored_row(task, tmp_path) == row
    assert (row["pareto_k"], row["r_hat"], row["auroc"]) == (-math.inf, math.inf, None)
    table = pd.DataFrame([row, {"pareto_k": 0.5, "auroc": 0.75}])
    assert table["auroc"].mean() == 0.75  # null is a missing value, not a zero and not an error
    assert table["pareto_k"].min() == -math.inf


def test_a_measure_that_is_no_number_is_not_measured_and_the_file_stays_readable(tmp_path: Path) -> None:
    task = BenchTask("quality", "mc3", 5)
    row = {"name": task.name, **task.as_json(), "to_0.05_s": math.nan, "peak_mib": np.float64(400.0)}
    Results(tmp_path / "bench.json", {"cores": 2}).add(row | {"work_s": math.inf})
    json.loads((tmp_path / "bench.json").read_text(), parse_constant=pytest.fail)
    (stored,) = Results.load(tmp_path / "bench.json").rows
    assert stored["peak_mib"] == 400.0
    assert not {"to_0.05_s", "work_s"} & stored.keys()


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.name)
def test_stored_results_are_strict_json(path: Path) -> None:
    assert json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
