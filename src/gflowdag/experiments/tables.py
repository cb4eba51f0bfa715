"""Tidy tables: CSV files, and Markdown for the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from gflowdag.experiments.methods import METHODS
from gflowdag.files import atomic_write

Frame: TypeAlias = Any
"""A pandas DataFrame; under pandas' own annotations most ways to index one are errors."""


def write_csv(table: Frame, path: Path) -> None:
    """Write a table, without its index."""
    with atomic_write(path) as stream:
        table.to_csv(stream, index=False, float_format="%.10g")


def markdown(rows: Sequence[Mapping[str, Any]], digits: Mapping[str, int] | None = None) -> str:
    """Rows with the same keys as a Markdown table; what is missing is a dash.

    Args:
        rows: the cells by column.
        digits: decimals of numeric columns; three where it says nothing.
    """
    if not rows:
        return "*Nothing has been computed yet.*"
    columns = list(rows[0])
    digits = digits or {}
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        cells = [shown(row.get(column), digits.get(column, 3)) for column in columns]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def shown(value: Any, digits: int = 3) -> str:
    """A cell: a number with so many decimals, a dash for nothing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return str(value)


def spread(values: Frame, digits: int = 2) -> str:
    """Median and quartiles of several data sets, or the one value."""
    values = values.dropna()
    if values.empty:
        return "–"
    if len(values) == 1:
        return shown(float(values.iloc[0]), digits)
    low, median, high = (float(values.quantile(q)) for q in (0.25, 0.5, 0.75))
    return f"{median:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def label(method: str) -> str:
    """A row's name."""
    return METHODS[method].label


def drawn_label(method: str, rows: Frame) -> str:
    """A row's name where its table is not beside it: it says so if the row was run quick or cut short."""
    mine = rows[rows["method"] == method]
    if (mine["size"] == "quick").any():
        return f"{label(method)} (quick)"
    return f"{label(method)} (cut short)" if had_budget(mine) else label(method)


def had_budget(rows: Frame) -> bool:
    """Whether seconds, not a number of iterations, ended the training of these fits."""
    return bool("options" in rows and rows["options"].str.contains("budget=").any())


def budget(rows: Frame) -> float:
    """Seconds that ended the training of these fits, of the whole stack where they were trained together."""
    return float(rows["options"].str.extract(r"budget=([\d.]+)", expand=False).astype(float).median())


def size_of(rows: Frame) -> str:
    """What was run for one line of a table: size, data sets, seconds and iterations of one fit."""
    count = rows["problem"].nunique()
    sets = "1 data set" if count == 1 else f"{count} data sets"
    run = f"{rows['size'].iloc[0]}, {sets}, {rows['seconds'].median():.0f} s"
    iterations = float(rows["iterations"].median()) if "iterations" in rows else math.nan
    return run if math.isnan(iterations) else f"{run}, {iterations:,.0f} iterations"
