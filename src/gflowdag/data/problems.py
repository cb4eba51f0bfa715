"""Everything that stands in the way of a table, not only the first thing."""

from __future__ import annotations

import shlex
from typing import Any, NamedTuple

import pandas as pd

from gflowdag.data import table
from gflowdag.data.dataset import Dataset
from gflowdag.errors import DataError

_MAX_LINES = 12  # of the problems that one error lists


class Problems(NamedTuple):
    """What is wrong with a table; all empty where nothing is."""

    messages: tuple[str, ...]
    unusable: tuple[str, ...]  # columns that cannot be used as they are
    has_gaps: bool  # rows with missing values


def checked_dataset(frame: pd.DataFrame, **options: Any) -> Dataset:
    """`Dataset.from_frame(frame, **options)`, or one error with all problems and the options against them."""
    try:
        return Dataset.from_frame(frame, **options)
    except DataError as error:
        found = table_problems(frame, **options)
        if len(found.messages) == 1:
            raise
        lines = [f"{len(found.messages)} problems", *(f"  - {text}" for text in found.messages[:_MAX_LINES])]
        if len(found.messages) > _MAX_LINES:
            lines.append(f"  … and {len(found.messages) - _MAX_LINES} more")
        remedies = [f"--drop {shlex.quote(','.join(found.unusable))}"] if found.unusable else []
        remedies += ["--missing drop"] if found.has_gaps else []
        if remedies:
            lines.append(f"To leave out what cannot be used, add: {' '.join(remedies)}")
        raise DataError("\n".join(lines)) from error


def table_problems(frame: pd.DataFrame, **options: Any) -> Problems:
    """What `Dataset.from_frame(frame, **options)` would refuse: in each column alone, then in the rest."""
    try:
        Dataset.from_frame(frame, **options)
        return Problems((), (), False)
    except DataError as error:
        first = str(error)
    try:
        frame = table.named_columns(frame)
        targets = options.get("interventions")
        variables = [name for name in frame.columns if not isinstance(targets, str) or name != targets]
        gaps = _refusal(lambda: table.complete_rows(frame[variables], None, options.get("missing", "error")))
    except DataError:
        return Problems((first,), (), False)
    alone = {name: _refusal_of_column(frame[[name]], name, options) for name in variables}
    unusable = tuple(name for name, message in alone.items() if message)
    rest = frame.drop(columns=list(unusable))
    knowledge_aside = {**options, "missing": "drop", "knowledge": None}
    together = _refusal(lambda: Dataset.from_frame(rest, **knowledge_aside)) if len(rest.columns) else None
    messages = [message for message in (gaps, *alone.values(), together) if message]
    return Problems(tuple(messages) or (first,), unusable, gaps is not None)


def _refusal_of_column(column: Any, name: str, options: dict[str, Any]) -> str | None:
    kinds = options.get("kinds")
    if isinstance(kinds, dict):
        kinds = {name: kinds[name]} if name in kinds else None
    alone = {key: options[key] for key in ("discretize", "bins", "transform", "max_levels") if key in options}
    return _refusal(lambda: Dataset.from_frame(column, kinds=kinds, missing="drop", **alone))


def _refusal(attempt: Any) -> str | None:
    try:
        attempt()
    except DataError as error:
        return str(error)
    return None
