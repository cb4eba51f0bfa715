"""Tidy tables: CSV files, and Markdown for the page."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from gflowdag.runtime import atomic_write, counted
from gflowdag_lab.paper.methods import METHODS, is_outdated, planned_iterations

Frame: TypeAlias = Any
"""A pandas DataFrame; under pandas' own annotations most ways to index one are errors."""

_TEXT = ("options", "device", "commit", "version", "data_sha256")  # columns that may look like numbers

_CUT_SHORT = re.compile(r"\d of [\d,]+ iterations")  # as `size_of` says it


def write_csv(table: Frame, path: Path) -> None:
    """Write a table, without its index; the points of a plot with fewer digits, since they are many."""
    digits = 7 if path.stem.endswith("-points") else 10
    with atomic_write(path) as stream:
        table.to_csv(stream, index=False, float_format=f"%.{digits}g")


def read_csv(path: Path) -> Frame:
    """A table that `write_csv` wrote."""
    return pd.read_csv(path, dtype=dict.fromkeys(_TEXT, str))


def as_runs(fits: Frame) -> Frame:
    """Fits as runs of one fit each; a table of runs stays what it is.

    A run is a number of `fits`, with `seed` and `seconds` of the least (`_low`) and the most (`_high`).
    """
    if "fits" in fits:
        return fits
    fits = fits.drop_duplicates("task")
    ends = {f"{name}_{end}": fits[name] for name in ("seed", "seconds") for end in ("low", "high")}
    return fits.assign(fits=1, **ends)


def combined(runs: Frame) -> dict[str, Any]:
    """Runs of one method and size as one."""
    row: dict[str, Any] = {"method": runs["method"].iloc[0], "size": runs["size"].iloc[0]}
    row["fits"] = int(runs["fits"].sum())
    for name in ("seed", "seconds"):
        row |= {f"{name}_low": runs[f"{name}_low"].min(), f"{name}_high": runs[f"{name}_high"].max()}
    row |= {name: runs[name].median() for name in ("num_variables", "iterations") if name in runs}
    row["version"] = runs["version"].min()
    for name, separator in (("options", "; "), ("device", ", "), ("commit", ", ")):
        parts = [part for text in runs[name] for part in str(text).split(separator)]
        row[name] = separator.join(dict.fromkeys(parts))
    return row


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
        cells = [shown(row.get(column), digits.get(column, 3)).replace("|", r"\|") for column in columns]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def by_training(
    rows: Sequence[Mapping[str, Any]], digits: Mapping[str, int] | None = None, *, heading: str
) -> tuple[str, str]:
    """Rows that say by `size_of` what was run, as two tables under one heading.

    Returns:
        The rows that came to their end, and those whose training a clock ended; nothing where there are none.
    """
    cut_short = [bool(_CUT_SHORT.search(row["run"] or "")) for row in rows]
    parts = [
        [row for row, cut in zip(rows, cut_short, strict=True) if cut is which] for which in (False, True)
    ]
    finished, unfinished = (
        f"{heading}\n\n{markdown(part, digits)}".strip() if part else "" for part in parts
    )
    return finished, unfinished


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
    """A row's name where its table is not beside it, with what a reader has to know about the row."""
    notes = row_notes(rows[rows["method"] == method])
    return f"{label(method)} ({', '.join(notes)})" if notes else label(method)


def row_notes(rows: Frame) -> list[str]:
    """What a reader has to know about these fits of one method: quick, cut short, by an earlier version."""
    if (rows["size"] == "quick").any():
        return ["quick"]
    notes = ["cut short"] if was_cut_short(rows) else []
    return notes + [f"version {version}" for version in earlier_versions(rows)]


def was_cut_short(rows: Frame) -> bool:
    """Whether the clock ended the training of some of these fits of one method, at full size."""
    if "num_variables" not in rows or "iterations" not in rows or (rows["size"] == "quick").any():
        return False
    return bool((rows["iterations"] < _planned(rows)).any())


def _planned(fits: Frame) -> int:
    """Iterations of these fits of one method where no clock ends their training; 0 for rows without."""
    if fits.empty:
        return 0
    return planned_iterations(fits["method"].iloc[0], int(fits["num_variables"].iloc[0])) or 0


def earlier_versions(rows: Frame) -> list[str]:
    """Versions behind these fits in which their methods were others than today."""
    if "version" not in rows:
        return []
    fits = zip(rows["method"], rows["version"], strict=True)
    return sorted({version for name, version in fits if is_outdated(name, version)})


def datasets_of(rows: Frame) -> str:
    """How many data sets these rows are about, in words."""
    return counted(rows["problem"].nunique(), "data set")


def size_of(rows: Frame) -> str:
    """What was run for one line of a table: size, data sets, seconds and iterations of one fit."""
    run = [str(rows["size"].iloc[0]), datasets_of(rows), f"{rows['seconds'].median():.0f} s"]
    iterations = float(rows["iterations"].median()) if "iterations" in rows else math.nan
    if not math.isnan(iterations):
        of = f" of {_planned(rows):,}" if was_cut_short(rows) else ""
        run.append(f"{iterations:,.0f}{of} iterations")
    return ", ".join([*run, *(f"version {version}" for version in earlier_versions(rows))])
