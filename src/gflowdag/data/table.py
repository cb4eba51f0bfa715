"""From a DataFrame as users have it to named, complete columns of one kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from gflowdag.data.columns import MAX_INTEGER_LEVELS, Column, Kind, infer_kind, plain_name
from gflowdag.data.interventions import intervention_mask
from gflowdag.data.read_options import ReadOptions, Transform
from gflowdag.errors import DataError
from gflowdag.runtime.messages import CONTROL_CHARACTER, counted, shown, unknown_name

Frame = Any  # a pandas DataFrame; what its methods return is typed too loosely for a checker to follow


def to_pandas(table: Any) -> pd.DataFrame:
    """A DataFrame of another library (polars and its like) as a pandas one."""
    try:
        return table.to_pandas()
    except ImportError:  # polars without pyarrow
        return pd.DataFrame(table.to_dict(as_series=False))


def named_columns(frame: Frame) -> Frame:
    """The frame with rows numbered from 0 and with text as column names, all different."""
    if not isinstance(frame, pd.DataFrame):
        raise DataError(f"A pandas DataFrame is needed here, got {type(frame).__name__}.")
    names = [plain_name(name) for name in frame.columns]
    if repeated := sorted(name for name, count in Counter(names).items() if count > 1):
        raise DataError(
            f"Column names occur more than once: {shown(map(repr, repeated))}. Rename the columns."
        )
    if "" in names:
        position = names.index("")
        raise DataError(
            f"Column {position + 1} has no name. Name it, or drop it: "
            f'df.drop(columns=df.columns[{position}]), or --drop "" on the command line.'
        )
    if unprintable := next(filter(CONTROL_CHARACTER.search, names), None):
        raise DataError(
            f"The name of column {names.index(unprintable) + 1}, {unprintable!r}, has a control "
            "character in it, which cannot be seen. Rename the column."
        )
    if not names:
        raise DataError(
            f"The table has no variables: 0 feature(s) (shape={frame.shape}) while a minimum of 1 is "
            "required."
        )
    return frame.set_axis(names, axis=1).reset_index(drop=True)


def split_interventions(
    frame: Frame, interventions: Any, base: int | None
) -> tuple[Frame, np.ndarray | None]:
    """The variables, and the mask [n, d] of what was set from outside; a column of targets is no variable."""
    if interventions is None:
        return frame, None
    if isinstance(interventions, str):
        interventions = plain_name(interventions)
        if interventions not in frame.columns:
            raise DataError(
                f"interventions names no column. {unknown_name(interventions, list(frame.columns))}"
            )
        interventions, frame = frame[interventions], frame.drop(columns=interventions)
        if not len(frame.columns):
            raise DataError("The table has no variables besides the column of interventions.")
    return frame, intervention_mask(interventions, list(frame.columns), len(frame), base=base)


def variables(frame: Frame, options: ReadOptions) -> tuple[Frame, np.ndarray | None]:
    """The variables of a table, without those to drop, and the mask [n, d] of what was set from outside."""
    interventions, base = options.interventions, options.intervention_base
    if options.drop:
        frame, interventions = drop_columns(frame, options.drop, interventions, base)
    return split_interventions(named_columns(frame), interventions, base)


def drop_columns(
    frame: Frame, dropped: Sequence[str], interventions: Any, base: int | None
) -> tuple[Frame, Frame | None]:
    """The variables without those `dropped`, and the mask of what was set from outside, with their names.

    Numbers of targets count the variables of the whole `frame`, as they did for whoever wrote them. A column
    without a name counts for nothing: it holds the names of the rows, as R writes them.
    """
    frame = frame.set_axis([plain_name(name) for name in frame.columns], axis=1)
    if unknown := [name for name in dropped if name not in frame.columns]:
        raise DataError(f"drop names no column. {unknown_name(unknown[0], list(frame.columns))}")
    if interventions is None:
        return frame.drop(columns=list(dropped)), None
    if isinstance(interventions, str) and interventions in dropped:
        raise DataError(
            f"The column {interventions!r} holds the interventions and is not a variable: it need not be "
            "dropped."
        )
    frame = frame.drop(columns=[name for name in dropped if name == ""])
    frame, intervened = split_interventions(frame, interventions, base)
    mask = pd.DataFrame(intervened, columns=frame.columns)
    gone = [name for name in dropped if name != ""]
    check_no_targets(mask[gone])
    return frame.drop(columns=gone), mask.drop(columns=gone)


def check_no_targets(intervened: Frame) -> None:
    """Refuse to drop variables that were set from outside; `intervened` is their mask, by name.

    Without them these rows would pass as observational, and they are not: other variables answered.
    """
    if told := [
        f"{name!r} is set in {counted(count, 'row')}" for name, count in intervened.sum().items() if count
    ]:
        raise DataError(
            f"A target of interventions cannot be dropped: {shown(told)}. Take these rows out of the table "
            "first, or empty their targets if they may count as observational."
        )


def check_rows(num_rows: int) -> None:
    """Refuse a table with fewer than two observations."""
    if num_rows < 2:
        raise DataError(
            f"Too few rows (n_samples={num_rows}): give at least 2 observations, better hundreds."
        )


def check_new_rows(num_rows: int) -> None:
    """Refuse further observations of a known table where none is left; one is enough."""
    if num_rows == 0:
        raise DataError("Too few rows (n_samples=0): give at least 1 observation without missing values.")


def complete_rows(
    frame: Frame, intervened: np.ndarray | None, missing: str
) -> tuple[Frame, np.ndarray | None, list[str]]:
    """The rows without missing values and a note on the others, or a refusal where `missing` is `"error"`."""
    absent = frame.isna().to_numpy()
    if not absent.any():
        return frame.infer_objects(), intervened, []
    complete = ~absent.any(axis=1)
    where = shown(
        f"{name!r}: {column.sum()} (first in row {column.argmax() + 1})"
        for name, column in zip(frame.columns, absent.T, strict=True)
        if column.any()
    )
    if missing == "error":
        raise DataError(
            f"Missing values (NaN) in {where}. Fill them in, drop the column, or pass missing='drop', which "
            f"keeps {complete.sum()} of {counted(len(frame), 'row')} (--missing drop on the command line)."
        )
    kept = frame[complete].reset_index(drop=True).infer_objects()
    for name in frame.columns[absent.any(axis=0)]:  # pandas turns integers with gaps into floats
        is_whole = types.is_float_dtype(kept[name]) and (kept[name] % 1 == 0).all()
        if is_whole and kept[name].abs().max() < 2**53:  # beyond, every float is whole
            kept[name] = kept[name].astype(np.int64)
    note = f"{(~complete).sum()} of {len(frame)} rows were dropped because of missing values in {where}."
    return kept, None if intervened is None else intervened[complete], [note]


def column_kinds(frame: Frame, options: ReadOptions) -> dict[str, Kind]:
    """The kind of each column: as the user says, otherwise inferred."""
    names = list(frame.columns)
    given = options.given_kinds(names)
    for name, kind in given.items():
        if name not in names:
            raise DataError(f"`kinds` names an unknown column. {unknown_name(name, names)}")
        if kind not in ("continuous", "discrete"):
            raise DataError(f"The kind of column {name!r} must be 'continuous' or 'discrete', got {kind!r}.")
    return {name: given[name] if name in given else infer_kind(name, frame[name]) for name in names}


def column_transforms(kinds: Mapping[str, Kind], options: ReadOptions) -> dict[str, Transform | None]:
    """The transform of each continuous column that has one: of all, or of those that are named."""
    transforms = options.transforms()
    if not isinstance(transforms, Mapping):
        return {name: transforms for name, kind in kinds.items() if kind == "continuous"}
    for name in transforms:
        if name not in kinds:
            raise DataError(f"`transform` names an unknown column. {unknown_name(name, list(kinds))}")
        if kinds[name] == "discrete":
            raise DataError(
                f"`transform` is for continuous columns, and {name!r} is discrete: leave it out, or pass "
                f"kinds={{{name!r}: 'continuous'}} (--continuous NAMES on the command line)."
            )
    return dict(transforms)


def notes_on_columns(columns: Sequence[Column]) -> list[str]:
    """What was made of the columns, in sentences for the user; first the continuous ones."""
    continuous = [column for column in columns if column.kind == "continuous"]
    discrete = [column for column in columns if column.kind == "discrete"]
    notes = []
    if continuous:
        how = "standardised (ddof = 1)" if continuous[0].scaling else "not scaled"
        notes = _notes_on_transforms(continuous)
        notes.append(f"{_count(continuous)} taken as continuous, {how}: {_names(continuous)}.")
    if discrete:
        notes.append(f"{_count(discrete)} taken as discrete: {_names(discrete)}.")
    if binned := [column for column in discrete if column.cuts is not None]:
        levels = shown(f"{column.name} ({', '.join(map(str, column.levels or ()))})" for column in binned)
        notes.append(f"{len(binned)} of them were continuous and cut into bins: {levels}.")
    return notes


def _notes_on_transforms(columns: Sequence[Column]) -> list[str]:
    logged = [column.name for column in columns if column.log]
    ranked = [column.name for column in columns if column.scores is not None]
    notes = [f"The logarithm was taken of {shown(logged, 12)}."] if logged else []
    return notes + (
        [f"Ranks (normal scores) in place of the values of {shown(ranked, 12)}."] if ranked else []
    )


def _count(columns: Sequence[Column]) -> str:
    return counted(len(columns), "variable")


def _names(columns: Sequence[Column]) -> str:
    return shown([column.name for column in columns], 12)


def notes_on_row_numbers(frame: Frame) -> list[str]:
    """A warning for each column of whole numbers that merely counts: all different, and without a gap."""
    counting = [
        name
        for name, cells in frame.items()
        if types.is_integer_dtype(cells)
        and len(cells) > MAX_INTEGER_LEVELS
        and cells.is_unique
        and cells.max() - cells.min() == len(cells) - 1
    ]
    return [
        f"Column {name!r} looks like row numbers, and was taken as a variable: drop it if it is not one "
        "(--drop NAMES on the command line)."
        for name in counting
    ]


def notes_on_interventions(intervened: np.ndarray | None, names: Sequence[str]) -> list[str]:
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
