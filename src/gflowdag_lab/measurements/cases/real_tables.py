"""Real tables that nobody here made: does `gflowdag fit TABLE --yes` answer, and vouch for its answer?

Fixed before anything was measured. The tables are all those with at least 20 rows and 3 columns that
scikit-learn, statsmodels, lifelines, vega_datasets, palmerpenguins and ISLP carry in their files, and every
25th of pydataset's in its own order. Each is written to a CSV file as pandas writes it, without its index.
The command is run on it as a user would, with `--yes` and `--budget 60s` and nothing else.

*Answered* is a command that ends with exit code 0 and a posterior; *vouched for* an answer with the verdict
"exact" or "trusted"; *refused* one that ends with exit code 1 and a sentence; anything else (a traceback,
another exit code, no answer after ten minutes) is a *failure*. Aims: 95 % answered, no failure.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from gflowdag_lab.measurements.harness import Options, Row, case
from gflowdag_lab.measurements.package_tables import PACKAGES, package_table, table_names

LEAST_ROWS, LEAST_COLUMNS = 20, 3
EVERY = {"pydataset": 25}  # of a package with too many tables to try them all
BUDGET, LONGEST_SECONDS = "60s", 600


@case
def real_tables(options: Options) -> Iterator[Row]:
    """`gflowdag fit TABLE --yes` on every real table; `--set only=NAME,…` takes some; packages of PyPI."""
    only = [name for name in options.extra.get("only", "").split(",") if name]
    budget = options.extra.get("budget", BUDGET)
    for package in PACKAGES[:1] if options.quick else PACKAGES:
        try:
            names = table_names(package)[:: EVERY.get(package, 1)]
        except ImportError:
            yield {"table": package, "outcome": "not installed"}
            continue
        for name in names[:1] if options.quick else names:
            if only and name not in only:
                continue
            frame = package_table(package, name)
            if len(frame) >= LEAST_ROWS and frame.shape[1] >= LEAST_COLUMNS:
                yield {"table": f"{package}: {name}"} | answer_to(frame, budget)


def answer_to(frame: pd.DataFrame, budget: str) -> Row:
    """What the command makes of a table, and the CPU seconds of its process."""
    with tempfile.TemporaryDirectory() as folder:
        frame.to_csv(Path(folder, "table.csv"), index=False)
        command = [sys.executable, "-m", "gflowdag", "fit", "table.csv", "--yes", "--budget", budget]
        before = _cpu_seconds()
        try:
            ended = subprocess.run(
                [*command, "--json", "--out", "run"],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=LONGEST_SECONDS,
            )
        except subprocess.TimeoutExpired:
            ended = None
        seconds = _cpu_seconds() - before
    row: Row = {
        "rows": len(frame),
        "columns": frame.shape[1],
        "gaps": int(frame.isna().any(axis=1).sum()),
        "cpu_seconds": round(seconds, 1),
    }
    if ended is None:
        return row | {"outcome": "failure", "message": f"no answer after {LONGEST_SECONDS} seconds"}
    if ended.returncode == 0:
        return row | {"outcome": "answered"} | _told(json.loads(ended.stdout))
    message = " ".join(ended.stderr.split())
    refused = ended.returncode == 1 and "Traceback" not in message
    return row | {"outcome": "refused" if refused else "failure", "message": message}


def _told(answer: dict[str, Any]) -> Row:
    """The verdict, the method, what was decided, and what speaks against the model."""
    diagnostics = answer["diagnostics"]
    return {
        "variables": len(answer["names"]),
        "method": answer["method"],
        "verdict": diagnostics["verdict"],
        "findings": [
            f"{finding['check']}: {', '.join(finding['columns'])}"
            for finding in diagnostics.get("model_fit", {}).get("findings", ())
        ],
        "notes": list(diagnostics["notes"]),
    }


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
