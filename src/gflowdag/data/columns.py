"""One column of a table: its kind, and the rule that turns its cells into numbers."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api import types
from scipy.special import ndtri

from gflowdag.errors import DataError
from gflowdag.runtime.messages import counted, shown
from gflowdag.runtime.place import option, typed
from gflowdag.runtime.ranks import mean_ranks

_DATE = re.compile(r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))(?!\d)")
# As people write numbers and no parser reads them: 1,234.5 · 1 234,5 · 1.234,5 · 1,5 · −3 · 12 %
_WRITTEN_NUMBER = re.compile(
    r"[+\-−]?\s*(\d{1,3}([,\s]\d{3})+([.,]\d+)?|\d{1,3}(\.\d{3})+,\d+|(\d+[.,]?\d*|[.,]\d+)(e[+\-−]?\d+)?)\s*%?",
    re.IGNORECASE,
)
Kind = Literal["continuous", "discrete"]
Cells = Any  # a pandas Series [n]; what its methods return is typed too loosely for a checker to follow
MAX_LEVELS = 30  # of a discrete column, unless the user allows more: beyond, it is mostly no variable
_FEWEST_NUMBERS = 3  # that a column holds whose odd words are asked about
_MOST_ODD_WORDS = 5  # different ones; more are hardly ways of saying "missing"
_ODD_SHARE = 0.1  # of the cells; more words than this are levels
MAX_INTEGER_LEVELS = 10  # whole numbers with more values than this are taken as measurements
ROWS_OF_A_LEVEL = 5  # fewer, and no table of counts with this level says much


@dataclass(frozen=True)
class Column:
    """How the cells of one variable are coded; made from the first table, applied to any later one.

    A continuous cell `x` becomes `(f(x) − mean) / sd`, with `f` the identity, the logarithm or the normal
    scores of its rank, or just `f(x)` where it is not scaled. A discrete cell becomes the position of its
    value among `levels`, or of its bin where `cuts` are given.
    """

    name: str
    kind: Kind
    log: bool = False
    scores: tuple[tuple[float, ...], tuple[float, ...]] | None = None  # values, normal scores of their ranks
    scaling: tuple[float, float] | None = None  # mean and sample standard deviation (ddof = 1)
    levels: tuple[Hashable, ...] | None = None
    cuts: tuple[float, ...] | None = None  # upper ends of all bins but the last

    @property
    def holds_numbers(self) -> bool:
        """Whether the levels of a discrete column are numbers, and no bins."""
        return self.cuts is None and all(
            isinstance(level, int | float) and not isinstance(level, bool) for level in self.levels or ()
        )

    def encode(self, cells: Cells) -> np.ndarray:
        """The numbers for `cells`, float64 [n].

        Raises:
            DataError: a cell is no finite number, not positive under the logarithm, or no known level.
        """
        if self.cuts is not None:
            return np.searchsorted(np.asarray(self.cuts), self._numbers(cells), side="left").astype(
                np.float64
            )
        if self.kind == "continuous":
            mean, deviation = self.scaling or (0.0, 1.0)
            return (self._numbers(cells) - mean) / deviation
        codes = pd.Index(list(self.levels or ())).get_indexer(pd.Index(plain_cells(cells)))
        if (unknown := codes < 0).any():
            raise DataError(
                f"Column {self.name!r} has the value {cells[unknown].iloc[0]!r}, which is not one of its "
                f"levels {shown(self.levels or ())}. Declare every level in advance with a pandas "
                "Categorical."
            )
        return codes.astype(np.float64)

    def decode(self, numbers: np.ndarray) -> np.ndarray:
        """The measurements behind the numbers of a continuous column, float64 [n]."""
        mean, deviation = self.scaling or (0.0, 1.0)
        measured = numbers * deviation + mean
        if self.scores is not None:
            return np.interp(measured, self.scores[1], self.scores[0])
        return np.exp(measured) if self.log else measured

    def ranked(self, cells: Cells) -> Column:
        """The same column, with the normal scores of their ranks among `cells` for the numbers."""
        numbers = self._numbers(cells)
        values, first = np.unique(numbers, return_index=True)
        return replace(self, scores=(tuple(values.tolist()), tuple(normal_scores(numbers)[first].tolist())))

    def standardized(self, cells: Cells) -> Column:
        """The same column, scaled to the mean and the sample standard deviation (ddof = 1) of `cells`."""
        numbers = self._numbers(cells)
        return replace(self, scaling=(float(numbers.mean()), float(numbers.std(ddof=1))))

    def binned(self, cells: Cells, how: str, bins: int) -> Column:
        """The discrete column with `bins` bins of equal counts (`"quantile"`) or equal widths (`"interval"`).

        Ties can leave fewer quantile bins than asked for.
        """
        numbers = self._numbers(cells)
        inner = np.linspace(0, 1, bins + 1)[1:-1]
        if how == "quantile":
            cuts = np.quantile(numbers, inner)
        else:
            cuts = numbers.min() + inner * np.ptp(numbers)
        cuts = np.unique(cuts[cuts < numbers.max()])
        if not len(cuts):
            raise DataError(
                f"Column {self.name!r} cannot be cut into {bins} bins: most of its values are equal. Cut "
                f"it another way ({option('discretize', 'interval')}), or drop it: "
                f"{option('drop', [self.name])}.",
                without=[self.name],
            )
        ends = [f"{cut:.4g}" for cut in cuts]
        levels = (f"≤ {ends[0]}", *(f"({a}, {b}]" for a, b in pairwise(ends)), f"> {ends[-1]}")
        return replace(self, kind="discrete", cuts=tuple(cuts.tolist()), levels=levels)

    def _numbers(self, cells: Cells) -> np.ndarray:
        """The cells as finite numbers, after the transform if there is one, float64 [n]."""
        numbers = _as_floats(cells)
        if (bad := np.isnan(numbers)).any():
            raise DataError(
                f"Column {self.name!r} was declared continuous, but row {_row(cells, bad)} holds "
                f"{cells[bad].iloc[0]!r}. Clean it, or take it as levels: {option('discrete', [self.name])}.",
                without=[self.name],
            )
        if (bad := np.isinf(numbers)).any():
            raise DataError(
                f"Column {self.name!r} has {counted(bad.sum(), 'infinite value')} (first in row "
                f"{_row(cells, bad)}). Remove these rows or replace the values.",
                without=[self.name],
            )
        if self.scores is not None:
            return np.interp(numbers, *self.scores)
        if not self.log:
            return numbers
        if (bad := numbers <= 0).any():
            raise DataError(
                f"The logarithm needs positive numbers; column {self.name!r} has "
                f"{counted(bad.sum(), 'value')} of zero or less (first in row {_row(cells, bad)}). Shift the "
                f"column, or take its ranks: {option('transform', {self.name: 'rank'})}."
            )
        return np.log(numbers)


def normal_scores(numbers: np.ndarray) -> np.ndarray:
    """Van der Waerden scores `Φ⁻¹(rank / (n + 1))`, equal values with the mean of their ranks, [n]."""
    return ndtri(mean_ranks(numbers) / (len(numbers) + 1))


def plain_name(name: Any) -> str:
    """A name as all variables have it, whoever gives it: text without blanks around it."""
    return str(name).strip()


def infer_kind(name: str, cells: Cells) -> Kind:
    """Text, bool, category: discrete, and so are two values, or at most ten that are whole numbers.

    Other numbers are continuous, and so are those of which no two are equal. How a number is stored does not
    matter, and missing cells say nothing.
    """
    cells = cells.dropna().infer_objects()
    if isinstance(cells.dtype, pd.CategoricalDtype) or types.is_bool_dtype(cells):
        return "discrete"
    if types.is_complex_dtype(cells):
        raise DataError(f"Complex data not supported: split column {name!r} into real columns.")
    is_time = types.is_datetime64_any_dtype(cells) or types.is_timedelta64_dtype(cells)
    if is_time or _holds_written_dates(cells):
        raise DataError(
            f"Column {name!r} holds dates or times. Turn it into a number (say, days) or drop it: "
            f"{option('drop', [name])}.",
            without=[name],
        )
    held = types.infer_dtype(cells)
    if held == "string":
        _refuse_written_numbers(name, cells)
        _refuse_odd_words(name, cells)
    if types.is_numeric_dtype(cells) or held == "decimal":
        return "discrete" if _are_levels(_as_floats(cells)) else "continuous"
    return "discrete"


def _are_levels(numbers: np.ndarray) -> bool:
    """Whether numbers are likely to be levels: two values, or a few that are whole, some more than once."""
    values = np.unique(numbers)
    if not np.isfinite(values).all() or len(values) == len(numbers):
        return False
    is_whole = bool((values % 1 == 0).all())
    return len(values) <= 2 or (is_whole and len(values) <= MAX_INTEGER_LEVELS)


def _row(cells: Cells, bad: np.ndarray) -> int:
    """Number of the first bad cell's row in the whole table, from 1; `cells` have the index of its rows."""
    return int(cells.index[bad.argmax()]) + 1


def _holds_written_dates(cells: Cells) -> bool:
    """Whether every cell is a text that begins like 2021-03-01, 1.3.2021 or 03/01/21."""
    is_text = types.is_string_dtype(cells) or types.is_object_dtype(cells)
    return (
        is_text
        and len(cells) > 0
        and all(isinstance(cell, str) and _DATE.match(cell.strip()) for cell in cells)
    )


def _refuse_written_numbers(name: str, cells: Cells) -> None:
    """Refuse text that is numbers but for a `,`, `%`, blank or long minus: as levels they have no order."""
    levels = plain_cells(cells).drop_duplicates()
    words = levels[np.isnan(_as_floats(levels))]
    odd = [word for word in words if _WRITTEN_NUMBER.fullmatch(word.strip())]
    if odd and len(words) - len(odd) <= 0.1 * len(levels):  # a few may be true words
        signs = " or ".join(repr(sign) for sign in dict.fromkeys(re.sub(r"[\w.+-]", "", odd[0].strip())))
        without = f", without {signs}" if signs else ""  # the digits of other scripts are no signs
        raise DataError(
            f"Column {name!r} holds numbers as text, such as {odd[0]!r}. Write them like -1234.5{without}; "
            f"if they are levels, say so: {option('discrete', [name])}.",
            without=[name],
        )


def _refuse_odd_words(name: str, cells: Cells) -> None:
    """Refuse numbers with a few words among them: one odd cell must not make levels of measurements."""
    counts = plain_cells(cells).value_counts()
    is_word = np.isnan(_as_floats(counts.index.to_series()))
    words, num_numbers = counts[is_word], int((~is_word).sum())
    if not len(words) or num_numbers < _FEWEST_NUMBERS or words.sum() > _ODD_SHARE * counts.sum():
        return
    first = words.index[0]
    rows = f"{counted(words.sum(), 'cell')}, the first in row {_row(cells, (cells == first).to_numpy(bool))}"
    told = f"{shown(map(repr, words.index))} ({rows})"
    entries = [f"{name}={word.strip()}" for word in words.index]
    may_be_levels = num_numbers + len(words) <= MAX_INTEGER_LEVELS
    may_be_missing = not may_be_levels and len(words) <= _MOST_ODD_WORDS
    raise DataError(
        f"Column {name!r} holds numbers, but also {told}. If that stands for a missing value: "
        f"{option('missing_values', entries[:3])}; if the cells are levels: {option('discrete', [name])}.",
        without=() if may_be_levels or may_be_missing else [name],
        missing=entries if may_be_missing else (),
        discrete=[name] if may_be_levels else (),
    )


def observed_levels(name: str, cells: Cells, max_levels: int) -> tuple[Hashable, ...]:
    """The sorted values of a discrete column; for a Categorical, its declared categories in their order.

    Whole numbers are integers, however they are stored. Missing cells are no level.

    Raises:
        DataError: more than `max_levels` values, values of several types, or cells that are no values.
    """
    if isinstance(cells.dtype, pd.CategoricalDtype):
        levels = cells.cat.categories.tolist()
    else:
        try:
            levels = sorted(_whole_as_integers(plain_cells(cells.dropna().infer_objects()).unique().tolist()))
        except TypeError as error:
            remedy = typed(
                python=f"Make them all text with df[{name!r}].astype(str), or clean", command_line="Clean"
            )
            raise DataError(
                f"The cells of column {name!r} are not all of one type. {remedy} the column.", without=[name]
            ) from error
    if len(levels) > max_levels:
        raise DataError(
            f"Column {name!r} has {len(levels)} levels, more than {option('max_levels', max_levels)} allows. "
            f"{_remedy_for_many(name, cells)}",
            without=[name],
        )
    return tuple(levels)


def _whole_as_integers(levels: list[Any]) -> list[Any]:
    is_whole = all(isinstance(level, float) and level % 1 == 0 for level in levels)
    return [int(level) for level in levels] if is_whole else levels


def plain_cells(cells: Cells) -> Cells:
    """The cells without the extension types of pandas: bool, int64, float64, or objects (text)."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(object).infer_objects()
    if types.is_bool_dtype(cells):
        return cells.astype(bool)
    if types.is_integer_dtype(cells) and cells.max() <= np.iinfo(np.int64).max:  # uint64 beyond would wrap
        return cells.astype(np.int64)
    if types.is_numeric_dtype(cells):
        return cells.astype(np.float64)
    return cells.astype(object)


def _as_floats(cells: Cells) -> np.ndarray:
    """float64 [n], NaN where a cell is no number."""
    if isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "fiu":
        return np.asarray(cells, dtype=np.float64)
    return np.asarray(pd.to_numeric(plain_cells(cells), errors="coerce"), dtype=np.float64)


def _remedy_for_many(name: str, cells: Cells) -> str:
    if types.is_numeric_dtype(cells):
        return (
            f"Take it as measurements ({option('continuous', [name])}), merge levels, or raise "
            f"{option('max_levels')}."
        )
    is_text = np.isnan(_as_floats(cells)) & cells.notna().to_numpy()
    if 0 < is_text.mean() < 0.5:
        first = int(is_text.argmax())
        word = cells.iloc[first]
        return f"Most cells are numbers, but row {_row(cells, is_text)} holds {word!r}: clean the column."
    return (
        f"Drop it if it is an identifier, a date or free text ({option('drop', [name])}); otherwise merge "
        f"levels or raise {option('max_levels')}."
    )
