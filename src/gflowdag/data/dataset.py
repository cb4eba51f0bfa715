"""`Dataset`: a table that was checked at the door, so that everything behind it can trust the numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from gflowdag.data.checks import check_collinear, check_constant, check_copies
from gflowdag.data.columns import KINDS, Column, Kind, infer_kind, observed_levels
from gflowdag.data.interventions import intervention_mask
from gflowdag.data.knowledge import Knowledge
from gflowdag.data.wording import shown, unknown_name
from gflowdag.errors import DataError, KnowledgeError


@dataclass(frozen=True, eq=False)
class Dataset:
    """A validated table. Make one with `from_frame`, `from_array`, `from_csv` or `from_environments`."""

    columns: tuple[Column, ...]
    values: np.ndarray  # float64 [n, d], read-only; discrete columns hold codes 0 … r−1
    intervened: np.ndarray | None = (
        None  # bool [n, d], read-only; True where the variable was set from outside
    )
    knowledge: Knowledge | None = None
    notes: tuple[str, ...] = ()  # sentences for the user

    def __post_init__(self) -> None:
        self.values.flags.writeable = False
        if self.intervened is not None:
            self.intervened.flags.writeable = False

    # ------------------------------------------------------------------ making one

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        kinds: Kind | Mapping[str, Kind] | None = None,
        standardize: bool = True,
        discretize: Literal["quantile", "interval"] | None = None,
        bins: int = 3,
        transform: Literal["log"] | None = None,
        missing: Literal["error", "drop"] = "error",
        interventions: Any = None,
        intervention_base: int | None = None,
        knowledge: Knowledge | None = None,
        max_levels: int = 30,
    ) -> Dataset:
        """Check a DataFrame (rows are observations, columns variables) and turn it into numbers.

        Args:
            frame: the table.
            kinds: `"continuous"` or `"discrete"`, for all columns or by name. Otherwise floats are continuous; text,
                bools and categories discrete; integers discrete with at most ten values. `notes` says what was taken.
            standardize: scale continuous columns to mean 0 and sample standard deviation 1 (ddof = 1).
            discretize: cut continuous columns into `bins` bins of equal counts or of equal widths.
            bins: number of bins for `discretize`.
            transform: `"log"` takes the logarithm of continuous columns first.
            missing: `"error"` refuses missing values, `"drop"` leaves out the rows that have any.
            interventions: a column of `frame` with the targets (removed from the variables), or any other form that
                `gflowdag.data.interventions.intervention_mask` reads.
            intervention_base: number of the first variable where interventions are integers.
            knowledge: required and forbidden edges, tiers, maximum number of parents.
            max_levels: the most levels that a discrete column may have.

        Raises:
            DataError: naming the column and the remedy, before anything is computed.
            KnowledgeError: the knowledge names unknown variables or contradicts itself.
        """
        if not isinstance(frame, pd.DataFrame):
            raise DataError(f"from_frame needs a pandas DataFrame, got {type(frame).__name__}.")
        _check_choice("discretize", discretize, (None, "quantile", "interval"))
        _check_choice("transform", transform, (None, "log"))
        _check_choice("missing", missing, ("error", "drop"))
        if bins < 2:
            raise DataError(f"bins must be at least 2, got {bins}.")

        frame, intervened = _split_interventions(_named(frame), interventions, intervention_base)
        names = list(frame.columns)
        if not names:
            raise DataError("The table has no variables. It needs one named column for each.")
        if knowledge is not None:
            knowledge.resolve(names)
        frame, intervened, notes = _without_missing(frame, intervened, missing)
        if len(frame) < 2:
            raise DataError(
                f"The table has {len(frame)} rows; at least 2 observations are needed, better hundreds."
            )

        columns = []
        for name, kind in _kinds(frame, kinds).items():
            cells = frame[name]
            if kind == "continuous":
                column = Column(name, "continuous", log=transform == "log")
                check_constant(column.numbers(cells)[:, None], [name])
                if discretize is not None:
                    column = column.binned(cells, discretize, bins)
                elif standardize:
                    column = column.standardized(cells)
            else:
                column = Column(name, "discrete", levels=observed_levels(name, cells, max_levels))
            columns.append(column)
        _check_one_kind(columns)

        values = np.column_stack([column.encode(frame[column.name]) for column in columns])
        check_constant(values, names)
        (check_copies if columns[0].kind == "discrete" else check_collinear)(values, names)
        notes = (*notes, *_told(columns, kinds), *_told_interventions(intervened, names))
        return cls(tuple(columns), values, intervened, knowledge, notes)

    @classmethod
    def from_array(cls, array: Any, names: Sequence[str] | None = None, **options: Any) -> Dataset:
        """Check an array [n, d]; `names` default to X1 … Xd, `options` are those of `from_frame`."""
        array = np.asarray(array)
        if array.ndim != 2:
            raise DataError(f"The array has {array.ndim} dimensions; it needs 2: rows and variables.")
        if names is None:
            names = [f"X{number}" for number in range(1, array.shape[1] + 1)]
        if len(names) != array.shape[1]:
            raise DataError(f"{len(names)} names were given for {array.shape[1]} columns.")
        frame = pd.DataFrame(array, columns=list(names))
        return cls.from_frame(frame.infer_objects(), **options)

    @classmethod
    def from_environments(
        cls, environments: Sequence[tuple[pd.DataFrame, str | Sequence[str] | None]], **options: Any
    ) -> Dataset:
        """Put several tables under each other, each with its intervention targets (`None`: observational)."""
        if not environments:
            raise DataError("No environments were given; pass [(frame, targets), …].")
        frames = [_named(frame) for frame, _ in environments]
        for number, frame in enumerate(frames[1:], start=2):
            if set(frame.columns) != set(frames[0].columns):
                differing = sorted(set(frame.columns) ^ set(frames[0].columns))
                raise DataError(f"Environments 1 and {number} do not share the columns {shown(differing)}.")
        blocks = [(len(frame), targets) for frame, (_, targets) in zip(frames, environments, strict=True)]
        return cls.from_frame(pd.concat(frames, ignore_index=True), interventions=blocks, **options)

    @classmethod
    def as_dataset(
        cls, table: Any, *, interventions: Any = None, knowledge: Knowledge | None = None, **options: Any
    ) -> Dataset:
        """Whatever a user passes to `fit`, as a `Dataset`.

        Args:
            table: a `Dataset`, a pandas or polars DataFrame, or an array [n, d].
            interventions: as in `from_frame`; for a `Dataset` that has its own, both must agree.
            knowledge: as in `from_frame`; for a `Dataset` that has its own, both must agree.
            options: the other options of `from_frame`. A `Dataset` was made with its own and keeps them.
        """
        if isinstance(table, Dataset):
            return table._with(interventions, knowledge, options.get("intervention_base"))
        options |= {"interventions": interventions, "knowledge": knowledge}
        if isinstance(table, pd.DataFrame):
            return cls.from_frame(table, **options)
        if hasattr(table, "to_pandas"):
            return cls.from_frame(_to_pandas(table), **options)
        if isinstance(table, str | Path):
            raise DataError(f"To read the file {str(table)!r}, use Dataset.from_csv.")
        return cls.from_array(table, **options)

    def _with(self, interventions: Any, knowledge: Knowledge | None, base: int | None) -> Dataset:
        data = self
        if knowledge is not None and knowledge != self.knowledge:
            if self.knowledge is not None:
                raise KnowledgeError(
                    "The Dataset carries other knowledge than the estimator; give it in one place."
                )
            knowledge.resolve(self.names)
            data = replace(data, knowledge=knowledge)
        if interventions is not None:
            mask = intervention_mask(interventions, self.names, self.num_rows, base=base)
            if self.intervened is not None and not np.array_equal(mask, self.intervened):
                raise DataError(
                    "The Dataset carries other interventions than were passed; give them in one place."
                )
            data = replace(data, intervened=mask)
        return data

    # ------------------------------------------------------------------ more rows, fewer rows

    def take(self, rows: Any) -> Dataset:
        """The observations `rows` (positions or a boolean mask), coded and scaled as they are here."""
        intervened = None if self.intervened is None else self.intervened[rows]
        return replace(self, values=self.values[rows], intervened=intervened)

    def like(
        self, frame: pd.DataFrame, *, interventions: Any = None, intervention_base: int | None = None
    ) -> Dataset:
        """New rows of the same variables, with the levels, bins, means and scales of this data set."""
        frame, intervened = _split_interventions(_named(frame), interventions, intervention_base)
        for name in self.names:
            if name not in frame.columns:
                raise DataError(f"The new table lacks the column {name!r}.")
        for name in frame.columns:
            if name not in self.names:
                raise DataError(f"The new table has a column too many. {unknown_name(name, self.names)}")
        if intervened is not None:
            intervened = intervened[:, [frame.columns.get_loc(name) for name in self.names]]
        frame, intervened, notes = _without_missing(frame[list(self.names)], intervened, "error")
        values = np.column_stack([column.encode(frame[column.name]) for column in self.columns])
        return replace(self, values=values, intervened=intervened, notes=notes)

    def concatenate(self, other: Dataset) -> Dataset:
        """These rows and those of `other`, which must have the same columns (see `like`)."""
        if other.columns != self.columns:
            raise DataError(
                "The two data sets are coded differently; make the second with `first.like(frame)`."
            )
        intervened = None
        if self.intervened is not None or other.intervened is not None:
            intervened = np.concatenate([_mask_or_zeros(self), _mask_or_zeros(other)])
        return replace(self, values=np.concatenate([self.values, other.values]), intervened=intervened)

    # ------------------------------------------------------------------ reading it

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables, [d]."""
        return tuple(column.name for column in self.columns)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """`"continuous"` or `"discrete"` for each variable, [d]."""
        return tuple(column.kind for column in self.columns)

    @property
    def levels(self) -> tuple[tuple[Hashable, ...] | None, ...]:
        """What the codes 0 … r−1 of each discrete variable stand for; None for a continuous one, [d]."""
        return tuple(column.levels for column in self.columns)

    @property
    def cardinalities(self) -> np.ndarray:
        """Number of levels of each variable, int64 [d]; 0 for a continuous one."""
        return np.array([len(column.levels or ()) for column in self.columns], dtype=np.int64)

    @property
    def num_rows(self) -> int:
        return self.values.shape[0]

    @property
    def num_variables(self) -> int:
        return self.values.shape[1]

    @property
    def is_continuous(self) -> bool:
        return all(kind == "continuous" for kind in self.kinds)

    @property
    def is_discrete(self) -> bool:
        return all(kind == "discrete" for kind in self.kinds)

    @property
    def standardized(self) -> bool:
        """Whether the continuous columns were scaled to mean 0 and standard deviation 1."""
        return self.is_continuous and any(
            (column.mean, column.scale) != (0.0, 1.0) for column in self.columns
        )

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of names, kinds, levels, numbers and interventions."""
        head = [self.names, self.kinds, [list(map(str, levels or ())) for levels in self.levels]]
        digest = hashlib.sha256(json.dumps(head).encode())
        digest.update(np.ascontiguousarray(self.values, dtype="<f8").tobytes())
        if self.intervened is not None:
            digest.update(np.packbits(self.intervened).tobytes())
        return digest.hexdigest()

    def to_frame(self) -> pd.DataFrame:
        """The numbers under their names, with the levels in place of the codes."""
        frame = pd.DataFrame(self.values, columns=list(self.names))
        for column in self.columns:
            if column.levels is not None:
                codes = frame[column.name].astype(np.int64)
                frame[column.name] = pd.Categorical.from_codes(codes, categories=list(column.levels))
        return frame


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with a plain index and text as column names, which must differ."""
    names = [str(name).strip() for name in frame.columns]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(f"Column names occur twice: {shown(map(repr, repeated))}. Rename the columns.")
    if "" in names:
        raise DataError(f"Column {names.index('') + 1} has no name. Name it or drop it.")
    return frame.set_axis(names, axis=1).reset_index(drop=True)


def _split_interventions(
    frame: pd.DataFrame, interventions: Any, base: int | None
) -> tuple[pd.DataFrame, np.ndarray | None]:
    if interventions is None:
        return frame, None
    if isinstance(interventions, str):
        if interventions not in frame.columns:
            raise DataError(
                f"interventions={interventions!r} is no column. {unknown_name(interventions, list(frame))}"
            )
        interventions, frame = frame[interventions], frame.drop(columns=interventions)
    return frame, intervention_mask(interventions, list(frame.columns), len(frame), base=base)


def _without_missing(
    frame: pd.DataFrame, intervened: np.ndarray | None, missing: str
) -> tuple[pd.DataFrame, np.ndarray | None, tuple[str, ...]]:
    absent = frame.isna().to_numpy()
    if not absent.any():
        return frame, intervened, ()
    complete = ~absent.any(axis=1)
    counts = [
        f"{name!r}: {column.sum()} (first in row {column.argmax() + 1})"
        for name, column in zip(frame.columns, absent.T, strict=True)
        if column.any()
    ]
    if missing == "error":
        raise DataError(
            f"Missing values in {shown(counts)}. Fill them in, drop the column, or pass missing='drop', which keeps "
            f"{complete.sum()} of {len(frame)} rows."
        )
    note = (
        f"{(~complete).sum()} of {len(frame)} rows were dropped because of missing values in {shown(counts)}."
    )
    kept = frame[complete].reset_index(drop=True).infer_objects()
    return kept, None if intervened is None else intervened[complete], (note,)


def _kinds(frame: pd.DataFrame, kinds: Kind | Mapping[str, Kind] | None) -> dict[str, Kind]:
    names = list(frame.columns)
    if kinds is None:
        kinds = {}
    elif isinstance(kinds, str):
        kinds = dict.fromkeys(names, kinds)
    for name, kind in kinds.items():
        if name not in names:
            raise DataError(f"`kinds` names an unknown column. {unknown_name(name, names)}")
        if kind not in KINDS:
            raise DataError(f"The kind of column {name!r} must be 'continuous' or 'discrete', got {kind!r}.")
    return {
        name: kinds[name] if name in kinds else infer_kind(name, frame[name].infer_objects())
        for name in names
    }


def _check_one_kind(columns: Sequence[Column]) -> None:
    continuous = [column.name for column in columns if column.kind == "continuous"]
    discrete = [column.name for column in columns if column.kind == "discrete"]
    if continuous and discrete:
        raise DataError(
            f"A mix of kinds that no score handles: {shown(map(repr, continuous))} are continuous, "
            f"{shown(map(repr, discrete))} discrete. Pass discretize='quantile' to cut the continuous columns into "
            f"bins, or kinds={{{discrete[0]!r}: 'continuous', …}} where the levels are numbers on a scale."
        )


def _check_choice(option: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        raise DataError(f"{option} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def _told(columns: Sequence[Column], kinds: Kind | Mapping[str, Kind] | None) -> list[str]:
    """What was made of the columns, in sentences."""
    notes = []
    taken = "taken as" if kinds is None else "used as"
    names = shown([column.name for column in columns], 12)
    first = columns[0]
    if first.kind == "continuous":
        how = "logged and " if first.log else ""
        scaled = (first.mean, first.scale) != (0.0, 1.0)
        how += "standardised (ddof = 1)" if scaled else "not standardised"
        notes.append(f"{len(columns)} variables {taken} continuous, {how}: {names}.")
    else:
        notes.append(f"{len(columns)} variables {taken} discrete: {names}.")
    binned = [column for column in columns if column.cuts is not None]
    if binned:
        told = shown([f"{column.name} ({', '.join(map(str, column.levels or ()))})" for column in binned])
        notes.append(f"{len(binned)} continuous variables were cut into bins: {told}.")
    return notes


def _told_interventions(intervened: np.ndarray | None, names: Sequence[str]) -> list[str]:
    if intervened is None:
        return []
    counts = dict(zip(names, intervened.sum(axis=0).tolist(), strict=True))
    told = shown([f"{name} in {count} rows" for name, count in counts.items() if count], 12) or "none"
    notes = [f"Interventions: {told}; {int((~intervened.any(axis=1)).sum())} rows are observational."]
    if always := [name for name, count in counts.items() if count == len(intervened)]:
        notes.append(f"Every row sets {shown(always)}: the data cannot tell what causes it.")
    return notes


def _mask_or_zeros(data: Dataset) -> np.ndarray:
    return np.zeros(data.values.shape, dtype=bool) if data.intervened is None else data.intervened


def _to_pandas(table: Any) -> pd.DataFrame:
    try:
        return table.to_pandas()
    except ImportError:  # polars without pyarrow
        return pd.DataFrame(table.to_dict(as_series=False))
