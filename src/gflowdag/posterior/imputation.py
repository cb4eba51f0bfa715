"""Missing cells that a fit has imputed: draws of them, and what they did to the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray

from gflowdag.data.description import TableDescription
from gflowdag.errors import DataError
from gflowdag.runtime.messages import shown, unknown_name

if TYPE_CHECKING:
    from gflowdag.posterior.posterior import Posterior

_MEMBERS = ("rows", "columns", "values", "of_sample")
_PREFIX = "imputed_"
ASSUMPTION = "whether a cell is missing does not depend on its value, given what was observed"


@dataclass(frozen=True)
class Imputation:
    """What missing cells did to an answer.

    Attributes:
        missing_cells: how many cells are missing.
        completions: completed tables that the answer rests on.
        num_chains: chains that drew them.
        r_hat: of these chains, the largest of any edge and of the score.
        between_share: share of the variance of the edges that lies between completed tables, 0 to 1: how much
            of the uncertainty is due to the missing cells. None where it is not known.
        assumption: what is assumed of the gaps.
    """

    missing_cells: int
    completions: int
    num_chains: int
    r_hat: float
    between_share: float | None = None
    assumption: str = ASSUMPTION

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Any) -> Imputation:
        """The inverse of `to_dict`.

        Raises:
            ValueError: it is none.
        """
        try:
            share = content["between_share"]
            return cls(
                int(content["missing_cells"]),
                int(content["completions"]),
                int(content["num_chains"]),
                float(content["r_hat"]),
                None if share is None else float(share),
                str(content["assumption"]),
            )
        except (TypeError, KeyError, ValueError, OverflowError) as error:
            raise ValueError(f"no description of an imputation: {error}") from error


@dataclass(frozen=True, eq=False)
class ImputedCells:
    """Draws of the missing cells of a table, as it is coded.

    Attributes:
        rows: of each cell, int [m], in the coded table.
        columns: of each cell, int [m].
        values: float64 [c, m], one row for each completed table.
        of_sample: which completed table each sampled graph was drawn with, int [n]; None where that is not
            known.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.float64]
    of_sample: NDArray[np.int64] | None = None

    def of_samples(self, index: NDArray[Any]) -> ImputedCells:
        """The same for some of the samples, by position or mask."""
        if self.of_sample is None:
            return self
        return ImputedCells(self.rows, self.columns, self.values, self.of_sample[index])

    def members(self) -> dict[str, NDArray[Any]]:
        """The members of a posterior's file."""
        found = {"rows": self.rows, "columns": self.columns, "values": self.values}
        if self.of_sample is not None:
            found["of_sample"] = self.of_sample
        return {_PREFIX + name: array for name, array in found.items()}

    @classmethod
    def from_members(cls, arrays: Mapping[str, NDArray[Any]]) -> ImputedCells | None:
        """The inverse of `members`; None where there are none.

        Raises:
            ValueError: the members are damaged.
        """
        found = {name: arrays[_PREFIX + name] for name in _MEMBERS if _PREFIX + name in arrays}
        if not found:
            return None
        d, num_samples = len(arrays["names"]), len(arrays["adjacency"])
        if not {"rows", "columns", "values"} <= found.keys():
            raise ValueError("members are missing")
        rows, columns = (_whole(found[name]) for name in ("rows", "columns"))
        values = np.asarray(found["values"], np.float64)
        if rows.ndim != 1 or columns.shape != rows.shape or columns.max(initial=0) >= d:
            raise ValueError("the places of the cells do not fit")
        if (
            values.ndim != 2
            or values.shape[1] != len(rows)
            or not len(values)
            or not np.isfinite(values).all()
        ):
            raise ValueError("the draws do not fit")
        of_sample = _whole(found["of_sample"]) if "of_sample" in found else None
        if of_sample is not None and (of_sample.shape != (num_samples,) or of_sample.max() >= len(values)):
            raise ValueError("the samples belong to no completed table")
        return cls(rows, columns, values, of_sample)


def _whole(values: NDArray[Any]) -> NDArray[np.int64]:
    if values.dtype.kind not in "ui" or values.min(initial=0) < 0:
        raise ValueError("not whole numbers")
    return values.astype(np.int64)


def imputed_column(posterior: Posterior, column: str) -> pd.DataFrame:
    """Draws of the missing cells of a column; see `Posterior.imputed`."""
    table, cells = posterior.table, posterior.imputed_cells
    if column not in posterior.names:
        raise DataError(unknown_name(column, list(posterior.names)))
    if table is None or cells is None:
        raise DataError(
            "Nothing was imputed: the table had no missing cells, rows with missing cells were left out, or "
            "the draws were too many to keep."
        )
    place = list(posterior.names).index(column)
    mine = cells.columns == place
    if not mine.any():
        with_gaps = [posterior.names[j] for j in np.unique(cells.columns)]
        raise DataError(f"Column {column!r} has no missing cells; {shown(map(repr, with_gaps))} had some.")
    return _decoded(table, place, cells.rows[mine], cells.values[:, mine])


def _decoded(
    table: TableDescription, place: int, rows: NDArray[np.int64], drawn: NDArray[np.float64]
) -> pd.DataFrame:
    column = table.columns[place]
    if column.levels is None:
        decoded: Any = column.decode(drawn)
    else:
        levels = np.empty(len(column.levels), dtype=object)
        levels[:] = column.levels
        decoded = levels[np.clip(drawn.astype(np.int64), 0, len(levels) - 1)]
    index = pd.RangeIndex(len(drawn), name="draw")
    return pd.DataFrame(decoded, index=index, columns=pd.Index(rows, name="row")).infer_objects()
