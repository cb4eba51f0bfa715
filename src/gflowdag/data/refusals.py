"""Everything that stands in the way of a table, not only the first thing."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import pandas as pd

from gflowdag.data import table
from gflowdag.data.dataset import Dataset
from gflowdag.data.knowledge import Knowledge
from gflowdag.data.read_options import ReadKeywords, ReadOptions, read_options
from gflowdag.errors import DataError
from gflowdag.runtime.messages import counted

_MAX_LINES = 12  # of the problems that one error lists


class Problems(NamedTuple):
    """What is wrong with a table; all empty where nothing is."""

    messages: tuple[str, ...]
    unusable: tuple[str, ...]  # columns to drop: they cannot be used as they are, and are no targets
    has_gaps: bool  # rows with missing values


def checked_dataset(
    frame: table.Frame,
    options: ReadOptions | None = None,
    *,
    knowledge: Knowledge | None = None,
    **changes: Unpack[ReadKeywords],
) -> Dataset:
    """`Dataset.from_frame` with the same arguments.

    Raises:
        DataError: one error with all problems and the options against them.
    """
    options = read_options(options, changes)
    try:
        return Dataset.from_frame(frame, options, knowledge=knowledge)
    except DataError as error:
        found = table_problems(frame, options, knowledge=knowledge)
        if len(found.messages) == 1:
            raise DataError(found.messages[0]) from error
        lines = [f"{len(found.messages)} problems", *(f"  - {text}" for text in found.messages[:_MAX_LINES])]
        if len(found.messages) > _MAX_LINES:
            lines.append(f"  … and {len(found.messages) - _MAX_LINES} more")
        remedies = [f"--drop {shlex.quote(','.join(found.unusable))}"] if found.unusable else []
        remedies += ["--missing drop"] if found.has_gaps else []
        if remedies:
            lines.append(f"To leave out what cannot be used, add: {' '.join(remedies)}")
        raise DataError("\n".join(lines)) from error


def table_problems(
    frame: table.Frame,
    options: ReadOptions | None = None,
    *,
    knowledge: Knowledge | None = None,
    **changes: Unpack[ReadKeywords],
) -> Problems:
    """What `checked_dataset` would refuse: in the whole, in each column alone, then in the rest."""
    options = read_options(options, changes)
    first = _refusal(lambda: Dataset.from_frame(frame, options, knowledge=knowledge))
    if first is None:
        return Problems((), (), False)
    if whole := _refusal(lambda: _check_whole(frame, options)):
        return Problems((whole,), (), False)
    variables, intervened, targets = _variables(frame, options)
    gaps = _refusal(lambda: table.complete_rows(variables, None, options.missing))
    alone = {name: _refusal_of_column(variables[[name]], name, options) for name in variables.columns}
    refused = [name for name, message in alone.items() if message]
    stuck = _refusal(lambda: table.check_no_targets(intervened[refused]))
    left = [name for name in variables.columns if name not in refused]
    together = _refusal_of_columns(variables[left], options) if left else None
    messages = [message for message in (gaps, *alone.values(), targets, stuck, together) if message]
    unusable = tuple(name for name in refused if not intervened[name].any())
    return Problems(tuple(messages) or (first,), unusable, gaps is not None)


def _check_whole(frame: table.Frame, options: ReadOptions) -> None:
    """Refuse what no column is to blame for."""
    table.named_columns(frame.drop(columns=list(options.drop)))
    table.check_rows(len(frame))


def _variables(frame: table.Frame, options: ReadOptions) -> tuple[table.Frame, table.Frame, str | None]:
    """The variables, the mask of what was set from outside, and why the interventions are refused."""
    targets, refusal = options.interventions, None
    try:
        frame, intervened = table.drop_columns(frame, options.drop, targets, options.intervention_base)
    except DataError as error:
        aside = [*options.drop, targets] if isinstance(targets, str) else list(options.drop)
        frame, intervened, refusal = frame.drop(columns=aside, errors="ignore"), None, str(error)
    if intervened is None:
        intervened = pd.DataFrame(False, index=frame.index, columns=frame.columns)
    return frame, intervened, refusal


def _refusal_of_column(column: table.Frame, name: str, options: ReadOptions) -> str | None:
    num_values = int(column[name].notna().sum())
    if num_values < 2:
        return (
            f"Column {name!r} has {counted(num_values, 'value')} in {len(column)} rows. "
            "Drop it (--drop NAMES on the command line)."
        )
    return _refusal_of_columns(column, options)


def _refusal_of_columns(columns: table.Frame, options: ReadOptions) -> str | None:
    """Why these columns cannot be a table, apart from rows with missing values."""
    alone = replace(options.of_columns(list(columns.columns)), missing="drop")
    return _refusal(lambda: Dataset.from_frame(columns, alone))


def _refusal(attempt: Callable[[], Any]) -> str | None:
    try:
        attempt()
    except DataError as error:
        return str(error)
    return None
