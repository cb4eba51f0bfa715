"""`ReadOptions`: how a table is read, said once for Python, the command line and run folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, TypedDict, get_args

import numpy as np

from gflowdag.data.columns import MAX_LEVELS, Kind, plain_name
from gflowdag.errors import DataError
from gflowdag.runtime.keywords import check_keywords, named_parameters
from gflowdag.runtime.place import option, typed

Transform = Literal["log", "rank"]
Missing = Literal["impute", "drop", "error"]
LISTS = ("continuous", "discrete", "drop")  # options that are lists of columns
_CHOICES = {"discretize": (None, "quantile", "interval"), "missing": ("impute", "drop", "error")}


class ColumnKeywords(TypedDict, total=False):
    """Attributes of `ReadOptions` as keyword arguments, for editors and type checkers: those of columns."""

    kinds: Kind | Mapping[str, Kind] | None
    continuous: Sequence[str]
    discrete: Sequence[str]
    drop: Sequence[str]
    transform: Transform | Mapping[str, Transform] | None
    discretize: Literal["quantile", "interval"] | None
    bins: int
    max_levels: int
    missing: Missing
    missing_values: Sequence[str | float]
    intervention_base: int | None


class ReadKeywords(ColumnKeywords, total=False):
    """All attributes of `ReadOptions`, with those that are arguments of their own in estimators and `fit`."""

    standardize: bool
    sheet: str | None
    interventions: Any


@named_parameters
@dataclass(frozen=True, kw_only=True, eq=False)
class ReadOptions:
    """How a table is read.

    Attributes:
        kinds: `"continuous"` or `"discrete"`, for all columns or by name. Otherwise text, bools and
            categories are discrete, and so are numbers with two values, or with at most ten that are whole;
            other numbers are continuous. The notes of the data set say what was taken.
        continuous: columns that are continuous, by name.
        discrete: columns that are discrete, by name.
        drop: columns to leave out.
        transform: `"log"` takes the logarithm of continuous columns first, of all or by name; `"rank"` puts
            the normal scores of the ranks in place of the values (a Gaussian copula).
        standardize: scale continuous columns to mean 0 and sample standard deviation 1 (ddof = 1).
        discretize: cut continuous columns into `bins` bins of equal counts or of equal widths.
        bins: number of bins for `discretize`.
        max_levels: the most levels that a discrete column may have.
        missing: what becomes of missing values. `"impute"` keeps them as gaps, which a fit fills in by draws
            from their posterior; `"drop"` leaves out the rows that have any; `"error"` refuses them.
        missing_values: what stands for a missing value, besides the usual spellings: `"-9999"` in every
            column, `"age=999"` in one.
        sheet: of a workbook, for files that are one.
        interventions: the column with the targets (then no variable), or any other form that
            `gflowdag.data.interventions.intervention_mask` reads.
        intervention_base: number of the first variable where interventions are integers; they count the
            columns of the table, those that are dropped among them.
    """

    kinds: Kind | Mapping[str, Kind] | None = None
    continuous: Sequence[str] = ()
    discrete: Sequence[str] = ()
    drop: Sequence[str] = ()
    transform: Transform | Mapping[str, Transform] | None = None
    standardize: bool = True
    discretize: Literal["quantile", "interval"] | None = None
    bins: int = 3
    max_levels: int = MAX_LEVELS
    missing: Missing = "impute"
    missing_values: Sequence[str | float] = ()
    sheet: str | None = None
    interventions: Any = None
    intervention_base: int | None = None

    def __post_init__(self) -> None:
        spellings: Any = (
            [self.missing_values] if isinstance(self.missing_values, str) else self.missing_values
        )
        object.__setattr__(self, "missing_values", tuple(_spelling(value) for value in spellings))
        for name in LISTS:
            given: Any = getattr(self, name)
            if isinstance(given, str):
                raise DataError(f"{option(name)} is a list of column names; got the text {given!r}.")
            object.__setattr__(self, name, tuple(plain_name(column) for column in given))
        for name, known in _CHOICES.items():
            _check_choice(name, getattr(self, name), known)
        by_column: Any = self.transform.values() if isinstance(self.transform, Mapping) else [self.transform]
        for transform in by_column:
            _check_choice("transform", transform, (None, *get_args(Transform)))
        if not isinstance(self.standardize, bool | np.bool_):
            raise DataError(f"standardize must be True or False; got {self.standardize!r}.")
        if not isinstance(self.bins, int | np.integer) or self.bins < 2:
            raise DataError(f"bins must be at least 2, a whole number; got {self.bins!r}.")
        if both := [name for name in self.continuous if name in self.discrete]:
            two = f"{option('continuous')} and {option('discrete')}"
            raise DataError(f"{two} both name {both[0]!r}: a column has one kind.")

    def given_kinds(self, names: Sequence[str]) -> dict[str, Kind]:
        """The kinds that were said, by column, of the columns that are not dropped."""
        said: Any = dict.fromkeys(names, self.kinds) if isinstance(self.kinds, str) else self.kinds or {}
        kinds: dict[str, Kind] = {plain_name(name): kind for name, kind in said.items()}
        kinds |= dict.fromkeys(self.continuous, "continuous")
        kinds |= dict.fromkeys(self.discrete, "discrete")
        return {name: kind for name, kind in kinds.items() if name not in self.drop}

    def transforms(self) -> dict[str, Transform] | Transform | None:
        """The transform of all columns, or by name of those that are not dropped."""
        if not isinstance(self.transform, Mapping):
            return self.transform
        said: dict[str, Transform] = {
            plain_name(name): transform for name, transform in self.transform.items()
        }
        return {name: transform for name, transform in said.items() if name not in self.drop}

    def of_columns(self, names: Sequence[str]) -> ReadOptions:
        """The options for a table of these variables alone, which has no other columns."""
        kinds, transforms = self.given_kinds(names), self.transforms()
        if isinstance(transforms, Mapping):
            transforms = {name: transform for name, transform in transforms.items() if name in names}
        return replace(
            self,
            kinds={name: kind for name, kind in kinds.items() if name in names},
            continuous=(),
            discrete=(),
            drop=(),
            transform=transforms,
            missing_values=[entry for entry in self.spellings if entry.rpartition("=")[0] in ("", *names)],
            interventions=None,
            intervention_base=None,
        )

    @property
    def spellings(self) -> tuple[str, ...]:
        """`missing_values` as text."""
        return tuple(map(str, self.missing_values))

    def plain(self) -> ReadOptions:
        """The same without what is no plain text or number: interventions that are not a column."""
        return self if isinstance(self.interventions, str) else replace(self, interventions=None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a file; interventions only where they are a column."""
        return asdict(self.plain())

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ReadOptions:
        """The inverse of `to_dict`; what is not there has its default, and other names are left alone."""
        names = [part.name for part in fields(cls)]
        known: dict[str, Any] = {name: content[name] for name in names if name in content}
        given: dict[str, Any] = {
            name: value
            for name, value in known.items()
            if value is not None or name not in (*LISTS, "missing_values")  # version 0.2
        }
        return cls(**given)


READ_OPTIONS = tuple(part.name for part in fields(ReadOptions))


def read_options(options: ReadOptions | None, changes: ReadKeywords) -> ReadOptions:
    """`options`, or the defaults, with `changes`."""
    check_keywords("Dataset", changes, (*READ_OPTIONS, "knowledge"))
    return replace(options or ReadOptions(), **changes)


def _spelling(value: Any) -> str:
    """A number as a user writes it; 999.0 is 999."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return f"{value:g}" if is_number and float(value).is_integer() and abs(value) < 1e6 else str(value)


def _check_choice(name: str, value: Any, known: Sequence[str | None]) -> None:
    if value not in known:
        plain = [repr(word) for word in known if word is not None]
        choices = typed(python=", ".join(map(repr, known)), command_line=" or ".join(plain).replace("'", ""))
        raise DataError(f"{option(name)} must be one of {choices}; got {value!r}.")
