"""Missing cells of networks with continuous and discrete columns, cell by cell given parameters and the rest.

Parameters are drawn from their posterior given the graph and the completed table (`mixed_parameters`). Then
each missing cell is drawn given its Markov blanket in its row: a level in proportion to the probabilities, a
number from the normal distribution that its own regression and those of continuous children make. Discrete
children, whose regressions are logistic, accept or refuse that draw (Metropolis).

Draws of logistic regressions are as good as `logistic_draws`. Where a score averages models of a node, such
as sample sizes, the one drawn counts for all rows; that the weights of the models depend a little on the
missing cells is left out.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.runtime.compiled import compiled
from gflowdag.score.discrete_cells import chosen
from gflowdag.score.local_score import LocalScore
from gflowdag.score.mixed_parameters import MixedParameters, Predictors

if TYPE_CHECKING:
    from gflowdag.data import Dataset
    from gflowdag.score.generalized_linear import GeneralizedLinear

_SCANS = 3  # over the missing cells of each row, for every draw of the parameters


class _Network(NamedTuple):
    """Linear predictors of all nodes in one array, node by node, cell by cell, predictor by predictor."""

    levels: NDArray[np.int64]  # [d], 0 for a continuous node
    graph: NDArray[np.bool_]  # [d, d], rows are sources
    strides: NDArray[np.int64]  # [d (node), d (parent)], of the cells of discrete parents
    numbers: NDArray[np.int64]  # [d (node), d], continuous parents, the first `num_numbers`
    num_numbers: NDArray[np.int64]  # [d]
    coefficients: NDArray[np.float64]
    start: NDArray[np.int64]  # [d], where the coefficients of a node begin
    deviations: NDArray[np.float64]  # of the noise, cell by cell
    deviations_start: NDArray[np.int64]  # [d]


class MixedCells:
    """Draws of the missing cells under scores of linear and logistic regressions.

    Args:
        data: the table.
        score: hyper-parameters.
        own_variances: see `MixedParameters`.
    """

    def __init__(self, data: Dataset, score: GeneralizedLinear, *, own_variances: bool):
        assert data.missing is not None
        self._data, self._score, self._own_variances = data, score, own_variances
        self._missing = np.ascontiguousarray(data.missing)
        self._set = np.zeros(data.values.shape, bool) if data.intervened is None else data.intervened
        self._levels = np.asarray(data.cardinalities, np.int64)

    def __call__(
        self,
        values: NDArray[np.float64],
        graph: NDArray[np.bool_],
        likelihood: LocalScore,
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        completed = replace(self._data, values=values.copy())
        parameters = MixedParameters.of(completed, self._score, own_variances=self._own_variances)
        drawn = [parameters.draw(node, graph[:, node], 1, rng) for node in range(len(graph))]
        out = values.copy()
        shape = (_SCANS, *values.shape)
        network = self._network(graph, drawn)
        _draw(out, self._missing, self._set, network, rng.random(shape), rng.normal(size=shape))
        return out

    def _network(self, graph: NDArray[np.bool_], drawn: list[Predictors]) -> _Network:
        d = len(graph)
        strides, numbers = np.zeros((d, d), np.int64), np.zeros((d, d), np.int64)
        num_numbers = np.zeros(d, np.int64)
        for node in range(d):
            step = 1
            for parent in np.flatnonzero(graph[:, node] & (self._levels > 0))[::-1]:  # the last runs fastest
                strides[node, parent] = step
                step *= self._levels[parent]
            continuous = np.flatnonzero(graph[:, node] & (self._levels == 0))
            numbers[node, : len(continuous)] = continuous
            num_numbers[node] = len(continuous)
        coefficients = [one.coefficients[0].ravel() for one in drawn]
        deviations = [one.deviations[0].ravel() for one in drawn]
        return _Network(
            self._levels,
            np.ascontiguousarray(graph),
            strides,
            numbers,
            num_numbers,
            np.concatenate(coefficients),
            _starts(coefficients),
            np.concatenate(deviations),
            _starts(deviations),
        )


def _starts(parts: list[NDArray[np.float64]]) -> NDArray[np.int64]:
    return np.cumsum([0, *(len(part) for part in parts[:-1])]).astype(np.int64)


@compiled
def _cell(row: NDArray[np.float64], node: int, network: _Network) -> int:
    """The cell of the discrete parents of a node."""
    cell = 0
    for parent in range(row.shape[0]):
        if network.strides[node, parent] > 0:
            cell += int(row[parent]) * network.strides[node, parent]
    return cell


@compiled
def _place(node: int, cell: int, predictor: int, network: _Network) -> int:
    """Where the coefficients of a predictor begin."""
    number = cell * max(network.levels[node], 1) + predictor
    return network.start[node] + number * (1 + network.num_numbers[node])


@compiled
def _predictor(row: NDArray[np.float64], node: int, cell: int, predictor: int, network: _Network) -> float:
    place = _place(node, cell, predictor, network)
    value = network.coefficients[place]
    for k in range(network.num_numbers[node]):
        value += network.coefficients[place + 1 + k] * row[network.numbers[node, k]]
    return value


@compiled
def _log_density(row: NDArray[np.float64], node: int, network: _Network) -> float:
    """Of a node given its parents, but for a constant."""
    cell = _cell(row, node, network)
    if network.levels[node] == 0:
        deviation = network.deviations[network.deviations_start[node] + cell]
        z = (row[node] - _predictor(row, node, cell, 0, network)) / deviation
        return -0.5 * z * z - math.log(deviation)
    total, own = -math.inf, 0.0
    for level in range(network.levels[node]):
        value = _predictor(row, node, cell, level, network)
        if level == int(row[node]):
            own = value
        larger = max(total, value)
        total = larger + math.log1p(math.exp(min(total, value) - larger))
    return own - total


@compiled
def _of_children(
    row: NDArray[np.float64], node: int, was_set: NDArray[np.bool_], discrete_alone: bool, network: _Network
) -> float:
    """Log density of the children of a node, of all or of those that are discrete."""
    total = 0.0
    for child in range(row.shape[0]):
        counts = network.graph[node, child] and not was_set[child]
        if counts and (network.levels[child] > 0 or not discrete_alone):
            total += _log_density(row, child, network)
    return total


@compiled
def _draw(
    values: NDArray[np.float64],
    missing: NDArray[np.bool_],
    was_set: NDArray[np.bool_],
    network: _Network,
    uniforms: NDArray[np.float64],
    normals: NDArray[np.float64],
) -> None:
    """Draw every missing cell anew, some times, in place."""
    num_scans, n, d = uniforms.shape
    logs = np.empty(max(network.levels.max(), 1))
    for row in range(n):
        cells = values[row]
        for scan in range(num_scans):
            for node in range(d):
                if not missing[row, node]:
                    continue
                uniform = uniforms[scan, row, node]
                if network.levels[node] == 0:
                    _draw_number(cells, node, was_set[row], network, uniform, normals[scan, row, node])
                    continue
                levels = network.levels[node]
                for level in range(levels):
                    cells[node] = level
                    logs[level] = _log_density(cells, node, network) + _of_children(
                        cells, node, was_set[row], False, network
                    )
                cells[node] = chosen(logs[:levels], uniform)


@compiled
def _draw_number(
    row: NDArray[np.float64],
    node: int,
    was_set: NDArray[np.bool_],
    network: _Network,
    uniform: float,
    normal: float,
) -> None:
    """Draw a number given its parents and its continuous children; discrete children accept it or not."""
    cell = _cell(row, node, network)
    precision = network.deviations[network.deviations_start[node] + cell] ** -2
    pull = precision * _predictor(row, node, cell, 0, network)
    for child in range(row.shape[0]):
        if network.graph[node, child] and not was_set[child] and network.levels[child] == 0:
            cell = _cell(row, child, network)
            weight = network.deviations[network.deviations_start[child] + cell] ** -2
            slope = 0.0
            for k in range(network.num_numbers[child]):
                if network.numbers[child, k] == node:
                    slope = network.coefficients[_place(child, cell, 0, network) + 1 + k]
            rest = row[child] - _predictor(row, child, cell, 0, network) + slope * row[node]
            precision += weight * slope * slope
            pull += weight * slope * rest
    before = row[node]
    log_ratio = -_of_children(row, node, was_set, True, network)
    row[node] = pull / precision + normal / math.sqrt(precision)
    log_ratio += _of_children(row, node, was_set, True, network)
    if math.log(uniform) >= log_ratio:
        row[node] = before
