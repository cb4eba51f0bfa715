"""One column of a table: its kind, and the rule that turns its cells into numbers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api import types

from gflowdag.data.wording import shown
from gflowdag.errors import DataError

Kind = Literal["continuous", "discrete"]
KINDS = ("continuous", "discrete")
MAX_INTEGER_LEVELS = 10  # integers with more values than this are taken as measurements


@dataclass(frozen=True)
class Column:
    """How the cells of one variable are coded; made from the first table, applied to any later one.

    A continuous cell `x` becomes `(f(x) − mean) / scale`, with `f` the identity or the logarithm. A discrete cell
    becomes the position of its value among `levels`, or of its bin where `cuts` are given.
    """

    name: str
    kind: Kind
    log: bool = False
    mean: float = 0.0
    scale: float = 1.0
    levels: tuple[Hashable, ...] | None = None
    cuts: tuple[float, ...] | None = None  # upper ends of all bins but the last

    def encode(self, cells: pd.Series) -> np.ndarray:
        """The numbers for `cells`, float64 [n].

        Raises:
            DataError: a cell is not a number, not positive where the logarithm is taken, or not a known level.
        """
        if self.kind == "continuous" or self.cuts is not None:
            numbers = self.numbers(cells)
            if self.cuts is not None:
                return np.searchsorted(np.asarray(self.cuts), numbers, side="left").astype(np.float64)
            return (numbers - self.mean) / self.scale
        codes = pd.Index(self.levels or ()).get_indexer(pd.Index(plain_cells(cells)))
        if (unknown := codes < 0).any():
            value = cells[unknown].iloc[0]
            raise DataError(
                f"Column {self.name!r} has the value {value!r}, which is none of its levels "
                f"{shown(self.levels or ())}. Declare every level in advance with a pandas Categorical."
            )
        return codes.astype(np.float64)

    def numbers(self, cells: pd.Series) -> np.ndarray:
        """The cells as finite numbers after the logarithm, float64 [n]."""
        try:
            numbers = pd.to_numeric(plain_cells(cells)).to_numpy(dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"Column {self.name!r} is to be continuous but holds {_first_text(cells)!r}, which is not a number. "
                f"Clean the column, or pass kinds={{{self.name!r}: 'discrete'}}."
            ) from error
        if (bad := ~np.isfinite(numbers)).any():
            raise DataError(
                f"Column {self.name!r} has {bad.sum()} infinite values (first in row {bad.argmax() + 1}). "
                "Remove these rows or replace the values."
            )
        if not self.log:
            return numbers
        if (bad := numbers <= 0).any():
            raise DataError(
                f"transform='log' needs positive numbers; column {self.name!r} has {bad.sum()} values that are "
                f"zero or negative (first in row {bad.argmax() + 1}). Shift the column before, or use no transform."
            )
        return np.log(numbers)

    def standardized(self, cells: pd.Series) -> Column:
        """The same column with the mean and the sample standard deviation (ddof = 1) of `cells`."""
        numbers = self.numbers(cells)
        return replace(self, mean=float(numbers.mean()), scale=float(numbers.std(ddof=1)))

    def binned(self, cells: pd.Series, how: str, bins: int) -> Column:
        """The discrete column with `bins` bins of equal counts (`"quantile"`) or equal widths (`"interval"`).

        Ties can leave fewer quantile bins than asked for.
        """
        numbers = self.numbers(cells)
        inner = np.linspace(0, 1, bins + 1)[1:-1]
        if how == "quantile":
            cuts = np.quantile(numbers, inner)
        else:
            cuts = numbers.min() + inner * (numbers.max() - numbers.min())
        cuts = np.unique(cuts[(cuts >= numbers.min()) & (cuts < numbers.max())])
        if not len(cuts):
            raise DataError(
                f"Column {self.name!r} cannot be cut into {bins} bins: most of its values are equal. "
                "Use more bins or discretize='interval', or drop the column."
            )
        ends = [f"{cut:.4g}" for cut in cuts]
        levels = [
            f"≤ {ends[0]}",
            *(f"({a}, {b}]" for a, b in zip(ends, ends[1:], strict=False)),
            f"> {ends[-1]}",
        ]
        return replace(self, kind="discrete", cuts=tuple(cuts.tolist()), levels=tuple(levels))


def infer_kind(name: str, cells: pd.Series) -> Kind:
    """Float: continuous; text, bool, category: discrete; integers: discrete with at most ten values."""
    if isinstance(cells.dtype, pd.CategoricalDtype) or types.is_bool_dtype(cells):
        return "discrete"
    if types.is_complex_dtype(cells):
        raise DataError(f"Column {name!r} holds complex numbers. Split it into real columns.")
    if types.is_datetime64_any_dtype(cells) or types.is_timedelta64_dtype(cells):
        raise DataError(
            f"Column {name!r} holds dates or times. Turn it into a number (for example days) or drop it."
        )
    if types.is_integer_dtype(cells):
        return "discrete" if cells.nunique() <= MAX_INTEGER_LEVELS else "continuous"
    if types.is_numeric_dtype(cells):
        return "continuous"
    return "discrete"


def observed_levels(name: str, cells: pd.Series, max_levels: int) -> tuple[Hashable, ...]:
    """The sorted values of a discrete column; for a Categorical, its declared categories in their order.

    Raises:
        DataError: more than `max_levels` values, or values of several types.
    """
    if isinstance(cells.dtype, pd.CategoricalDtype):
        levels = cells.cat.categories.tolist()
    else:
        try:
            levels = plain_cells(cells).unique().tolist()
        except TypeError as error:
            raise DataError(
                f"Column {name!r} holds lists or other objects; a cell must be one value."
            ) from error
        if len({isinstance(level, str) for level in levels}) > 1:
            raise DataError(
                f"Column {name!r} mixes text and numbers ({shown(levels)}). "
                f"Make it all text with df[{name!r}].astype(str), or clean it."
            )
        levels = sorted(levels)
    if len(levels) > max_levels:
        raise DataError(
            f"Column {name!r} has {len(levels)} levels, more than max_levels = {max_levels}. {_why_many(name, cells)}"
        )
    return tuple(levels)


def plain_cells(cells: pd.Series) -> pd.Series:
    """The cells without extension types: text and mixed cells as objects, numbers as NumPy numbers."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(object)
    if types.is_bool_dtype(cells):
        return cells.astype(bool)
    if types.is_integer_dtype(cells):
        return cells.astype(np.int64)
    if types.is_numeric_dtype(cells):
        return cells.astype(np.float64)
    return cells.astype(object).infer_objects()


def _first_text(cells: pd.Series) -> Any:
    return cells[pd.to_numeric(cells.astype(object), errors="coerce").isna().to_numpy()].iloc[0]


def _why_many(name: str, cells: pd.Series) -> str:
    if types.is_numeric_dtype(cells) and not types.is_bool_dtype(cells):
        return f"Pass kinds={{{name!r}: 'continuous'}}, merge levels, or raise max_levels."
    is_number = pd.to_numeric(cells.astype(object), errors="coerce").notna().to_numpy()
    if is_number.mean() > 0.5 and not is_number.all():
        row = (~is_number).argmax()
        return f"Most cells are numbers, but row {row + 1} holds {cells.iloc[row]!r}: clean the column."
    return "An identifier should be dropped; otherwise merge levels or raise max_levels."
