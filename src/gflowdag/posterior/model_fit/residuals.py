"""What residuals given sampled parent sets say against the model, after the fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gflowdag.data import Dataset
from gflowdag.posterior.model_fit.finding import Finding, ModelFit, Remedy
from gflowdag.posterior.model_fit.shapes import shape_findings, transform_remedy, with_one_transform
from gflowdag.posterior.model_fit.statistics import (
    MIN_ROWS,
    Draw,
    Tested,
    averaged,
    curvature,
    unequal_variance,
)
from gflowdag.posterior.model_fit.tables import check_table, serial_findings, significant, sorting_columns
from gflowdag.posterior.model_fit.words import FEW_ROWS, UNEQUAL_VARIANCE, curvature_finding
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.messages import shown

_PARENT_SETS = 3  # of a variable that are looked at, the most probable
_ROWS_PER_PARAMETER = 5
# What the table alone tells, whatever the parents are.
_OF_TABLES = ("deterministic", "rare levels", "few values")


def check_residuals(posterior: Posterior, data: Dataset) -> ModelFit:
    """Look at the residuals of each variable given its most probable sampled parent sets.

    A row in which a variable was set from outside says nothing about it.

    Args:
        posterior: the answer.
        data: its table, columns in the order of the posterior.
    """
    if data.is_mixed:
        return check_table(data)
    residuals = {name: _residuals(posterior, data, j) for j, name in enumerate(data.names)}
    found = [finding for finding in check_table(data).findings if finding.check in _OF_TABLES]
    found += _few_rows(data, residuals)
    notes: list[str] = []
    if short := [name for name, draws in residuals.items() if len(draws[0].x) < MIN_ROWS]:
        notes.append(f"Too few rows to look at the residuals of {shown(short)}: {MIN_ROWS} are needed.")
    left = {name: draws for name, draws in residuals.items() if name not in short and _vary(draws)}
    few = {name for finding in found if finding.check == "few values" for name in finding.columns}
    if data.is_continuous and left:
        found += shape_findings(data, {name: draws for name, draws in left.items() if name not in few})
        found += _beside_parents(data, left)
    if sorted_by := sorting_columns(data):
        notes.append(
            f"The rows are sorted by {shown(sorted_by)}: whether its rows depend on each other was not "
            "checked."
        )
    if in_order := {name: draws for name, draws in left.items() if name not in sorted_by}:
        found += serial_findings(in_order)
    return ModelFit(tuple(with_one_transform(found, data)), tuple(notes), given_parents=True)


def _vary(draws: Sequence[Draw]) -> bool:
    return all(np.ptp(draw.x) > 1e-12 for draw in draws)


def _residuals(posterior: Posterior, data: Dataset, node: int) -> list[Draw]:
    """Residuals of one variable given its most probable parent sets, the most probable first."""
    drawn = np.ascontiguousarray(posterior.samples[:, :, node])
    packed = np.packbits(drawn, axis=1)
    keys = packed.view(f"V{packed.shape[1]}").ravel()
    _, first, of_sample = np.unique(keys, return_index=True, return_inverse=True)
    sets = drawn[first]
    mass = np.bincount(of_sample.ravel(), weights=posterior.weights, minlength=len(sets))
    rows = slice(None) if data.intervened is None else ~data.intervened[:, node]
    values = data.values[rows]
    remove = _without_regression if data.is_continuous else _without_cell_means
    return [
        Draw(
            float(mass[k]),
            remove(values[:, node], values[:, sets[k]]),
            tuple((data.names[i], values[:, i]) for i in np.flatnonzero(sets[k])),
        )
        for k in np.argsort(-mass, kind="stable")[:_PARENT_SETS]
        if mass[k] > 0
    ]


def _without_regression(y: NDArray[np.float64], parents: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a linear regression on the parents [n, k] leaves."""
    design = np.column_stack([np.ones(len(y)), parents])
    return y - design @ np.linalg.lstsq(design, y)[0]


def _without_cell_means(y: NDArray[np.float64], parents: NDArray[np.float64]) -> NDArray[np.float64]:
    """Codes less their mean among the rows with the same levels of the parents [n, k]."""
    cells = np.unique(parents, axis=0, return_inverse=True)[1].ravel()
    counts = np.maximum(np.bincount(cells), 1)
    return y - (np.bincount(cells, weights=y) / counts)[cells]


def _few_rows(data: Dataset, residuals: Mapping[str, Sequence[Draw]]) -> list[Finding]:
    """Variables with few rows for each parameter of their most probable parent set."""
    few: dict[str, Tested] = {}
    levels = dict(zip(data.names, data.cardinalities.tolist(), strict=True))
    most = 0
    for name, draws in residuals.items():
        parents = [parent for parent, _ in draws[0].regressors]
        parameters = len(parents) + 2
        if data.is_discrete:
            parameters = (levels[name] - 1) * int(np.prod([levels[parent] for parent in parents]))
        ratio = len(draws[0].x) / max(parameters, 1)
        if ratio < _ROWS_PER_PARAMETER:
            few[name] = Tested(ratio, 0.0)
            most = max(most, len(parents))
    names = sorted(few, key=lambda name: few[name].value)
    remedy = Remedy(max_parents=most - 1) if most > 1 else None
    return [FEW_ROWS.finding(names, few, remedy)] if names else []


def _beside_parents(data: Dataset, residuals: Mapping[str, Sequence[Draw]]) -> list[Finding]:
    """Residuals that bend with a parent, or whose size depends on one."""
    found: list[Finding] = []
    for test in (curvature, unequal_variance):
        tested: dict[str, Tested] = {}
        beside: dict[str, str] = {}
        for name, draws in residuals.items():
            if with_parents := [draw for draw in draws if draw.regressors]:
                tested[name] = averaged(_at_worst(test, with_parents), with_parents)
                beside[name] = _worst_parent(test, with_parents)
        flagged = significant(tested, len(tested))
        if not flagged:
            continue
        remedy = transform_remedy(data, sorted({*flagged, *(beside[name] for name in flagged)}))
        remedy = remedy or Remedy(discretize="quantile")
        if test is curvature:
            found.append(curvature_finding(flagged, tested, beside, remedy))
        else:
            found.append(UNEQUAL_VARIANCE.finding(flagged, tested, remedy, beside=beside[flagged[0]]))
    return found


_Test = Callable[[NDArray[np.float64], NDArray[np.float64]], Tested]


def _at_worst(test: _Test, draws: Sequence[Draw]) -> Callable[[NDArray[np.float64]], Tested]:
    """The strongest result beside any parent, corrected for their number."""
    of_residual = {id(draw.x): draw.regressors for draw in draws}

    def tested(x: NDArray[np.float64]) -> Tested:
        results = [test(x, parent) for _, parent in of_residual[id(x)]]
        best = min(results, key=lambda result: result.p)
        return Tested(best.value, min(1.0, best.p * len(results)))

    return tested


def _worst_parent(test: _Test, draws: Sequence[Draw]) -> str:
    pairs = [(test(draw.x, x).p, name) for draw in draws for name, x in draw.regressors]
    return min(pairs)[1]
