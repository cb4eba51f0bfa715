"""`Dataset`: a table that was checked when it was read, so that all other code can rely on the numbers."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd

from gflowdag.data import notes, table
from gflowdag.data.checks import check_collinear, check_range, constant_columns, discrete_copies
from gflowdag.data.columns import Column, Kind
from gflowdag.data.formats import read_table
from gflowdag.data.interventions import intervention_mask
from gflowdag.data.knowledge import Knowledge
from gflowdag.data.read_options import Missing, ReadKeywords, ReadOptions, read_options
from gflowdag.data.reading import read_csv
from gflowdag.data.spellings import doubts, on_doubts
from gflowdag.errors import DataError, KnowledgeError
from gflowdag.runtime.messages import counted, shown, unknown_name


@dataclass(frozen=True, eq=False)
class Dataset:
    """A validated table. Make one with `from_frame`, `from_array`, `from_csv` or `from_environments`."""

    columns: tuple[Column, ...]
    values: np.ndarray  # float64 [n, d], read-only; discrete columns hold codes 0 … r−1, gaps are NaN
    intervened: np.ndarray | None = None  # bool [n, d], read-only: what was set from outside; None: nothing
    knowledge: Knowledge | None = None
    notes: tuple[str, ...] = ()  # sentences for the user
    options: ReadOptions = field(default_factory=ReadOptions)  # how the table was read

    def __post_init__(self) -> None:
        self.values.flags.writeable = False
        if self.intervened is not None:
            self.intervened.flags.writeable = False
            if not self.intervened.any():  # observational rows, whoever made the mask
                object.__setattr__(self, "intervened", None)

    def __repr__(self) -> str:
        count = {kind: self.kinds.count(kind) for kind in ("continuous", "discrete")}
        kinds = ", ".join(f"{number} {kind}" for kind, number in count.items() if number)
        return f"<Dataset of {counted(self.num_rows, 'row')}: {kinds}>"

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        options: ReadOptions | None = None,
        *,
        knowledge: Knowledge | None = None,
        **changes: Unpack[ReadKeywords],
    ) -> Dataset:
        """Check a DataFrame (rows are observations, columns variables) and turn it into numbers.

        Args:
            frame: the table.
            options: how to read it.
            knowledge: required and forbidden edges, tiers, maximum number of parents.
            **changes: attributes of `ReadOptions`, instead of `options` or in place of some of them: `kinds`,
                `continuous`, `discrete`, `drop`, `transform`, `standardize`, `discretize`, `bins`,
                `max_levels`, `missing`, `missing_values`, `interventions`, `intervention_base`.

        Raises:
            DataError: naming the column and the remedy, before anything is computed.
            KnowledgeError: the knowledge names unknown variables or contradicts itself.
        """
        options = read_options(options, changes)
        frame, settled = table.with_gaps(frame, options)
        frame, intervened = table.variables(frame, replace(options, missing_values=()))
        names = list(frame.columns)
        if knowledge is not None:
            knowledge.resolve(names)
        whole = frame.infer_objects()  # kinds, levels and constant columns are judged on all rows
        frame, intervened, dropped = table.complete_rows(frame, intervened, options.missing)
        table.check_rows(len(frame), whole)

        kinds = table.column_kinds(whole, options)
        levels = table.levels_of(kinds, whole, options)
        transforms = table.column_transforms(kinds, options)
        columns = [
            Column(name, kind, log=transforms.get(name) == "log", levels=levels.get(name))
            for name, kind in kinds.items()
        ]
        encoded = encoded_columns(columns, frame)
        table.check_not_constant(constant_columns(encoded, names), whole)
        continuous = [index for index, column in enumerate(columns) if column.kind == "continuous"]
        if continuous:
            check_range(encoded[:, continuous], [names[index] for index in continuous])
        columns = [
            column.ranked(observed(frame[column.name])) if transforms.get(column.name) == "rank" else column
            for column in columns
        ]
        if options.discretize is not None:
            columns = [
                column.binned(observed(frame[column.name]), options.discretize, options.bins)
                if column.kind == "continuous"
                else column
                for column in columns
            ]
        if options.standardize:
            columns = [
                column.standardized(observed(frame[column.name])) if column.kind == "continuous" else column
                for column in columns
            ]
        values = encoded_columns(columns, frame)
        if continuous := [index for index, column in enumerate(columns) if column.kind == "continuous"]:
            check_collinear(_complete(values[:, continuous]), [names[index] for index in continuous])
        discrete = [index for index, column in enumerate(columns) if column.kind == "discrete"]

        copies = discrete_copies(values[:, discrete], [names[index] for index in discrete])
        told = (
            *settled,
            *dropped,
            *notes.on_columns(columns, options.given_kinds(names)),
            *notes.on_levels(columns, values),
            *notes.on_copies(copies),
            *notes.on_interventions(intervened, names),
            *notes.on_row_numbers(whole),
            *notes.on_identifiers(whole),
            *on_doubts(doubts(whole, options.given_kinds(names))),
            *notes.on_shape(whole),
        )
        return cls(tuple(columns), values, intervened, knowledge, told, options.plain())

    @classmethod
    def from_array(cls, array: Any, names: Sequence[str] | None = None, **options: Any) -> Dataset:
        """Check an array [n, d]; `names` default to X1 … Xd, `options` are those of `from_frame`.

        Masked cells are missing values.
        """
        return cls.from_frame(_array_frame(array, names), **options)

    @classmethod
    def from_csv(cls, path: str | Path, **options: Any) -> Dataset:
        """Check a text file with a header line; `options` are those of `from_frame`.

        Columns are separated by commas, semicolons, tabs or spaces; the file may be gzipped. See
        `gflowdag.data.reading.read_csv` for what counts as a missing value.
        """
        return cls.from_frame(read_csv(path), **options)

    @classmethod
    def from_file(cls, path: str | Path, *, sheet: str | None = None, **options: Any) -> Dataset:
        """Check a table in a file of any kind: text, Excel, Parquet, Feather, Stata, SPSS, SAS.

        `sheet` names that of a workbook; the other options are those of `from_frame`.
        """
        return cls.from_frame(read_table(path, sheet=sheet), sheet=sheet, **options)

    @classmethod
    def from_environments(
        cls, environments: Sequence[tuple[pd.DataFrame, str | Sequence[str] | None]], **options: Any
    ) -> Dataset:
        """Put tables under each other, each with its intervention targets (`None`: observational)."""
        if not environments:
            raise DataError("No environments were given; pass [(frame, targets), …].")
        frames = [table.named_columns(frame) for frame, _ in environments]
        for number, frame in enumerate(frames[1:], start=2):
            if differing := sorted(set(frame.columns) ^ set(frames[0].columns)):
                raise DataError(f"Environments 1 and {number} do not share the columns {shown(differing)}.")
        blocks = [(len(frame), targets) for frame, (_, targets) in zip(frames, environments, strict=True)]
        return cls.from_frame(pd.concat(frames, ignore_index=True), interventions=blocks, **options)

    @classmethod
    def as_dataset(
        cls, data: Any, *, interventions: Any = None, knowledge: Knowledge | None = None, **options: Any
    ) -> Dataset:
        """Whatever a user passes to `fit`, as a `Dataset`.

        Args:
            data: a `Dataset`, a pandas or polars DataFrame, or an array [n, d].
            interventions: as in `from_frame`; for a `Dataset` that has its own, both must agree.
            knowledge: as in `from_frame`; for a `Dataset` that has its own, both must agree.
            options: the other options of `from_frame`. A `Dataset` was made with its own and keeps them.
        """
        if isinstance(data, Dataset):
            return data._with_interventions(interventions, options)._with_knowledge(knowledge)
        options |= {"interventions": interventions, "knowledge": knowledge}
        return cls.from_frame(as_frame(data), **options)

    def _with_knowledge(self, knowledge: Knowledge | None) -> Dataset:
        if knowledge is None or knowledge == self.knowledge:
            return self
        if self.knowledge is not None:
            raise KnowledgeError(
                "The Dataset has other prior knowledge than `knowledge`. Give it in one place."
            )
        knowledge.resolve(self.names)
        return replace(self, knowledge=knowledge)

    def _with_interventions(self, interventions: Any, options: Mapping[str, Any]) -> Dataset:
        if interventions is None:
            return self
        base = options.get("intervention_base")
        mask = intervention_mask(interventions, self.names, self.num_rows, base=base)
        if self.intervened is not None and not np.array_equal(mask, self.intervened):
            raise DataError(
                "The Dataset has other interventions than `interventions`. Give them in one place."
            )
        return replace(self, intervened=mask)

    def take(self, rows: Any) -> Dataset:
        """The observations `rows` (positions or a boolean mask), coded and scaled as they are here."""
        intervened = None if self.intervened is None else self.intervened[rows]
        return replace(self, values=self.values[rows], intervened=intervened)

    def like(
        self,
        frame: pd.DataFrame,
        *,
        missing: Missing = "error",
        interventions: Any = None,
        intervention_base: int | None = None,
    ) -> Dataset:
        """New rows of the same variables, with the levels, bins, means and scales of this data set.

        The options are those of `from_frame`.
        """
        options = ReadOptions(
            missing=missing, interventions=interventions, intervention_base=intervention_base
        )
        frame, intervened = table.variables(frame, options)
        for name in self.names:
            if name not in frame.columns:
                raise DataError(f"The new table lacks the column {name!r}.")
        for name in frame.columns:
            if name not in self.names:
                raise DataError(f"The new table has an extra column. {unknown_name(name, self.names)}")
        if intervened is not None:
            intervened = intervened[:, frame.columns.get_indexer(list(self.names))]
        frame, intervened, dropped = table.complete_rows(frame, intervened, missing)
        table.check_new_rows(len(frame))
        values = encoded_columns(self.columns, frame)
        return replace(self, values=values, intervened=intervened, notes=(*self.notes, *dropped))

    def concatenate(self, other: Dataset) -> Dataset:
        """These rows and those of `other`, which must have the same columns (see `like`)."""
        if other.columns != self.columns:
            raise DataError(
                "The two data sets are coded differently; make the second with first.like(frame)."
            )
        intervened = None
        if self.intervened is not None or other.intervened is not None:
            intervened = np.concatenate(
                [
                    np.zeros_like(data.values, bool) if data.intervened is None else data.intervened
                    for data in (self, other)
                ]
            )
        return replace(self, values=np.concatenate([self.values, other.values]), intervened=intervened)

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
        """Number of observations, n."""
        return self.values.shape[0]

    @property
    def num_variables(self) -> int:
        """Number of variables, d."""
        return self.values.shape[1]

    @property
    def is_continuous(self) -> bool:
        """Whether every variable is continuous."""
        return all(kind == "continuous" for kind in self.kinds)

    @property
    def is_discrete(self) -> bool:
        """Whether every variable is discrete."""
        return all(kind == "discrete" for kind in self.kinds)

    @property
    def is_mixed(self) -> bool:
        """Whether there are continuous and discrete variables."""
        return not (self.is_continuous or self.is_discrete)

    @cached_property
    def missing(self) -> np.ndarray | None:
        """Which cells are missing, bool [n, d]; None where none is."""
        absent = np.isnan(self.values)
        return absent if absent.any() else None

    @property
    def is_complete(self) -> np.ndarray:
        """Which rows have no missing cell, bool [n]."""
        if self.missing is None:
            return np.ones(self.num_rows, bool)
        return np.logical_not(self.missing.any(axis=1))

    @property
    def standardized(self) -> bool:
        """Whether the continuous columns were scaled to mean 0 and standard deviation 1."""
        scalings = [column.scaling for column in self.columns if column.kind == "continuous"]
        return bool(scalings) and None not in scalings

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
        columns = {}
        for column, numbers in zip(self.columns, self.values.T, strict=True):
            if column.levels is not None:
                codes = np.where(np.isnan(numbers), -1, numbers).astype(np.int64)
                numbers = pd.Categorical.from_codes(codes, categories=list(column.levels))
            columns[column.name] = numbers
        return pd.DataFrame(columns)


def as_frame(data: Any) -> pd.DataFrame:
    """Whatever table a user passes, as a pandas DataFrame; arrays get the names X1 … Xd."""
    if isinstance(data, str | Path):
        raise DataError(f"To read the file {str(data)!r}, use Dataset.from_file.")
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(data):  # some of which are mappings too
        raise DataError("Sparse data are not supported: pass X.toarray().")
    if isinstance(data, Mapping):
        raise DataError("A dictionary of columns is not a table: pass pandas.DataFrame(columns).")
    if isinstance(data, pd.DataFrame):
        return data
    return table.to_pandas(data) if hasattr(data, "to_pandas") else _array_frame(data, None)


def _array_frame(array: Any, names: Sequence[str] | None) -> pd.DataFrame:
    try:
        array = array if np.ma.isMaskedArray(array) else np.asarray(array)
    except ValueError as error:
        raise DataError("The rows have different lengths; every row needs one value per variable.") from error
    if array.ndim != 2:
        raise DataError(f"The array has {counted(array.ndim, 'dimension')}; it needs 2: rows and variables.")
    if names is None:
        names = [f"X{number}" for number in range(1, array.shape[1] + 1)]
    if len(names) != array.shape[1]:
        raise DataError(f"{len(names)} names were given for {counted(array.shape[1], 'column')}.")
    return pd.DataFrame(array).set_axis(list(names), axis=1)


def encoded_columns(columns: Sequence[Column], frame: Any) -> np.ndarray:
    """The numbers of a table, float64 [n, d]; NaN where a cell is missing."""
    values = np.full((len(frame), len(columns)), np.nan)
    for place, column in enumerate(columns):
        cells = frame[column.name]
        present = cells.notna().to_numpy()
        values[present, place] = column.encode(cells if present.all() else observed(cells))
    return values


def observed(cells: Any) -> Any:
    """The cells of a column that are there; the column itself if all are."""
    return cells.dropna().infer_objects() if cells.isna().any() else cells


def _complete(values: np.ndarray) -> np.ndarray:
    """The rows without gaps, where they are enough to look for relations between columns; otherwise none."""
    complete = values[~np.isnan(values).any(axis=1)]
    few = len(complete) < len(values) and len(complete) <= 2 * values.shape[1] + 3
    return complete[:0] if few else complete
