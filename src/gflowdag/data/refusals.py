"""Everything that stands in the way of a table, not only the first thing."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from gflowdag.data import table
from gflowdag.data.dataset import Dataset
from gflowdag.errors import DataError
from gflowdag.runtime.messages import counted

_MAX_LINES = 12  # of the problems that one error lists


class Problems(NamedTuple):
    """What is wrong with a table; all empty where nothing is."""

    messages: tuple[str, ...]
    unusable: tuple[str, ...]  # columns to drop: they cannot be used as they are, and are no targets
    has_gaps: bool  # rows with missing values


def checked_dataset(frame: table.Frame, *, drop: Sequence[str] = (), **options: Any) -> Dataset:
    """`Dataset.from_frame(frame, **options)` without the columns `drop`, whose interventions are read first.

    Raises:
        DataError: one error with all problems and the options against them.
    """
    try:
        return _dataset(frame, drop, options)
    except DataError as error:
        found = table_problems(frame, drop=drop, **options)
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


def table_problems(frame: table.Frame, *, drop: Sequence[str] = (), **options: Any) -> Problems:
    """What `checked_dataset` would refuse: in the whole, in each column alone, then in the rest."""
    first = _refusal(lambda: _dataset(frame, drop, options))
    if first is None:
        return Problems((), (), False)
    if whole := _refusal(lambda: _check_whole(frame, drop, options)):
        return Problems((whole,), (), False)
    variables, intervened, targets = _variables(frame, drop, options)
    gaps = _refusal(lambda: table.complete_rows(variables, None, options.get("missing", "error")))
    alone = {name: _refusal_of_column(variables[[name]], name, options) for name in variables.columns}
    refused = [name for name, message in alone.items() if message]
    stuck = _refusal(lambda: table.check_no_targets(intervened[refused]))
    aside = {"interventions": None, "missing": "drop", "knowledge": None}
    aside = {**options, **aside, "kinds": _kinds_without(options.get("kinds"), drop)}
    some_left = len(refused) < len(variables.columns)
    together = _refusal(lambda: _dataset(variables, refused, aside)) if some_left else None
    messages = [message for message in (gaps, *alone.values(), targets, stuck, together) if message]
    unusable = tuple(name for name in refused if not intervened[name].any())
    return Problems(tuple(messages) or (first,), unusable, gaps is not None)


def _dataset(frame: table.Frame, drop: Sequence[str], options: dict[str, Any]) -> Dataset:
    interventions, base = options.get("interventions"), options.get("intervention_base")
    frame, intervened = table.drop_columns(frame, drop, interventions, base)
    kinds = _kinds_without(options.get("kinds"), drop)
    return Dataset.from_frame(frame, **{**options, "kinds": kinds, "interventions": intervened})


def _kinds_without(kinds: Any, dropped: Sequence[str]) -> Any:
    if not isinstance(kinds, dict):
        return kinds
    return {name: kind for name, kind in kinds.items() if name not in dropped}


def _check_whole(frame: table.Frame, drop: Sequence[str], options: dict[str, Any]) -> None:
    """Refuse what no column is to blame for."""
    general = ("discretize", "transform", "missing", "bins")
    table.check_options(**{key: options[key] for key in general if key in options})
    table.named_columns(frame.drop(columns=list(drop)))
    table.check_rows(len(frame))


def _variables(
    frame: table.Frame, drop: Sequence[str], options: dict[str, Any]
) -> tuple[table.Frame, table.Frame, str | None]:
    """The variables, the mask of what was set from outside, and why the interventions are refused."""
    targets, refusal = options.get("interventions"), None
    try:
        frame, intervened = table.drop_columns(frame, drop, targets, options.get("intervention_base"))
    except DataError as error:
        aside = [*drop, targets] if isinstance(targets, str) else list(drop)
        frame, intervened, refusal = frame.drop(columns=aside, errors="ignore"), None, str(error)
    if intervened is None:
        intervened = pd.DataFrame(False, index=frame.index, columns=frame.columns)
    return frame, intervened, refusal


def _refusal_of_column(column: table.Frame, name: str, options: dict[str, Any]) -> str | None:
    num_values = int(column[name].notna().sum())
    if num_values < 2:
        return (
            f"Column {name!r} has {counted(num_values, 'value')} in {len(column)} rows. "
            "Drop it (--drop NAMES on the command line)."
        )
    kinds = options.get("kinds")
    if isinstance(kinds, dict):
        kinds = {name: kinds[name]} if name in kinds else None
    alone = {key: options[key] for key in ("discretize", "bins", "transform", "max_levels") if key in options}
    return _refusal(lambda: Dataset.from_frame(column, kinds=kinds, missing="drop", **alone))


def _refusal(attempt: Callable[[], Any]) -> str | None:
    try:
        attempt()
    except DataError as error:
        return str(error)
    return None
