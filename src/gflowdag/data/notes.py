"""What was made of a table, in sentences for the user."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from pandas.api import types

from gflowdag.data.columns import MAX_INTEGER_LEVELS, Column
from gflowdag.runtime.messages import counted, shown
from gflowdag.runtime.place import option, typed

Frame = Any  # a pandas DataFrame; what its methods return is typed too loosely for a checker to follow


def on_levels(columns: Sequence[Column], values: np.ndarray) -> list[str]:
    """Levels that no row is left with; `values` holds the codes of discrete columns, [n, d]."""
    notes = []
    for column, codes in zip(columns, values.T, strict=True):
        if column.kind == "discrete" and column.levels is not None:
            left = set(codes[~np.isnan(codes)].astype(np.int64).tolist())
            if empty := [level for code, level in enumerate(column.levels) if code not in left]:
                notes.append(f"No row has the level {shown(map(repr, empty))} of {column.name!r}.")
    return notes


def on_copies(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """A note on each pair of discrete columns that hold the same information; they are not refused."""
    return [
        f"{first!r} and {second!r} hold the same information, up to labels: what depends on one of them "
        f"cannot be told from what depends on the other. {option('drop', [second])} leaves one out."
        for first, second in pairs
    ]


def on_shape(frame: Frame) -> list[str]:
    """A note on a table that may have to be transposed."""
    return [] if (word := transposed(frame)) is None else [word]


def transposed(frame: Frame) -> str | None:
    """A sentence on a table with more columns than rows, which may have been meant the other way round."""
    num_rows, num_columns = frame.shape
    if num_columns <= num_rows or num_columns < 4:
        return None
    first = frame.iloc[:, 0]
    names_rows = not types.is_numeric_dtype(first) and num_rows > 1 and first.is_unique
    seems = f" {frame.columns[0]!r} seems to name variables." if names_rows else ""
    how = typed(python="df.T", command_line="swap rows and columns in the file")
    return (
        f"There are more columns ({num_columns}) than rows ({num_rows}).{seems} Rows are observations and "
        f"columns variables: where it is the other way round, transpose the table ({how})."
    )


def on_columns(columns: Sequence[Column], said: Collection[str] = ()) -> list[str]:
    """What was made of the columns, in sentences for the user; first the continuous ones.

    Args:
        columns: all of them.
        said: those whose kind the user gave.
    """
    continuous = [column for column in columns if column.kind == "continuous"]
    discrete = [column for column in columns if column.kind == "discrete"]
    notes = []
    if continuous:
        how = "standardised (ddof = 1)" if continuous[0].scaling else "not scaled"
        notes = _on_transforms(continuous)
        notes.append(f"{_count(continuous)} taken as continuous, {how}: {_names(continuous)}.")
    if discrete:
        notes.append(f"{_count(discrete)} taken as discrete: {_names(discrete)}.")
    if numbers := [column.name for column in discrete if column.holds_numbers and column.name not in said]:
        notes.append(
            f"Taken as levels because they hold few different numbers: {shown(numbers, 12)}. "
            f"{option('continuous', numbers)} takes them as measurements."
        )
    if binned := [column for column in discrete if column.cuts is not None]:
        levels = shown(f"{column.name} ({', '.join(map(str, column.levels or ()))})" for column in binned)
        notes.append(f"{len(binned)} of them were continuous and cut into bins: {levels}.")
    return notes


def _on_transforms(columns: Sequence[Column]) -> list[str]:
    logged = [column.name for column in columns if column.log]
    ranked = [column.name for column in columns if column.scores is not None]
    notes = [f"The logarithm was taken of {shown(logged, 12)}."] if logged else []
    return notes + (
        [f"The values of {shown(ranked, 12)} were replaced by the normal scores of their ranks."]
        if ranked
        else []
    )


def _count(columns: Sequence[Column]) -> str:
    return counted(len(columns), "variable")


def _names(columns: Sequence[Column]) -> str:
    return shown([column.name for column in columns], 12)


def identifiers(frame: Frame) -> list[str]:
    """Columns of words of which no two are equal."""
    return [
        name
        for name, cells in frame.items()
        if not types.is_numeric_dtype(cells) and len(cells) > 2 and cells.is_unique
    ]


def on_identifiers(frame: Frame) -> list[str]:
    """A warning for each column that seems to name the rows."""
    return [
        f"Column {name!r} has another value in every row, as identifiers have, and was taken as a variable: "
        f"drop it if it is not one ({option('drop', [name])})."
        for name in identifiers(frame)
    ]


def row_numbers(frame: Frame) -> list[str]:
    """Columns of whole numbers that merely count: all different, and without a gap."""
    return [
        name
        for name, cells in frame.items()
        if (types.is_integer_dtype(cells) or types.is_float_dtype(cells))
        and len(cells) > MAX_INTEGER_LEVELS
        and cells.max() - cells.min() == len(cells) - 1
        and (cells % 1 == 0).all()
        and cells.is_unique
    ]


def on_row_numbers(frame: Frame) -> list[str]:
    """A warning for each column that seems to number the rows."""
    return [
        f"Column {name!r} looks like row numbers, and was taken as a variable: drop it if it is not one "
        f"({option('drop', [name])})."
        for name in row_numbers(frame)
    ]


def on_interventions(intervened: np.ndarray | None, names: Sequence[str]) -> list[str]:
    """Which variables were set from outside and how often, in sentences for the user."""
    if intervened is None:
        return []
    counts = dict(zip(names, intervened.sum(axis=0).tolist(), strict=True))
    told = shown([f"{name} in {counted(n, 'row')}" for name, n in counts.items() if n], 12) or "none"
    observational = int((~intervened.any(axis=1)).sum())
    verb = "is" if observational == 1 else "are"
    notes = [f"Interventions: {told}; {counted(observational, 'row')} {verb} observational."]
    if always := [name for name, count in counts.items() if count == len(intervened)]:
        notes.append(f"Every row sets {shown(always)}: the data cannot tell what causes it.")
    return notes
