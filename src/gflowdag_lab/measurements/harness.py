"""One harness for every benchmark: a case yields rows; the harness times, prints and stores them.

A case is a function `case(options) -> iterator of rows` in `cases/`, registered by `@case`. A row
is a flat dictionary of strings and numbers. The JSON file is that of `gflowdag bench`, with the rows' `case`;
it is rewritten after every row, so that a killed run keeps what it had.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gflowdag.posterior import device_name
from gflowdag_lab.bench.stored_rows import Results, Row, circumstances

__all__ = ["CASES", "Options", "Row", "case", "in_double_precision", "markdown", "run"]


@dataclass(frozen=True)
class Options:
    """What a case is told."""

    quick: bool = False  # seconds instead of minutes: shapes and paths are tested, numbers mean nothing
    data: Path | None = None  # folder with the real data
    references: Path = (
        Path(__file__).parent / "references"
    )  # exact posteriors, cached by the hash of their table
    seed: int = 0
    extra: dict[str, str] = field(default_factory=dict)  # case-specific `name=value`


Case = Callable[[Options], Iterator[Row]]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    """Register a benchmark case under its function's name, with dashes."""
    CASES[function.__name__.replace("_", "-")] = function
    return function


def in_double_precision(rows: Callable[..., Iterator[Row]], *arguments: Any) -> Iterator[Row]:
    """The rows of a generator whose body needs 64-bit JAX types, one at a time."""
    import jax

    with jax.enable_x64(True):
        yield from rows(*arguments)


def run(names: list[str], options: Options, output: Path | None) -> list[Row]:
    """Run the cases, print each row as it comes, and keep all of them in `output`."""
    about = {"device": device_name(), "quick": options.quick, "seed": options.seed}
    results = Results(output, circumstances() | about)
    for name in names:
        print(f"\n{name}", flush=True)
        started = time.perf_counter()
        for row in CASES[name](options):
            results.add({"case": name, **row, "elapsed": round(time.perf_counter() - started, 2)})
            print("  " + "  ".join(f"{key} {_shown(value)}" for key, value in row.items()), flush=True)
    return results.rows


def markdown(rows: list[Row]) -> str:
    """Rows of one case as a Markdown table."""
    columns = list(dict.fromkeys(key for row in rows for key in row if not isinstance(row[key], list | dict)))
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_shown(row.get(key, "")) for key in columns) + " |" for row in rows]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | dict):
        return f"[{len(value)}]"
    return str(value)
