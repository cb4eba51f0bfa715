"""From a DataFrame as users have it to named, complete columns of one kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gflowdag.data.columns import Kind, infer_kind, observed_levels, plain_name
from gflowdag.data.interventions import intervention_mask
from gflowdag.data.read_options import ReadOptions, Transform
from gflowdag.data.spellings import settled
from gflowdag.errors import DataError
from gflowdag.runtime.messages import CONTROL_CHARACTER, counted, shown, unknown_name
from gflowdag.runtime.place import option, typed

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
            f"Column {position + 1} has no name. Name it, or drop it: {option('drop', [''])}.", without=[""]
        )
    if unprintable := next(filter(CONTROL_CHARACTER.search, names), None):
        raise DataError(
            f"The name of column {names.index(unprintable) + 1}, {unprintable!r}, has a control "
            "character in it, which cannot be seen. Rename the column."
        )
    if not names:
        raise DataError(
            "The table has no variables"
            + typed(
                python=f": 0 feature(s) (shape={frame.shape}) while a minimum of 1 is required.",
                command_line=".",
            )
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
            found = unknown_name(interventions, list(frame.columns))
            raise DataError(f"{option('interventions')} names no column. {found}")
        interventions, frame = frame[interventions], frame.drop(columns=interventions)
        if not len(frame.columns):
            raise DataError("The table has no variables besides the column of interventions.")
    return frame, intervention_mask(interventions, list(frame.columns), len(frame), base=base)


def variables(frame: Frame, options: ReadOptions) -> tuple[Frame, np.ndarray | None]:
    """The variables of a table, without those to drop, and the mask [n, d] of what was set from outside.

    What says "missing" is a gap in them.
    """
    frame, _ = with_gaps(frame, options)
    interventions, base = options.interventions, options.intervention_base
    if options.drop:
        frame, interventions = drop_columns(frame, options.drop, interventions, base)
    return split_interventions(named_columns(frame), interventions, base)


def with_gaps(frame: Frame, options: ReadOptions) -> tuple[Frame, list[str]]:
    """The table with gaps for what says "missing", and notes on what that was."""
    if not isinstance(frame, pd.DataFrame) or not frame.columns.is_unique:  # refused elsewhere
        return frame, []
    named = frame.set_axis([plain_name(name) for name in frame.columns], axis=1)
    return settled(named, options.spellings) if named.columns.is_unique else (frame, [])


def drop_columns(
    frame: Frame, dropped: Sequence[str], interventions: Any, base: int | None
) -> tuple[Frame, Frame | None]:
    """The variables without those `dropped`, and the mask of what was set from outside, with their names.

    Numbers of targets count the variables of the whole `frame`, as they did for whoever wrote them. A column
    without a name counts for nothing: it holds the names of the rows, as R writes them.
    """
    frame = frame.set_axis([plain_name(name) for name in frame.columns], axis=1)
    if unknown := [name for name in dropped if name not in frame.columns]:
        raise DataError(f"{option('drop')} names no column. {unknown_name(unknown[0], list(frame.columns))}")
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


def check_rows(num_rows: int, whole: Frame | None = None) -> None:
    """Refuse fewer than two observations; `whole` is the table with the rows that have missing values."""
    if num_rows >= 2:
        return
    too_few = _too_few(num_rows)
    if whole is None or len(whole) < 2:
        raise DataError(f"{too_few}: give at least 2 observations, better hundreds.")
    emptiest, gaps = _emptiest_column(whole)
    raise DataError(
        f"{too_few} without missing values, of {len(whole)}. Most are missing in {emptiest!r} ({gaps}): "
        f"leave this column out ({option('drop', [emptiest])}), or fill in the gaps.",
        without=[emptiest],
    )


def check_not_constant(constant: Sequence[str], whole: Frame) -> None:
    """Refuse columns that hold one value, or hold one in the rows without missing values.

    Args:
        constant: columns with one value in the rows that are left.
        whole: the table with the rows that have missing values.
    """
    varied = [name for name in constant if whole[name].nunique() > 1]
    if flat := [name for name in constant if name not in varied]:
        raise DataError(
            f"Constant: {shown(map(repr, flat))}. A column with one value says nothing about the graph; drop "
            f"it: {option('drop', flat)}.",
            without=flat,
        )
    if varied and whole.isna().to_numpy().any():
        emptiest, gaps = _emptiest_column(whole)
        raise DataError(
            f"{shown(map(repr, varied))} varies, but not in the rows without missing values. Most are "
            f"missing in {emptiest!r} ({gaps} of {counted(len(whole), 'row')}): leave this column out "
            f"({option('drop', [emptiest])}), or fill in the gaps.",
            without=[emptiest],
        )
    if varied:  # but for rounding
        raise DataError(
            f"Constant apart from rounding: {shown(map(repr, varied))}. Drop it: {option('drop', varied)}.",
            without=varied,
        )


def _emptiest_column(whole: Frame) -> tuple[str, int]:
    """The column with most missing values, and how many."""
    gaps = whole.isna().sum()
    return str(gaps.idxmax()), int(gaps.max())


def check_new_rows(num_rows: int) -> None:
    """Refuse further observations of a known table where none is left; one is enough."""
    if num_rows == 0:
        raise DataError(f"{_too_few(0)}: give at least 1 observation without missing values.")


def _too_few(num_rows: int) -> str:
    return typed(python=f"Too few rows (n_samples={num_rows})", command_line=f"Too few rows ({num_rows})")


def complete_rows(
    frame: Frame, intervened: np.ndarray | None, missing: str
) -> tuple[Frame, np.ndarray | None, list[str]]:
    """The rows to be used and notes on gaps, or a refusal where `missing` is `"error"`.

    These are the rows without missing values, or, if they are to be imputed, those that hold anything. Rows
    keep the numbers that they have in the whole table.
    """
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
            f"Missing values (NaN) in {where}. Fill them in, drop the column, or leave out the rows: "
            f"{option('missing', 'drop')} keeps {complete.sum()} of {counted(len(frame), 'row')}."
        )
    if missing == "impute":
        return _rows_with_gaps(frame, intervened, absent, where)
    kept = frame[complete].infer_objects()
    note = f"{(~complete).sum()} of {len(frame)} rows were dropped because of missing values in {where}."
    return kept, None if intervened is None else intervened[complete], [note]


def _rows_with_gaps(
    frame: Frame, intervened: np.ndarray | None, absent: np.ndarray, where: str
) -> tuple[Frame, np.ndarray | None, list[str]]:
    """The rows whose gaps can be filled in, and notes on what is missing where."""
    share = absent.mean(axis=0)
    if empty := [name for name, one in zip(frame.columns, share, strict=True) if one == 1]:
        raise DataError(
            f"No value at all: {shown(map(repr, empty))}. Drop it: {option('drop', empty)}.", without=empty
        )
    notes: list[str] = []
    kept = ~absent.all(axis=1)
    if not kept.all():
        notes.append(f"{counted((~kept).sum(), 'row')} without any value were left out.")
    if intervened is not None and (unknown := kept & (absent & intervened).any(axis=1)).any():
        kept &= ~unknown
        notes.append(
            f"{counted(unknown.sum(), 'row')} were left out: a variable was set from outside there, and the "
            "value that it was set to is missing."
        )
    if (gaps := int(absent[kept].sum())) > 0:
        notes.append(
            f"{counted(gaps, 'cell')} of {absent[kept].size:,} are missing and imputed: {where}. That "
            "assumes that what is missing does not depend on the missing values themselves, given those "
            "that are there."
        )
    mostly = [f"{name!r} ({one:.0%})" for name, one in zip(frame.columns, share, strict=True) if one > 0.5]
    if mostly:
        notes.append(
            f"Mostly missing: {shown(mostly)}. What is said of such a column rests on few rows; "
            f"{option('drop')} leaves it out."
        )
    return frame[kept].infer_objects(), None if intervened is None else intervened[kept], notes


def column_kinds(frame: Frame, options: ReadOptions) -> dict[str, Kind]:
    """The kind of each column: as the user says, otherwise inferred."""
    names = list(frame.columns)
    given = options.given_kinds(names)
    for name, kind in given.items():
        if name not in names:
            which = typed(python="kinds", command_line="--continuous or --discrete")
            raise DataError(f"{which} names an unknown column. {unknown_name(name, names)}")
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
            found = unknown_name(name, list(kinds))
            raise DataError(f"{option('transform')} names an unknown column. {found}")
        if kinds[name] == "discrete":
            raise DataError(
                f"{option('transform')} is for continuous columns, and {name!r} is discrete: leave it out, "
                f"or take it as measurements: {option('continuous', [name])}."
            )
    return dict(transforms)


def levels_of(kinds: Mapping[str, Kind], whole: Frame, options: ReadOptions) -> dict[str, tuple[Any, ...]]:
    """The levels of each discrete column, those of rows with missing values elsewhere among them."""
    return {
        name: observed_levels(name, whole[name], options.max_levels)
        for name, kind in kinds.items()
        if kind == "discrete"
    }
