"""Rows as tables, for a terminal and for a page: a grid of text first, then how it looks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from rich.table import Table

from gflowdag_lab.bench.ratios import Change, Ratio, to_baseline
from gflowdag_lab.bench.stored_rows import Results, Row
from gflowdag_lab.bench.tasks import BASELINE, KINDS, SUBJECTS


class _Shown(NamedTuple):
    """What a table shows of its rows."""

    title: str
    measures: tuple[str, ...]
    compared: tuple[str, ...]  # those that stand beside the baseline's


_SHOWN: dict[str, _Shown] = {
    "exact": _Shown("Exact posterior", ("table_s", "posterior_s"), ("posterior_s",)),
    "quality": _Shown(
        "Time to quality",
        ("to_0.05_s", "to_0.02_s", "compilation_s"),
        ("to_0.05_s", "to_0.02_s"),
    ),
    "sampling": _Shown("Sampling", ("dags_per_s",), ("dags_per_s",)),
    "scores": _Shown("Local scores", ("local_per_s", "table_per_s"), ("local_per_s",)),
    "variables": _Shown("Growth with the variables", ("first_s", "work_s"), ("work_s",)),
    "rows": _Shown("Growth with the rows", ("first_s", "work_s"), ("work_s",)),
}
_MORE = {"best_error": "best error", "peak_mib": "MiB", "device_mib": "device MiB"}
_HEADINGS = {
    "table_s": "score table, s",
    "posterior_s": "posterior, s",
    "to_0.05_s": "to 0.05, s",
    "to_0.02_s": "to 0.02, s",
    "compilation_s": "compilation, s",
    "dags_per_s": "DAGs/s",
    "local_per_s": "scores/s",
    "table_per_s": "scores/s, whole table",
    "first_s": "with compilation, s",
    "work_s": "work, s",
}


_WORDS = ("subject", "measurement", "measure")  # columns of text, not of numbers


class Grid(NamedTuple):
    """A table of text."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def grids(rows: Sequence[Row], baseline: str = BASELINE) -> list[Grid]:
    """One table for each kind of measurement that has rows."""
    by_kind = {kind: [row for row in rows if row["kind"] == kind] for kind in KINDS}
    return [_grid(kind, found, baseline) for kind, found in by_kind.items() if found]


def comparison_grid(changes: Sequence[Change], tolerance: float) -> Grid:
    """What became worse or better by more than the tolerance, worst first."""
    shown = [c for c in changes if not 1 / tolerance <= c.times_worse <= tolerance]
    lines = [
        (
            change.name,
            _HEADINGS.get(change.measure, change.measure),
            number(change.before),
            "not reached" if math.isinf(change.now) else number(change.now),
            f"{change.times_worse:.2f} × worse"
            if change.times_worse > 1
            else f"{1 / change.times_worse:.2f} × better",
        )
        for change in shown
    ]
    return Grid("Changes", ("measurement", "measure", "before", "now", "change"), lines)


def rich_table(grid: Grid) -> Table:
    """A grid for a terminal."""
    table = Table(title=grid.title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in grid.columns:
        table.add_column(column, justify="left" if column in _WORDS else "right", no_wrap=column in _WORDS)
    for row in grid.rows:
        table.add_row(*row)
    return table


def markdown(grid: Grid) -> str:
    """A grid for a page."""
    rule = "|".join("---" if column in _WORDS else "--:" for column in grid.columns)
    lines = ["| " + " | ".join(grid.columns) + " |", f"|{rule}|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in grid.rows)])


def page(results: Results, baseline: str = BASELINE) -> str:
    """All tables of a benchmark, with its circumstances, as Markdown."""
    about = ", ".join(f"{key} {value}" for key, value in results.about.items())
    parts = [about, *(f"## {grid.title}\n\n{markdown(grid)}" for grid in grids(results.rows, baseline))]
    return "\n\n".join([*parts, legend(baseline)]) + "\n"


def legend(baseline: str = BASELINE) -> str:
    """What the columns `×` say."""
    return (
        f"× is how many times better than {baseline} (exact: than sumu; scores: than plain NumPy), with > "
        "where that did not arrive in time. – is not reached, or not measured. What a process compiles once "
        "stands apart."
    )


def number(value: float | None) -> str:
    """Two or three digits, without an exponent where that can be read."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) >= 1 else f"{value:.2g}"


def _grid(kind: str, rows: Sequence[Row], baseline: str) -> Grid:
    shown = _SHOWN[kind]
    more = [(name, heading) for name, heading in _MORE.items() if any(name in row for row in rows)]
    columns = ["d", "N", "subject"]
    for measure in shown.measures:
        columns += [_HEADINGS[measure], *(["×"] if measure in shown.compared else [])]
    lines = []
    for row in sorted(rows, key=_place):
        cells = [str(row["num_variables"]), f"{row['num_rows']:,}", row["subject"]]
        for measure in shown.measures:
            cells.append(number(row.get(measure)))
            if measure in shown.compared:
                cells.append(_ratio(to_baseline(rows, row, measure, baseline)))
        lines.append((*cells, *(number(row.get(name)) for name, _ in more)))
    return Grid(shown.title, (*columns, *(heading for _, heading in more)), lines)


def _place(row: Row) -> tuple[int, int, int]:
    """Where a row stands: by size, then by subject; what a file of a stranger may name comes last."""
    subject = row["subject"]
    place = SUBJECTS.index(subject) if subject in SUBJECTS else len(SUBJECTS)
    return row["num_variables"], row["num_rows"], place


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None or math.isnan(ratio.value):
        return ""
    return f"{'> ' if ratio.is_bound else ''}{number(ratio.value)}"
