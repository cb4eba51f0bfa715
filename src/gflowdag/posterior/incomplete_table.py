"""A table with gaps as a posterior remembers it: what scores its completions, and has parameters for each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gflowdag.data import Constraints, Dataset
from gflowdag.data.columns import Column
from gflowdag.errors import GFlowDAGError
from gflowdag.posterior.imputation import ImputedCells
from gflowdag.runtime.files import is_object
from gflowdag.runtime.strict_json import dumps
from gflowdag.score import Prior, Score, UnboundScore
from gflowdag.score.missing_cells import CellDraws, DrawsMissingCells, cell_draws
from gflowdag.score.registry import SCORES, named_score, unbound_score

MAX_KEPT = 32 * 2**20  # bytes before compression; beyond, a file does not hold the table
_PREFIX = "incomplete_"
_MEMBERS = {"values", "intervened", "prior", "required", "forbidden", "max_parents", "score"}


@dataclass(frozen=True, eq=False)
class IncompleteTable:
    """A coded table with gaps, and how its completions are scored.

    Attributes:
        data: the table; gaps are NaN.
        score: hyper-parameters of the score.
        prior: structure prior.
        constraints: what knowledge and score rule out.
    """

    data: Dataset
    score: UnboundScore
    prior: Prior
    constraints: Constraints

    @classmethod
    def of(cls, data: Dataset, asked: str | UnboundScore, score: Score) -> IncompleteTable:
        """The table of a fit; `score` is that of any completion."""
        return cls(replace(data, knowledge=None), unbound_score(data, asked), score.prior, score.constraints)

    def completed(self, cells: ImputedCells, draw: int) -> Dataset:
        """The table with one draw of its missing cells."""
        values = self.data.values.copy()
        values[cells.rows, cells.columns] = cells.values[draw]
        return replace(self.data, values=values)

    def score_of(self, completed: Dataset) -> Score:
        """The score of a completed table."""
        return Score(tuple(self.data.names), self.score.bind(completed), self.prior, self.constraints)

    def draws_of_cells(self, gaps: Dataset) -> CellDraws:
        """How the cells that are missing in `gaps` are drawn, a completion of some cells of the table."""
        return cell_draws(gaps, self.score)

    def members(self) -> dict[str, NDArray[Any]]:
        """The members of a posterior's file; none where the score is not one of ours, or it is too large.

        Knowledge is kept as matrices, the prior by its weights.
        """
        found, d = self.data, self.data.num_variables
        spec = _specification(self.score)
        if spec is None or found.values.nbytes > MAX_KEPT:
            return {}
        intervened = np.zeros((0, 0), bool) if found.intervened is None else found.intervened
        required, forbidden, limit = self.constraints
        arrays: dict[str, Any] = {
            "values": found.values,
            "intervened": intervened.astype(np.uint8),
            "prior": np.asarray(self.prior.log_weights(d), np.float64),
            "required": required.astype(np.uint8),
            "forbidden": forbidden.astype(np.uint8),
            "max_parents": np.array([-1 if limit is None else limit]),
            "score": np.array(dumps(spec)),
        }
        return {_PREFIX + name: array for name, array in arrays.items()}

    @classmethod
    def from_members(
        cls, arrays: Mapping[str, NDArray[Any]], columns: Sequence[Column] | None, cells: ImputedCells | None
    ) -> IncompleteTable | None:
        """The inverse of `members`; None where there are none.

        Raises:
            ValueError: the members are damaged.
        """
        found = {name.removeprefix(_PREFIX): arrays[name] for name in arrays if name.startswith(_PREFIX)}
        if not found:
            return None
        if found.keys() != _MEMBERS or columns is None or cells is None:
            raise ValueError("members are missing")
        d, values = len(columns), np.asarray(found["values"], np.float64)
        _check_values(values, columns, cells)
        intervened = found["intervened"] != 0
        if intervened.size and intervened.shape != values.shape:
            raise ValueError("the interventions do not fit")
        prior = np.asarray(found["prior"], np.float64)
        edges = [found[name] != 0 for name in ("required", "forbidden")]
        if prior.shape != (d,) or not np.isfinite(prior).all() or any(one.shape != (d, d) for one in edges):
            raise ValueError("prior or knowledge do not fit")
        limit = int(found["max_parents"].reshape(-1)[0]) if found["max_parents"].size == 1 else -2
        if limit < -1:
            raise ValueError("the limit on the parents is none")
        data = Dataset(tuple(columns), values, intervened if intervened.size else None)
        constraints = Constraints(edges[0], edges[1], None if limit < 0 else limit)
        return cls(data, _score_of(str(found["score"])), _Weights(tuple(prior.tolist())), constraints)


@dataclass(frozen=True)
class _Weights:
    """A structure prior by its numbers."""

    weights: tuple[float, ...]

    def log_weights(self, d: int) -> NDArray[np.float64]:
        return np.array(self.weights[:d])


def _check_values(values: NDArray[np.float64], columns: Sequence[Column], cells: ImputedCells) -> None:
    """Refuse a table that is not that of the draws."""
    if values.ndim != 2 or values.shape[1] != len(columns) or np.isinf(values).any():
        raise ValueError("the table does not fit")
    gaps = np.isnan(values)
    if cells.rows.max(initial=0) >= len(values) or gaps.sum() != len(cells.rows):
        raise ValueError("the draws are not those of its gaps")
    if not gaps[cells.rows, cells.columns].all():
        raise ValueError("the draws are not those of its gaps")
    for place, column in enumerate(columns):
        if column.levels is not None:
            drawn = cells.values[:, cells.columns == place]
            codes = np.concatenate([values[~gaps[:, place], place], drawn.reshape(-1)])
            if (codes != codes.round()).any() or (codes < 0).any() or (codes >= len(column.levels)).any():
                raise ValueError("a level is out of range")


def _specification(score: UnboundScore) -> dict[str, Any] | None:
    """Name and hyper-parameters of a score of ours; None for others."""
    for name, made in SCORES.items():
        if made is type(score) and is_dataclass(score):
            return {"name": name, "parameters": asdict(score)}
    return None


def _as_given(value: Any) -> Any:
    """A hyper-parameter that came from JSON: several numbers are a tuple."""
    return tuple(cast(list[Any], value)) if isinstance(value, list) else value


def _score_of(text: str) -> UnboundScore:
    try:
        spec = json.loads(text)
        if not is_object(spec) or not is_object(spec["parameters"]):
            raise ValueError("no object")
        given = {name: _as_given(value) for name, value in spec["parameters"].items()}
        score = named_score(str(spec["name"]), **given)
    except (ValueError, KeyError, TypeError, RecursionError, GFlowDAGError) as error:
        raise ValueError(f"the score is none: {error}") from error
    if not isinstance(score, DrawsMissingCells):
        raise ValueError("the score draws no missing cells")
    return score
