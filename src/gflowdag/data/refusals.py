"""Everything that stands in the way of a table, not only the first thing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple, Unpack

import pandas as pd

from gflowdag.data import table
from gflowdag.data.dataset import Dataset
from gflowdag.data.knowledge import Knowledge
from gflowdag.data.notes import transposed
from gflowdag.data.read_options import LISTS, ReadKeywords, ReadOptions, read_options
from gflowdag.errors import DataError, GFlowDAGError
from gflowdag.runtime.messages import counted
from gflowdag.runtime.place import option, typed

_MAX_LINES = 12  # of the problems that one error lists
_ADDED = (*LISTS, "missing_values")  # options of which a remedy names what is to be added


class Problems(NamedTuple):
    """What is wrong with a table; all empty where nothing is."""

    messages: tuple[str, ...]
    unusable: tuple[str, ...]  # columns to drop: they cannot be used as they are, and are no targets
    has_gaps: bool  # rows with missing values
    half_empty: tuple[str, ...] = ()  # columns to drop: most of their cells are missing
    missing: tuple[str, ...] = ()  # cells, as COLUMN=CELL, that hardly are values
    discrete: tuple[str, ...] = ()  # columns of numbers with other cells that may be levels
    data: Dataset | None = None  # what was read, where nothing is wrong


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
        messages = table_problems(frame, options, knowledge=knowledge).messages
        readable = mended(frame, options, knowledge=knowledge)
        raise DataError(problem_list(messages, options, readable)) from error


def problem_list(messages: Sequence[str], options: ReadOptions, readable: ReadOptions | None) -> str:
    """All problems of a table in one text, and the options with which it can be read.

    Args:
        messages: the problems.
        options: how the table was to be read.
        readable: how it can be read, or None.
    """
    remedy = "" if readable is None else added_options(options, readable)
    if len(messages) == 1:
        needless = not remedy or remedy in messages[0]
        return messages[0] if needless else f"{messages[0]} What works: {remedy}"
    lines = [f"{len(messages)} problems", *(f"  - {text}" for text in messages[:_MAX_LINES])]
    if len(messages) > _MAX_LINES:
        lines.append(f"  … and {len(messages) - _MAX_LINES} more")
    if remedy:
        lines.append(f"To leave out what cannot be used, add: {remedy}")
    return "\n".join(lines)


def added_options(before: ReadOptions, after: ReadOptions) -> str:
    """The options of `after` that `before` has not, as they are typed."""
    parts: list[str] = []
    for part in fields(ReadOptions):
        old, new = getattr(before, part.name), getattr(after, part.name)
        if part.name in _ADDED:
            new = [name for name in new if name not in old]
        elif new is old or new == old:
            continue
        if part.name not in _ADDED or new:
            parts.append(option(part.name, new))
    return typed(python=", ".join(parts), command_line=" ".join(parts))


def mended(
    frame: table.Frame, options: ReadOptions | None = None, *, knowledge: Knowledge | None = None
) -> ReadOptions | None:
    """The options with which a table can be read: without what cannot be used of it. None if that is no help.

    Columns of which more than half of the cells are missing go first, then rows with missing values, then
    columns that are in the way. What is returned was tried.
    """
    options = options or ReadOptions()
    found = table_problems(frame, options, knowledge=knowledge)
    if not found.messages:
        return options
    out = list(found.unusable)
    options = replace(
        options,
        missing_values=(*options.missing_values, *found.missing),
        discrete=(*options.discrete, *found.discrete),
    )
    if options.missing == "error" and (found.has_gaps or found.missing):
        options = replace(options, missing="drop")
        out += [name for name in found.half_empty if name not in out]
    for _ in range(frame.shape[1] + 1):
        options = replace(options, drop=(*options.drop, *out))
        try:
            Dataset.from_frame(frame, options, knowledge=knowledge)
        except DataError as error:
            out = [name for name in error.without if name not in options.drop]
            if not out:
                return None
        except GFlowDAGError:  # the knowledge speaks of a column that cannot be used
            return None
        else:
            return options
    return None


def table_problems(
    frame: table.Frame,
    options: ReadOptions | None = None,
    *,
    knowledge: Knowledge | None = None,
    **changes: Unpack[ReadKeywords],
) -> Problems:
    """What `checked_dataset` would refuse: in the whole, in each column alone, then in the rest."""
    options = read_options(options, changes)
    try:
        return Problems((), (), False, data=Dataset.from_frame(frame, options, knowledge=knowledge))
    except DataError as error:
        first = error
    if whole := _refusal(lambda: _check_whole(frame, options)):
        return Problems((str(whole),), (), False)
    variables, intervened, targets = _variables(frame, options)
    gaps = (
        _refusal(lambda: table.complete_rows(variables, None, "error"))
        if options.missing == "error"
        else None
    )
    alone = {name: _refusal_of_column(variables[[name]], name, options) for name in variables.columns}
    mendable = {name: error for name, error in alone.items() if error and (error.missing or error.discrete)}
    refused = [name for name, error in alone.items() if error and name not in mendable]
    stuck = _refusal(lambda: table.check_no_targets(intervened[refused]))
    left = [name for name in variables.columns if not alone[name]]
    together = _refusal_of_columns(variables[left], options) if left else None
    messages = [str(error) for error in (gaps, *alone.values(), targets, stuck, together) if error]
    unusable = tuple(name for name in refused if not intervened[name].any())
    empty = variables.isna().mean() > 0.5
    half_empty = tuple(name for name in variables.columns if empty[name] and not intervened[name].any())
    word = transposed(variables)
    if word is not None:
        messages.insert(0, word)
    return Problems(
        tuple(messages) or (str(first),),
        unusable,
        gaps is not None,
        half_empty,
        missing=tuple(entry for error in mendable.values() for entry in error.missing),
        discrete=tuple(name for error in mendable.values() for name in error.discrete),
    )


def _check_whole(frame: table.Frame, options: ReadOptions) -> None:
    """Refuse what no column is to blame for."""
    table.named_columns(frame.drop(columns=list(options.drop)))
    table.check_rows(len(frame))


def _variables(frame: table.Frame, options: ReadOptions) -> tuple[table.Frame, table.Frame, str | None]:
    """The variables, the mask of what was set from outside, and why the interventions are refused."""
    targets, refusal = options.interventions, None
    frame, _ = table.with_gaps(frame, options)
    try:
        frame, intervened = table.drop_columns(frame, options.drop, targets, options.intervention_base)
    except DataError as error:
        aside = [*options.drop, targets] if isinstance(targets, str) else list(options.drop)
        frame, intervened, refusal = frame.drop(columns=aside, errors="ignore"), None, str(error)
    if intervened is None:
        intervened = pd.DataFrame(False, index=frame.index, columns=frame.columns)
    return frame, intervened, refusal


def _refusal_of_column(column: table.Frame, name: str, options: ReadOptions) -> DataError | None:
    num_values = int(column[name].notna().sum())
    if num_values < 2:
        return DataError(
            f"Column {name!r} has {counted(num_values, 'value')} in {counted(len(column), 'row')}. Drop it: "
            f"{option('drop', [name])}."
        )
    return _refusal_of_columns(column, options)


def _refusal_of_columns(columns: table.Frame, options: ReadOptions) -> DataError | None:
    """Why these columns cannot be a table, apart from rows with missing values."""
    alone = options.of_columns(list(columns.columns))
    if alone.missing == "error":
        alone = replace(alone, missing="drop")
    return _refusal(lambda: Dataset.from_frame(columns, alone))


def _refusal(attempt: Callable[[], Any]) -> DataError | None:
    try:
        attempt()
    except DataError as error:
        return error
    return None
