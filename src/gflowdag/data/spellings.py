"""Cells that say "missing": those that are certain become gaps, the doubtful ones are asked about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types

from gflowdag.runtime.messages import counted, shown
from gflowdag.runtime.place import option

Frame = Any  # a pandas DataFrame; what its methods return is typed too loosely for a checker to follow
Cells = Any
USUAL = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null")
# Nobody means these otherwise. `Na` may be sodium, and is asked about among words.
_ALWAYS = frozenset(USUAL) | {
    *("na", "n.a.", "N.A.", "<NA>", "<na>", "Null", "NAN", "NaT"),
    *("#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!", "#N/A!", "#N/A N/A"),
}
# Among numbers they are no value; among words they can be levels: "None" is one in child and insurance.
_SIGNS = frozenset(("?", "??", "-", "--", "---", "–", "—", ".", "..", "...", "*", "**", "#"))
_AMONG_NUMBERS = _SIGNS | {
    *("na", "n.a", "none", "nil", "null", "missing", "unknown", "unk", "not available", "not known"),
    *("no data", "nd", "n.d."),
}
_LIKELY_AMONG_WORDS = frozenset(("?", "??", ".", ".."))  # there they still hardly are a level
_NINES = frozenset(float("9" * k) for k in range(1, 7)) | {999.9, 9999.9, 99.9, 999.99, 9999.99, 99.99}
_CODES = frozenset({-number for number in _NINES} | _NINES | {-88.0, -888.0, -8888.0, 888.0, 8888.0})
_LARGE_CODE = (
    99.0  # from here on a code far from all other values is taken as missing by the proposed command
)
_RARE_ZEROS = 0.5  # share of rows; with more zeros they are the ordinary value
_MOST_LEVELS = 10_000  # a column of words with more of them holds names or text


class Doubt(NamedTuple):
    """A cell that may stand for a missing value."""

    column: str
    cell: str  # as it is typed
    count: int
    likely: bool  # it hardly means anything else: what `check` proposes takes it as missing
    taken: str  # as what it is taken

    @property
    def entry(self) -> str:
        """What settles it, an entry of `missing_values`."""
        return f"{self.column}={self.cell}"


def is_marker_among_numbers(cells: Cells) -> Cells:
    """Which cells of text say "missing" where all others are numbers, bool [n]."""
    return cells.str.strip().str.casefold().isin(_AMONG_NUMBERS) | cells.str.strip().isin(_ALWAYS)


def settled(frame: Frame, entries: Iterable[str] = ()) -> tuple[Frame, list[str]]:
    """The table with gaps for what says "missing", and notes on what that was.

    Args:
        frame: the table, with text as names of columns.
        entries: further spellings, of all columns or as `COLUMN=SPELLING`.
    """
    changed: dict[str, Cells] = {}
    found: dict[str, list[str]] = {}
    entries = tuple(entries)
    for place, (name, dtype) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        if not entries and isinstance(dtype, np.dtype) and dtype.kind in "fiu":  # no words among numbers
            continue
        cells, missing = _settled_column(frame.iloc[:, place], _spelled(entries, str(name), frame.columns))
        if missing:
            changed[name] = cells
            for spelling, count in missing.items():
                if spelling not in USUAL:  # the note on missing values speaks of them
                    found.setdefault(spelling, []).append(f"{name!r} ({counted(count, 'cell')})")
    if not found:
        return frame.assign(**changed) if changed else frame, []
    parts = [f"{spelling!r} in {shown(where)}" for spelling, where in found.items()]
    return frame.assign(**changed), [f"Taken as missing: {shown(parts, 12)}."]


def _spelled(entries: Iterable[str], name: str, names: Collection[str]) -> set[str]:
    """The spellings that entries give for a column."""
    said: set[str] = set()
    for entry in entries:
        column, equals, spelling = entry.rpartition("=")
        if not equals or column not in names:
            said.add(entry.strip())
        elif column == name:
            said.add(spelling.strip())
    return said


def _settled_column(cells: Cells, said: set[str]) -> tuple[Cells, dict[str, int]]:
    """The column with gaps, as numbers where only numbers are left, and the cells that became gaps."""
    if types.is_bool_dtype(cells) or types.is_datetime64_any_dtype(cells):
        return cells, {}
    if types.is_numeric_dtype(cells):
        return _without_numbers(cells, said)
    if isinstance(cells.dtype, pd.CategoricalDtype):  # its levels were declared: only what is said counts
        gone = [level for level in cells.cat.categories if str(level).strip() in said]
        counts = {str(level): int((cells == level).sum()) for level in gone}
        return (cells.cat.remove_categories(gone) if gone else cells), counts
    try:
        levels = pd.unique(cells.dropna())
    except TypeError:  # lists and the like, which are refused elsewhere
        return cells, {}
    if len(levels) > _MOST_LEVELS and not _may_be_numbers(levels):
        return cells, {}
    words = {level: level.strip() for level in levels if isinstance(level, str)}
    gaps = {level for level, word in words.items() if word in said or word in _ALWAYS}
    rest = [level for level in levels if level not in gaps]
    doubtful = {level for level in rest if level in words and words[level].casefold() in _AMONG_NUMBERS}
    numbers = _numbers([level for level in rest if level not in doubtful])
    if numbers is not None and (doubtful or gaps):
        gaps |= doubtful
    elif not gaps:
        return cells, {}
    counts = Counter(words[level] for level in cells[cells.isin(gaps)])
    left = cells.mask(cells.isin(gaps))
    if numbers is not None:
        left = pd.to_numeric(left.astype(object), errors="coerce")
    return left, dict(counts)


def _may_be_numbers(levels: Sequence[Any]) -> bool:
    """Whether some of the first cells are numbers."""
    return _share_of_numbers(levels[:1000]) > 0.5


def _share_of_numbers(levels: Any) -> float:
    numbers: Any = pd.to_numeric(pd.Series(levels, dtype=object), errors="coerce")
    return float(numbers.notna().mean())


def _numbers(levels: Sequence[Any]) -> np.ndarray | None:
    """Cells as numbers; None where there is none, or one is a word."""
    if not levels or any(isinstance(level, bool) for level in levels):
        return None
    numbers = np.asarray(pd.to_numeric(pd.Series(levels, dtype=object), errors="coerce"), dtype=float)
    return None if np.isnan(numbers).any() else numbers


def _without_numbers(cells: Cells, said: set[str]) -> tuple[Cells, dict[str, int]]:
    """A column of numbers without those that were said to stand for missing values."""
    counts: dict[str, int] = {}
    for spelling in said:
        try:
            is_gap = (cells == float(spelling)).fillna(False)
        except (ValueError, OverflowError):
            continue
        if count := int(is_gap.sum()):
            counts[spelling] = count
            cells = cells.mask(is_gap)
    return cells, counts


def doubts(frame: Frame, said: Collection[str] = ()) -> list[Doubt]:
    """What may stand for a missing value and was taken as a level or a number; `frame` is settled.

    Args:
        frame: the variables.
        said: columns whose kind the user gave: their words are levels.
    """
    found: list[Doubt] = []
    for name, cells in frame.items():
        if isinstance(cells.dtype, pd.CategoricalDtype) or types.is_bool_dtype(cells):
            continue
        if types.is_numeric_dtype(cells):
            found += _doubtful_numbers(name, cells)
        elif name not in said and not types.is_datetime64_any_dtype(cells):
            found += _doubtful_words(name, cells)
    return found


def _doubtful_words(name: str, cells: Cells) -> list[Doubt]:
    counts = cells.value_counts()
    if len(counts) > _MOST_LEVELS:
        return []
    return [
        Doubt(name, level.strip(), int(count), level.strip() in _LIKELY_AMONG_WORDS, "a level")
        for level, count in counts.items()
        if isinstance(level, str) and level.strip().casefold() in _AMONG_NUMBERS
    ]


def _doubtful_numbers(name: str, cells: Cells) -> list[Doubt]:
    """Codes such as -9999, far from all other values; and rare zeros."""
    numbers = np.asarray(cells.dropna(), dtype=np.float64)
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) < 3:
        return []
    found = []
    for end in (numbers.min(), numbers.max()):
        rest = numbers[numbers != end]
        if end in _CODES and len(rest) > 1:
            apart, width = np.abs(rest - end).min(), np.ptp(rest)
            crosses = end < 0 <= rest.min()
            if apart > 2 * width and (width > 0 or crosses):
                count = len(numbers) - len(rest)
                likely = abs(end) >= _LARGE_CODE and count < len(rest)
                found.append(Doubt(name, f"{end:g}", count, likely, "a number"))
    if numbers.min() == 0.0 and (zeros := _rare_zeros(numbers)):
        found.append(Doubt(name, "0", zeros, False, "a number"))
    return found


def _rare_zeros(numbers: np.ndarray) -> int:
    """How many zeros lie far below all other measurements; none where zero is an ordinary value.

    Far is further than the next ones lie from each other: beside 1, 2 and 3 a zero is a count.
    """
    positive = numbers[numbers > 0]
    zeros = len(numbers) - len(positive)
    if zeros > _RARE_ZEROS * len(numbers) or len(np.unique(positive[:1000])) <= 10:
        return 0
    middle = np.median(positive)
    widest_gap = np.diff(np.unique(positive[positive <= middle]), append=middle).max()
    return zeros if positive.min() > max(0.25 * middle, widest_gap) else 0


def on_doubts(found: Sequence[Doubt]) -> list[str]:
    """Questions to the user, with the option that settles each."""
    return [
        f"{doubt.cell} in {doubt.column!r} ({counted(doubt.count, 'row')}) may stand for a missing value and "
        f"was taken as {doubt.taken}. If it does: {option('missing_values', [doubt.entry])}."
        for doubt in found
    ]
