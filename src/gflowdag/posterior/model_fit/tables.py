"""What a table alone says against the model, before anything is computed.

If a Gaussian network produced the table, the rows are independent draws from a normal distribution: every
column is normal and every regression of one column on another is linear with one variance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from gflowdag.data import Dataset, Knowledge
from gflowdag.data.cells import distinct_rows
from gflowdag.data.columns import MAX_INTEGER_LEVELS, ROWS_OF_A_LEVEL, normal_scores
from gflowdag.posterior.model_fit.finding import Finding, ModelFit, Remedy
from gflowdag.posterior.model_fit.shapes import shape_findings, with_one_transform
from gflowdag.posterior.model_fit.statistics import (
    LEVEL,
    MIN_ROWS,
    Draw,
    Tested,
    averaged,
    serial_dependence,
)
from gflowdag.posterior.model_fit.words import (
    DETERMINISTIC,
    FEW_ROWS,
    FEW_VALUES,
    RARE_LEVELS,
    SERIAL,
    UNEQUAL_VARIANCE,
    curvature_finding,
)
from gflowdag.runtime.messages import shown

_KINDS = ("continuous", "discrete")
_ROWS_PER_VARIABLE = 5  # fewer, and the prior weighs as much as the rows in a regression on all others
UNEXPLAINED = 1e-4  # share of a variance: noise of 1 % of the deviation, about what rounding to 2 digits adds
_MOST_CELLS = 1e8  # rows × pairs of columns that are compared: about a second


class _Pairs(NamedTuple):
    """The strongest hint in each column against a linear relation with one variance, and beside which one."""

    curvature: list[tuple[str, Tested]]
    variance: list[tuple[str, Tested]]


def check_table(data: Dataset) -> ModelFit:
    """Look at a table before the fit. Findings are for the table as it is coded, transforms included.

    Rows with missing cells are left out.
    """
    complete = data.is_complete
    untouched = np.ones(data.num_rows, bool) if data.intervened is None else ~data.intervened.any(axis=1)
    observational, rows = data.take(untouched & complete), np.flatnonzero(untouched & complete)
    notes = notes_on_gaps(data)
    if complete.sum() < min(MIN_ROWS, data.num_rows):
        return ModelFit((), tuple(notes))
    data = data.take(complete)
    few = _of_few_values(data)
    found = findings_whatever_the_parents(data, few)
    for part in _of_one_kind(data):
        found += _few_rows(part)
    if data.intervened is not None:
        notes.append("Before the fit only the rows without interventions are checked.")
    if observational.num_rows < MIN_ROWS:
        notes.append(f"Shapes, curvature and row order were not checked: that needs {MIN_ROWS} rows.")
        return ModelFit(tuple(found), tuple(notes))
    if data.is_mixed:
        notes.append(
            "The shapes of the continuous columns are checked after the fit, given the discrete columns that "
            "they depend on."
        )
    elif data.is_continuous:
        columns = {
            name: [Draw(1.0, values, rows=rows)]
            for name, values in zip(data.names, observational.values.T, strict=True)
            if name not in few
        }
        found += shape_findings(data, columns)
        if data.num_rows * data.num_variables**2 > _MOST_CELLS:
            notes.append("The table is large: curvature and unequal variance are checked after the fit only.")
        else:
            found += _pair_findings({name: draws[0].x for name, draws in columns.items()})
    if data.intervened is not None:
        notes.append("Whether rows depend on each other was not checked: interventions come in blocks.")
    elif sorted_by := sorting_columns(data):
        notes.append(
            f"The rows are sorted by {shown(sorted_by)}, so that their order says nothing: whether they "
            "depend on each other was not checked."
        )
    else:
        found += serial_findings(
            {name: [Draw(1.0, values)] for name, values in zip(data.names, data.values.T, strict=True)}
        )
    return ModelFit(tuple(with_one_transform(found, data)), tuple(notes))


def findings_whatever_the_parents(data: Dataset, few: dict[str, int] | None = None) -> list[Finding]:
    """What single columns and pairs of a complete table tell; `few` as `_of_few_values` finds them."""
    found = [*_few_values(data, _of_few_values(data) if few is None else few), *_rare_levels(data)]
    for part in _of_one_kind(data):
        found += _deterministic(part)
    return found


def notes_on_gaps(data: Dataset) -> list[str]:
    """Which rows of a table with gaps are looked at."""
    if data.missing is None:
        return []
    complete = int(data.is_complete.sum())
    if complete < MIN_ROWS:
        return [
            f"The model was not checked: that needs {MIN_ROWS} rows without missing cells, and there are "
            f"{complete}."
        ]
    return [f"Only the {complete} rows without missing cells were checked."]


def serial_findings(columns: Mapping[str, Sequence[Draw]]) -> list[Finding]:
    """Columns or residuals whose neighbouring rows are alike."""
    tested = {name: averaged(serial_dependence, draws) for name, draws in columns.items()}
    flagged = significant(tested, len(tested))
    if not flagged:
        return []
    largest = max(tested[name].value for name in flagged)
    every = 1
    while largest > 0 and largest**every > 0.05 and every < 50:  # what is left of lag 1 after thinning
        every += 1
    remedy = Remedy(every=every) if every > 1 else None
    return [SERIAL.finding(flagged, tested, remedy)]


def significant(tested: dict[str, Tested], num_tests: int) -> list[str]:
    """The columns whose p-value is below the level, after the correction for all tests, the surest first."""
    names = [name for name, found in tested.items() if found.p * num_tests < LEVEL]
    return sorted(names, key=lambda name: -abs(tested[name].value))


def sorting_columns(data: Dataset) -> list[str]:
    """Columns by which the rows are sorted, or in whose levels they come in blocks."""
    found: list[str] = []
    for name, values in zip(data.names, data.values.T, strict=True):
        steps = np.diff(values)
        distinct = len(np.unique(values))
        in_blocks = distinct <= len(values) / 5 and np.count_nonzero(steps) == distinct - 1
        if (steps >= 0).all() or (steps <= 0).all() or in_blocks:
            found.append(name)
    return found


def _of_one_kind(data: Dataset) -> list[Dataset]:
    """The table, or its continuous and its discrete columns."""
    if not data.is_mixed:
        return [data]
    return [_part(data, [j for j, found in enumerate(data.kinds) if found == kind]) for kind in _KINDS]


def _part(data: Dataset, columns: list[int]) -> Dataset:
    """Some columns of a table."""
    intervened = None if data.intervened is None else data.intervened[:, columns]
    return replace(
        data,
        columns=tuple(data.columns[j] for j in columns),
        values=data.values[:, columns],
        intervened=intervened,
        knowledge=None if data.knowledge is None else Knowledge(max_parents=data.knowledge.max_parents),
    )


def _of_few_values(data: Dataset) -> dict[str, int]:
    """Continuous columns with no more values than a discrete one, and how many each has."""
    counts = {
        column.name: len(np.unique(values))
        for column, values in zip(data.columns, data.values.T, strict=True)
        if column.kind == "continuous"
    }
    most = min(MAX_INTEGER_LEVELS, data.num_rows // ROWS_OF_A_LEVEL)
    return {name: count for name, count in counts.items() if count <= most}


def _few_values(data: Dataset, few: dict[str, int]) -> list[Finding]:
    if not few:
        return []
    names = sorted(few, key=lambda name: few[name])
    rest = data.is_continuous and len(names) < data.num_variables
    remedy = Remedy(discrete=tuple(names), discretize="quantile" if rest else None)
    return [FEW_VALUES.finding(names, {name: Tested(float(few[name]), 0.0) for name in names}, remedy)]


def _few_rows(data: Dataset) -> list[Finding]:
    """Tables in which even two variables, or a regression on all others, have few rows for a parameter."""
    n, d = data.num_rows, data.num_variables
    if data.is_continuous:
        ratio = n / d
        if ratio >= _ROWS_PER_VARIABLE:
            return []
        values = {"all continuous columns": Tested(ratio, 0.0)}
    else:
        levels = data.cardinalities.astype(float)
        ratios = n / (np.sort(levels)[-1 if d == 1 else -2] * np.maximum(levels - 1, 1))
        values = {
            name: Tested(float(ratio), 0.0)
            for name, ratio in zip(data.names, ratios, strict=True)
            if ratio < _ROWS_PER_VARIABLE
        }
        if not values:
            return []
    limit = data.knowledge.max_parents if data.knowledge is not None else None
    remedy = None if limit is not None and limit <= 2 else Remedy(max_parents=2)
    return [FEW_ROWS.finding(sorted(values, key=lambda name: values[name].value), values, remedy)]


def _rare_levels(data: Dataset) -> list[Finding]:
    rare: dict[str, Tested] = {}
    for column, codes in zip(data.columns, data.values.T, strict=True):
        if column.levels is not None:
            counts = np.bincount(codes.astype(np.int64), minlength=len(column.levels))
            if (least := counts[counts > 0].min()) < ROWS_OF_A_LEVEL:
                rare[column.name] = Tested(float(least), 0.0)
    names = sorted(rare, key=lambda name: rare[name].value)
    return [RARE_LEVELS.finding(names, rare, None)] if names else []


def _deterministic(data: Dataset) -> list[Finding]:
    shares = _unexplained(data) if data.is_continuous else _undetermined(data)
    names = sorted(shares, key=lambda name: shares[name].value)
    if not names:
        return []
    remedy = Remedy(drop=(names[0],)) if data.num_variables > 2 else None
    return [DETERMINISTIC.finding(names, shares, remedy)]


def _unexplained(data: Dataset) -> dict[str, Tested]:
    """Continuous columns of which all others leave next to nothing, and what they leave."""
    n, d = data.values.shape
    if n < 2 * d + 10:
        return {}
    inverse = np.linalg.inv(np.corrcoef(data.values.T).reshape(d, d))
    left = 1 / np.diagonal(inverse)
    return {
        name: Tested(float(share), 0.0)
        for name, share in zip(data.names, left, strict=True)
        if share < UNEXPLAINED
    }


def _undetermined(data: Dataset) -> dict[str, Tested]:
    """Discrete columns whose level another one decides in every row, where that is no chance.

    Given the levels of the other one, each further row of one level agrees with its first one with a chance
    of at most the share of the most frequent level.
    """
    codes, _ = distinct_rows(data.values.astype(np.int64))
    n, d = data.num_rows, data.num_variables
    if len(codes) * d**2 > _MOST_CELLS:
        return {}
    commonest = np.array([np.bincount(column.astype(np.int64)).max() for column in data.values.T]) / n
    is_decided = np.zeros(d, bool)
    for i in range(d):
        _, first, level = np.unique(codes[:, i], return_index=True, return_inverse=True)
        agrees = (codes[first[level.reshape(-1)]] == codes).all(axis=0)
        agrees[i] = False
        is_decided |= agrees & ((n - len(first)) * np.log(commonest) < np.log(LEVEL / 1000))
    return {name: Tested(0.0, 0.0) for name, found in zip(data.names, is_decided, strict=True) if found}


def _pair_findings(columns: Mapping[str, NDArray[np.float64]]) -> list[Finding]:
    names = list(columns)
    if len(names) < 2:
        return []
    pairs = _compare_pairs(columns)
    num_tests = len(names) * (len(names) - 1)
    found: list[Finding] = []
    for given, make in ((pairs.curvature, curvature_finding), (pairs.variance, None)):
        tested = {name: best for name, (_, best) in zip(names, given, strict=True)}
        flagged = significant(tested, num_tests)
        if flagged:
            beside = {name: other for name, (other, _) in zip(names, given, strict=True)}
            remedy = Remedy(discretize="quantile")
            if make is not None:
                found.append(make(flagged, tested, beside, remedy))
            else:
                found.append(UNEQUAL_VARIANCE.finding(flagged, tested, remedy, beside=beside[flagged[0]]))
    return found


def _compare_pairs(columns: Mapping[str, NDArray[np.float64]]) -> _Pairs:
    """Each column regressed on each other one, after normal scores: what no transform of a column removes."""
    z = np.column_stack([_unit(normal_scores(column)) for column in columns.values()]).astype(np.float64)
    names = list(columns)
    n, d = z.shape
    curvature, variance = np.zeros((2, d, d)), np.zeros((2, d, d))
    for i in range(d):
        x = z[:, i]
        correlations = x @ z / n
        residuals = z - x[:, None] * correlations
        residuals[:, i] = 1.0
        curved = np.column_stack([np.abs(x), x**3 - 3 * x])
        curved -= curved.mean(axis=0)
        curved = _columns_of_unit(curved - np.outer(x, x @ curved / n))
        curvature[:, i] = curved.T @ _columns_of_unit(residuals) / n
        sizes = _columns_of_unit(np.abs(residuals))
        variance[:, i] = np.column_stack([x, _unit(np.abs(x))]).T @ sizes / n
    return _Pairs(*(_strongest(both, names, n) for both in (curvature, variance)))


def _strongest(correlations: NDArray[np.float64], names: list[str], n: int) -> list[tuple[str, Tested]]:
    """For each column, the strongest of the correlations [2, d, d] with functions of another one."""
    best = np.abs(correlations).max(axis=0)
    np.fill_diagonal(best, 0.0)
    found: list[tuple[str, Tested]] = []
    for j, i in enumerate(best.argmax(axis=0)):
        value = min(float(best[i, j]), 1 - 1e-12)
        p = 2 * len(correlations) * float(stdtr(n - 3, -value * np.sqrt((n - 3) / (1 - value**2))))
        found.append((names[int(i)], Tested(value, min(1.0, p))))
    return found


def _unit(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return _columns_of_unit(x[:, None])[:, 0]


def _columns_of_unit(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns with mean 0 and variance 1; constant ones become 0."""
    centred = x - x.mean(axis=0)
    deviation = centred.std(axis=0)
    return np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 1e-12)
