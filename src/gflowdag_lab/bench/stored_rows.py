"""A file of rows, rewritten after every one: a benchmark that is killed keeps what it had."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gflowdag import __version__
from gflowdag.errors import FileFormatError, GFlowDAGError
from gflowdag.runtime import num_cores, read_json, strict_json, write_json
from gflowdag_lab.paper.fits import commit

SCHEMA = 3
MACHINE = ("processor", "cores")  # what seconds that are set beside seconds have in common
RATE = "_per_s"  # ending of measures of which more is better
COSTS = ("_s", "_mib")  # of those of which less is better
_NOT_FINITE = (None, "Infinity", "-Infinity")  # as `strict_json` writes them
Row = dict[str, Any]


def circumstances() -> dict[str, Any]:
    """What measures depend on beside the code: versions, processor, cores."""
    return {
        "version": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": num_cores(),
    }


class Results:
    """The rows of a benchmark, in memory and, where a path is given, in a JSON file.

    Args:
        path: the file, or None to keep nothing.
        about: circumstances and settings, written beside the rows.
        rows: what is there already.
    """

    def __init__(self, path: Path | None, about: Mapping[str, Any], rows: list[Row] | None = None) -> None:
        self.path = path
        self.about = dict(about)
        self.rows: list[Row] = list(rows or [])

    def add(self, row: Row) -> None:
        """Keep a row. A measure that is NaN or infinite is left out: absent is "not measured"."""
        row = strict_json.standard(row)
        missing = [name for name, value in row.items() if is_measure(name) and value in _NOT_FINITE]
        self.rows.append({name: value for name, value in row.items() if name not in missing})
        self.save()

    def save(self) -> None:
        """Write the file, where there is one."""
        if self.path is not None:
            write_json(self.path, {"schema": SCHEMA, **self.about, "rows": self.rows})

    def require_machine(self, about: Mapping[str, Any]) -> None:
        """Refuse rows of another processor or number of cores: in one file they are to be compared.

        Raises:
            GFlowDAGError: they come from elsewhere.
        """
        here, there = ([str(of.get(key, "unknown")) for key in MACHINE] for of in (self.about, about))
        if here != there:
            raise GFlowDAGError(
                f"{self.path or 'these rows'} were measured on {here[0]}, {here[1]} cores; "
                f"rows of {there[0]}, {there[1]} cores belong in another file"
            )

    def add_commits(self, commits: str) -> None:
        """Say that there are rows of other commits too."""
        known = str(self.about.get("commit", "unknown")).split(", ")
        self.about["commit"] = ", ".join(dict.fromkeys([*known, *commits.split(", ")]))

    @classmethod
    def load(cls, path: str | Path) -> Results:
        """The results that a file holds.

        Raises:
            FileFormatError: the file is none of ours.
        """
        content = read_json(path)
        rows = content.get("rows") if isinstance(content, dict) else None
        if not isinstance(rows, list) or content.get("schema") != SCHEMA:
            raise FileFormatError(f"{path} holds no rows of this version's benchmark: measure them again")
        if damaged := [number for number, row in enumerate(rows, start=1) if not _is_row(row)]:
            raise FileFormatError(f"{path} is damaged: row {damaged[0]} is not a measurement")
        about = {key: value for key, value in content.items() if key not in ("schema", "rows")}
        return cls(Path(path), about, rows)


def joined(path: Path | None, parts: Sequence[Results]) -> Results:
    """The rows of several files as those of one; where two measured the same, the first one's.

    Args:
        path: the new file; it is written with the next row, or by `save`.
        parts: at least one; all of one machine.

    Raises:
        GFlowDAGError: they come from different machines.
    """
    whole = Results(path, parts[0].about)
    rows: dict[str, Row] = {}
    for part in parts:
        parts[0].require_machine(part.about)
        whole.add_commits(str(part.about.get("commit", "unknown")))
        rows = {row["name"]: row for row in part.rows if "error" not in row} | rows
    whole.rows = list(rows.values())
    return whole


def is_measure(name: str) -> bool:
    """Whether a field of a row is a measured measure, by the ending of its name."""
    return name.endswith((RATE, *COSTS))


def _is_row(row: Any) -> bool:
    """Whether tables and ratios can rely on what the row holds."""
    if not isinstance(row, dict) or not isinstance(row.get("rungs", []), list):
        return False
    words = (row.get(name) for name in ("name", "kind", "subject"))
    sizes = (row.get(name) for name in ("num_variables", "num_rows"))
    rungs = row.get("rungs", [])
    measures = [value for name, value in row.items() if is_measure(name) or name == "best_error"]
    for rung in rungs:
        measures += [rung.get(name) for name in ("work", "error")] if isinstance(rung, dict) else [None]
    return (
        all(isinstance(word, str) for word in words)
        and all(type(size) is int for size in sizes)
        and all(type(value) in (int, float) and math.isfinite(value) for value in measures)
    )


def _processor() -> str:
    """The processor's name; `platform` alone gives only the architecture on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor() or platform.machine()}, {os.cpu_count()} threads"
