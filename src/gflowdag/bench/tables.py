"""Rows as tables, for a terminal and for a page: a grid of text first, then how it looks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from rich.table import Table

from gflowdag.bench.ratios import Change, Ratio, to_baseline
from gflowdag.bench.results import Results, Row
from gflowdag.bench.tasks import BASELINE, KINDS

# Title, and the figures that are shown, of each kind of measurement.
_SHOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "exact": ("Exact posterior", ("table_s", "posterior_s")),
    "quality": ("Time to quality", ("to_0.05_s", "to_0.05_work_s", "to_0.02_s", "to_0.02_work_s")),
    "sampling": ("Sampling", ("dags_per_s",)),
    "scores": ("Local scores", ("local_per_s", "table_per_s")),
    "variables": ("Growth with the variables", ("first_s", "work_s")),
    "rows": ("Growth with the rows", ("first_s", "work_s")),
}
_HEADINGS = {
    "table_s": "score table, s",
    "posterior_s": "posterior, s",
    "to_0.05_s": "to 0.05, s",
    "to_0.05_work_s": "work, s",
    "to_0.02_s": "to 0.02, s",
    "to_0.02_work_s": "work, s",
    "dags_per_s": "DAGs/s",
    "local_per_s": "scores/s",
    "table_per_s": "scores/s, whole table",
    "first_s": "fit, s",
    "work_s": "work, s",
}


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
            _HEADINGS.get(change.figure, change.figure),
            number(change.before),
            "not reached" if math.isinf(change.now) else number(change.now),
            f"{change.times_worse:.2f} × worse"
            if change.times_worse > 1
            else f"{1 / change.times_worse:.2f} × better",
        )
        for change in shown
    ]
    return Grid("Changes", ("measurement", "figure", "before", "now", "change"), lines)


def rich_table(grid: Grid) -> Table:
    """A grid for a terminal."""
    table = Table(title=grid.title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for index, column in enumerate(grid.columns):
        table.add_column(column, justify="left" if index < 2 else "right", no_wrap=index < 2)
    for row in grid.rows:
        table.add_row(*row)
    return table


def markdown(grid: Grid) -> str:
    """A grid for a page."""
    lines = ["| " + " | ".join(grid.columns) + " |", "|---" * 2 + "|--:" * (len(grid.columns) - 2) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in grid.rows)])


def page(results: Results, baseline: str = BASELINE) -> str:
    """All tables of a benchmark, with its circumstances, as Markdown."""
    about = ", ".join(f"{key} {value}" for key, value in results.about.items())
    parts = [about, *(f"## {grid.title}\n\n{markdown(grid)}" for grid in grids(results.rows, baseline))]
    return "\n\n".join([*parts, legend(baseline)]) + "\n"


def legend(baseline: str = BASELINE) -> str:
    """What the columns `×` say."""
    return f"× is how many times better than {baseline} (exact: than sumu; scores: than plain NumPy)."


def number(value: float | None) -> str:
    """Three digits, without an exponent where that can be read."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _grid(kind: str, rows: Sequence[Row], baseline: str) -> Grid:
    title, figures = _SHOWN[kind]
    has_device = any("device_mib" in row for row in rows)
    columns = [column for figure in figures for column in (_HEADINGS[figure], "×")]
    if kind == "quality":
        columns.append("best error")
    columns += ["memory, MiB", *(["device, MiB"] if has_device else [])]
    ordered = sorted(rows, key=lambda row: (row["num_variables"], row["num_rows"]))
    lines = []
    for (d, n), group in groupby(ordered, key=lambda row: (row["num_variables"], row["num_rows"])):
        for row in group:
            cells = [cell for figure in figures for cell in _cells(rows, row, figure, baseline)]
            if kind == "quality":
                cells.append(number(row.get("best_error")))
            cells += [number(row.get("peak_mib")), *([number(row.get("device_mib"))] if has_device else [])]
            lines.append((f"d={d} N={n:,}", row["subject"], *cells))
    return Grid(title, ("table", "subject", *columns), lines)


def _cells(rows: Sequence[Row], row: Row, figure: str, baseline: str) -> tuple[str, str]:
    """A figure and how many times better than the baseline's it is."""
    if figure not in row:
        return ("failed" if "error" in row else "not reached" if row["kind"] == "quality" else "–"), ""
    return number(row[figure]), _ratio(to_baseline(rows, row, figure, baseline))


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None or math.isnan(ratio.value):
        return ""
    return f"{'> ' if ratio.is_bound else ''}{number(ratio.value)}"
