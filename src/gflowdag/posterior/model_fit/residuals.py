"""What residuals given sampled parent sets say against the model, after the fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gflowdag.data import Dataset
from gflowdag.data.cells import cells_of_rows
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
from gflowdag.posterior.model_fit.tables import (
    findings_whatever_the_parents,
    notes_on_gaps,
    serial_findings,
    significant,
    sorting_columns,
)
from gflowdag.posterior.model_fit.words import FEW_ROWS, UNEQUAL_VARIANCE, curvature_finding
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.messages import shown

_PARENT_SETS = 3  # of a variable that are looked at, the most probable
_CELLS = 3  # of the discrete parents that are looked at, the largest
_ROWS_PER_PARAMETER = 5


def check_residuals(posterior: Posterior, data: Dataset) -> ModelFit:
    """Look at the residuals of each variable given its most probable sampled parent sets.

    A row in which a variable was set from outside says nothing about it.

    Args:
        posterior: the answer.
        data: its table, columns in the order of the posterior.
    """
    notes = notes_on_gaps(data)
    if data.is_complete.sum() < min(MIN_ROWS, data.num_rows):
        return ModelFit((), tuple(notes))
    sets = [_likely_parents(posterior, j) for j in range(data.num_variables)]
    residuals = {name: _residuals(data, j, sets[j]) for j, name in enumerate(data.names)}
    found = findings_whatever_the_parents(data.take(data.is_complete))
    found += _few_rows(data, residuals)
    few = {name for finding in found if finding.check == "few values" for name in finding.columns}
    cells = {
        name: _residuals_in_cells(data, j, sets[j])
        for j, name in enumerate(data.names)
        if data.kinds[j] == "continuous"
    }
    short = [name for name, draws in residuals.items() if len(draws[0].x) < MIN_ROWS]
    if short := [name for name in data.names if name in short or not cells.get(name, True)]:
        notes.append(f"Too few rows to look at the residuals of {shown(short)}: {MIN_ROWS} are needed.")
    left = {name: draws for name, draws in residuals.items() if name not in short and _vary(draws)}
    if shaped := {name: draws for name, draws in cells.items() if name in left and _vary(draws)}:
        found += shape_findings(data, {name: draws for name, draws in shaped.items() if name not in few})
        found += _beside_parents(data, shaped)
    data = data.take(data.is_complete)
    if sorted_by := sorting_columns(data):
        notes.append(
            f"The rows are sorted by {shown(sorted_by)}: whether its rows depend on each other was not "
            "checked."
        )
    if in_order := {name: draws for name, draws in left.items() if name not in sorted_by}:
        found += serial_findings(in_order)
    return ModelFit(tuple(with_one_transform(found, data)), tuple(notes), given_parents=bool(left))


def _vary(draws: Sequence[Draw]) -> bool:
    return all(np.ptp(draw.x) > 1e-12 for draw in draws)


def _likely_parents(posterior: Posterior, node: int) -> list[tuple[float, NDArray[np.bool_]]]:
    """The most probable parent sets of a variable, bool [d], each with its probability."""
    drawn = np.ascontiguousarray(posterior.samples[:, :, node])
    packed = np.packbits(drawn, axis=1)
    keys = packed.view(f"V{packed.shape[1]}").ravel()
    _, first, of_sample = np.unique(keys, return_index=True, return_inverse=True)
    mass = np.bincount(of_sample.ravel(), weights=posterior.weights, minlength=len(first))
    likely = np.argsort(-mass, kind="stable")[:_PARENT_SETS]
    return [(float(mass[k]), drawn[first[k]]) for k in likely if mass[k] > 0]


def _residuals(data: Dataset, node: int, sets: Sequence[tuple[float, NDArray[np.bool_]]]) -> list[Draw]:
    """Residuals of one variable given each parent set, over all rows in which it was not set from outside."""
    rows = _own_rows(data, node)
    values = data.values if len(rows) == data.num_rows else data.values[rows]
    return [
        Draw(
            mass,
            _without_parents(values[:, node], *_by_kind(data, values, parents)),
            tuple((data.names[i], values[:, i]) for i in np.flatnonzero(parents)),
            rows,
            given,
        )
        for given, (mass, parents) in enumerate(sets)
    ]


def _residuals_in_cells(
    data: Dataset, node: int, sets: Sequence[tuple[float, NDArray[np.bool_]]]
) -> list[Draw]:
    """The same, each within the rows of one cell of the discrete parents, of which the largest count.

    In a cell a variable is normal with one variance, whatever it is in others.
    """
    own = _own_rows(data, node)
    draws: list[Draw] = []
    for given, (mass, parents) in enumerate(sets):
        codes, _ = _by_kind(data, data.values[own], parents)
        of_row = cells_of_rows(codes)
        counts = np.bincount(of_row)
        for cell in np.argsort(-counts, kind="stable")[:_CELLS]:
            if counts[cell] >= MIN_ROWS:
                rows = own[of_row == cell]
                _, numbers = _by_kind(data, data.values[rows], parents)
                regressors = tuple(
                    (data.names[i], data.values[rows, i])
                    for i in np.flatnonzero(parents)
                    if data.kinds[i] == "continuous"
                )
                x = _without_parents(data.values[rows, node], numbers[:, :0], numbers)
                draws.append(Draw(mass * int(counts[cell]) / len(own), x, regressors, rows, given))
    return draws


def _own_rows(data: Dataset, node: int) -> NDArray[np.int64]:
    """Rows without missing cells in which a variable was not set from outside."""
    own = data.is_complete
    return np.flatnonzero(own if data.intervened is None else own & ~data.intervened[:, node])


def _by_kind(
    data: Dataset, values: NDArray[np.float64], parents: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The discrete and the continuous parents, each [n, k]."""
    discrete = np.array([kind == "discrete" for kind in data.kinds])
    return values[:, parents & discrete], values[:, parents & ~discrete]


def _without_parents(
    y: NDArray[np.float64], codes: NDArray[np.float64], numbers: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What a linear regression leaves, with an intercept in each cell of the discrete parents.

    Args:
        y: numbers or codes, [n].
        codes: of the discrete parents, [n, k].
        numbers: of the continuous parents, [n, m].
    """
    cells = cells_of_rows(codes)
    counts = np.maximum(np.bincount(cells), 1)

    def centred(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return x - (np.bincount(cells, weights=x) / counts)[cells]

    y = centred(y)
    if not numbers.shape[1]:
        return y
    design = np.column_stack([centred(x) for x in numbers.T])
    return y - design @ np.linalg.lstsq(design, y)[0]


def _few_rows(data: Dataset, residuals: Mapping[str, Sequence[Draw]]) -> list[Finding]:
    """Variables with few rows for each parameter of their most probable parent set."""
    few: dict[str, Tested] = {}
    levels = dict(zip(data.names, data.cardinalities.tolist(), strict=True))
    most = 0
    for name, draws in residuals.items():
        parents = [parent for parent, _ in draws[0].regressors]
        cells = math.prod(levels[parent] for parent in parents if levels[parent])
        numbers = sum(not levels[parent] for parent in parents)
        of_child = (levels[name] - 1) * (numbers + 1) if levels[name] else numbers + 2
        parameters = of_child * cells
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
