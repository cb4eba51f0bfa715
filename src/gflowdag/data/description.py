"""What a posterior remembers of its table: enough to code the same table again, and to know another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from gflowdag.data import table
from gflowdag.data.columns import Column
from gflowdag.data.dataset import Dataset, as_frame, encoded_columns
from gflowdag.data.interventions import intervention_mask
from gflowdag.data.read_options import ReadOptions
from gflowdag.errors import DataError
from gflowdag.runtime.messages import counted, shown, unknown_name

_AS_GIVEN = "Give the table as you gave it to fit: it is transformed and scaled here in the same way."


@dataclass(frozen=True)
class TableDescription:
    """How a table was read and coded, and its fingerprint.

    Attributes:
        columns: names, kinds, transforms, means and standard deviations, levels and bins.
        num_rows: number of observations.
        sha256: fingerprint of the coded table, `Dataset.sha256`.
        options: how it was read.
    """

    columns: tuple[Column, ...]
    num_rows: int
    sha256: str
    options: ReadOptions

    @classmethod
    def of(cls, data: Dataset) -> TableDescription:
        """The description of a data set."""
        return cls(data.columns, data.num_rows, data.sha256, data.options)

    @property
    def names(self) -> list[str]:
        """Names of the variables, [d]."""
        return [column.name for column in self.columns]

    def prepare(self, data: Any, *, interventions: Any = None) -> Dataset:
        """The described table, coded as it was; columns are matched by name.

        Args:
            data: the table as it was given to `fit`, or a `Dataset` of it.
            interventions: as for `fit`; a column that held them then is found again.

        Raises:
            DataError: it is another table, or one that was transformed already.
        """
        coded = (
            self._reordered(data, interventions)
            if isinstance(data, Dataset)
            else self._coded(data, interventions)
        )
        if coded.num_rows != self.num_rows:
            raise DataError(
                f"The posterior was learnt from {counted(self.num_rows, 'row')}, and this table has "
                f"{coded.num_rows:,}. {_AS_GIVEN}"
            )
        if coded.sha256 != self.sha256:
            raise DataError(
                "This is not the table that the posterior was learnt from: "
                f"{self._difference(coded)}. {_AS_GIVEN}"
            )
        return coded

    def _coded(self, data: Any, interventions: Any) -> Dataset:
        frame = as_frame(data)
        present = [table.plain_name(name) for name in frame.columns]
        options = replace(
            self.options,
            drop=[name for name in self.options.drop if name in present],
            interventions=self.options.interventions if interventions is None else interventions,
        )
        frame, intervened = table.variables(frame, options)
        self._check_names(list(frame.columns))
        if intervened is not None:
            intervened = intervened[:, frame.columns.get_indexer(self.names)]
        frame, intervened, _ = table.complete_rows(frame, intervened, options.missing)
        return Dataset(self.columns, encoded_columns(self.columns, frame), intervened)

    def _reordered(self, data: Dataset, interventions: Any) -> Dataset:
        self._check_names(data.names)
        if interventions is not None:
            mask = intervention_mask(interventions, data.names, data.num_rows)
            data = Dataset.as_dataset(data, interventions=mask)
        order = [data.names.index(name) for name in self.names]
        intervened = None if data.intervened is None else data.intervened[:, order]
        columns = tuple(data.columns[position] for position in order)
        return Dataset(columns, data.values[:, order], intervened)

    def _check_names(self, names: Any) -> None:
        if missing := [name for name in self.names if name not in names]:
            raise DataError(f"The table lacks the variables {shown(missing)} of the posterior.")
        if more := [name for name in names if name not in self.names]:
            raise DataError(f"The table has an extra column. {unknown_name(more[0], self.names)}")

    def _difference(self, coded: Dataset) -> str:
        """What is different about a table of the same names and size."""
        if coded.columns != self.columns:
            other = [
                mine.name for mine, column in zip(self.columns, coded.columns, strict=True) if mine != column
            ]
            return f"{shown(map(repr, other))} have another transform, scale or kind"
        return "its values or its interventions differ, or its rows are in another order"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return {
            "sha256": self.sha256,
            "num_rows": self.num_rows,
            "options": self.options.to_dict(),
            "columns": [asdict(column) | {"levels": _plain_levels(column)} for column in self.columns],
        }

    @classmethod
    def from_dict(cls, content: Any) -> TableDescription:
        """The inverse of `to_dict`.

        Raises:
            ValueError: it is none.
        """
        try:
            columns = tuple(_column(entry) for entry in content["columns"])
            num_rows, sha256 = content["num_rows"], content["sha256"]
            options = ReadOptions.from_dict(content["options"])
        except (TypeError, KeyError, AttributeError, OverflowError, DataError) as error:
            raise ValueError(f"no description of a table: {error}") from error
        if type(num_rows) is not int or not isinstance(sha256, str) or not columns:
            raise ValueError("no description of a table")
        return cls(columns, num_rows, sha256, options)


def _plain_levels(column: Column) -> list[Any] | None:
    """The levels as a file can hold them: values of other types become text."""
    if column.levels is None:
        return None
    return [level if isinstance(level, str | bool | int | float) else str(level) for level in column.levels]


def _column(entry: Mapping[str, Any]) -> Column:
    kind, scaling, levels, cuts = entry["kind"], entry["scaling"], entry["levels"], entry["cuts"]
    if kind not in ("continuous", "discrete") or not isinstance(entry["name"], str):
        raise KeyError("kind")
    scores = entry.get("scores")
    if scores is not None:
        known, at = (tuple(map(float, part)) for part in scores)
        if not 0 < len(known) == len(at):
            raise KeyError("scores")
        scores = (known, at)
    if scaling is not None:
        mean, deviation = map(float, scaling)
        scaling = (mean, deviation)
    return Column(
        entry["name"],
        kind,
        log=bool(entry["log"]),
        scores=scores,
        scaling=scaling,
        levels=None if levels is None else tuple(map(_hashable, levels)),
        cuts=None if cuts is None else tuple(map(float, cuts)),
    )


def _hashable(level: Any) -> Any:
    if not isinstance(level, str | bool | int | float):
        raise TypeError("a level is neither a text nor a number")
    return level
