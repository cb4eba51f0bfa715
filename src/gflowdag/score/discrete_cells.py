"""Missing cells of discrete networks, with all parameters integrated out.

A row is taken out of the counts, its missing cells are drawn in proportion to the marginal likelihood of the
table with the row put back, and it is put back. Under BDeu that is a product over nodes of ratios
`exp(M(P ∪ j) − M(P))`, where one row more adds `log(count + ess/q)` of its cell to each `M_ess`: equivalent
sample sizes that are averaged out stay so. All missing cells of a row are drawn at once where they have few
configurations, else one after the other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.errors import TooLargeError
from gflowdag.runtime.compiled import compiled
from gflowdag.score.bdeu import log_weights
from gflowdag.score.conjugate import MAX_CELLS
from gflowdag.score.local_score import LocalScore

if TYPE_CHECKING:
    from gflowdag.data import Dataset
    from gflowdag.score.bdeu import BDeu

MOST_AT_ONCE = 16  # configurations of the missing cells of a row that are drawn jointly


class _Tables(NamedTuple):
    """Counts of the families of a graph, and of their parents, one after the other."""

    strides: NDArray[np.int64]  # [d (node), d (parent)], of the cells of the parents
    family_start: NDArray[np.int64]  # [d], where the counts of the family of each node begin
    parents_start: NDArray[np.int64]  # [d]
    family_counts: NDArray[np.int64]
    parents_counts: NDArray[np.int64]
    family_cells: NDArray[np.float64]  # [d], q of each family
    parents_cells: NDArray[np.float64]  # [d]
    family_logs: NDArray[
        np.float64
    ]  # [d, e], M_ess of each, but for what depends on the number of rows alone
    parents_logs: NDArray[np.float64]  # [d, e]


class DiscreteCells:
    """Draws of the missing cells under BDeu."""

    def __init__(self, data: Dataset, score: BDeu):
        assert data.missing is not None
        self._missing = np.ascontiguousarray(data.missing)
        self._set = np.zeros(data.values.shape, bool) if data.intervened is None else data.intervened
        self._levels = np.asarray(data.cardinalities, np.int64)
        self._ess = np.atleast_1d(np.asarray(score.ess, np.float64))
        rows = (~self._set).sum(axis=0)
        self._log_weights = np.stack([log_weights(self._ess, int(own)) for own in rows])  # [d, e]

    def __call__(
        self,
        values: NDArray[np.float64],
        graph: NDArray[np.bool_],
        likelihood: LocalScore,
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        codes = values.astype(np.int64)
        tables = self._tables(graph)
        _count(codes, self._set, self._levels, self._ess, tables)
        uniforms = rng.random(codes.shape)
        _draw(
            codes,
            self._missing,
            self._set,
            graph,
            self._levels,
            self._ess,
            self._log_weights,
            tables,
            uniforms,
        )
        return codes.astype(np.float64)

    def _tables(self, graph: NDArray[np.bool_]) -> _Tables:
        d, num_sizes = len(graph), len(self._ess)
        strides = np.zeros((d, d), np.int64)
        sizes = np.ones(d)
        for node in range(d):
            for parent in np.flatnonzero(graph[:, node]):
                strides[node, parent] = sizes[node]
                sizes[node] *= self._levels[parent]
                if sizes[node] * self._levels[node] > MAX_CELLS:
                    raise TooLargeError(
                        f"A variable has {graph[:, node].sum()} parents with more than {MAX_CELLS:,} "
                        "combinations of levels, too many to impute: bound the parents by knowledge "
                        "(max_parents), or leave the limit on cells of BDeu in."
                    )
        families = sizes * self._levels
        return _Tables(
            strides,
            np.append(0, families[:-1].cumsum()).astype(np.int64),
            np.append(0, sizes[:-1].cumsum()).astype(np.int64),
            np.zeros(int(families.sum()), np.int64),
            np.zeros(int(sizes.sum()), np.int64),
            families,
            sizes,
            np.zeros((d, num_sizes)),
            np.zeros((d, num_sizes)),
        )


@compiled
def _cell(row: NDArray[np.int64], node: int, strides: NDArray[np.int64]) -> int:
    """The cell of the parents of a node that a row is in."""
    cell = 0
    for parent in range(row.shape[0]):
        cell += row[parent] * strides[node, parent]
    return cell


@compiled
def _count(
    codes: NDArray[np.int64],
    was_set: NDArray[np.bool_],
    levels: NDArray[np.int64],
    ess: NDArray[np.float64],
    tables: _Tables,
) -> None:
    """Put every row into the counts."""
    for row in range(codes.shape[0]):
        for node in range(codes.shape[1]):
            if not was_set[row, node]:
                _put(codes[row], node, 1, levels, ess, tables)


@compiled
def _put(
    row: NDArray[np.int64],
    node: int,
    times: int,
    levels: NDArray[np.int64],
    ess: NDArray[np.float64],
    tables: _Tables,
) -> None:
    """Put a row into the counts of one node, or take it out (`times` is −1)."""
    cell = _cell(row, node, tables.strides)
    family = tables.family_start[node] + cell * levels[node] + row[node]
    parents = tables.parents_start[node] + cell
    if times < 0:
        tables.family_counts[family] -= 1
        tables.parents_counts[parents] -= 1
    for size in range(ess.shape[0]):
        of_family, of_parents = _of_one_more(node, family, parents, ess[size], tables)
        tables.family_logs[node, size] += times * of_family
        tables.parents_logs[node, size] += times * of_parents
    if times > 0:
        tables.family_counts[family] += 1
        tables.parents_counts[parents] += 1


@compiled
def _of_one_more(node: int, family: int, parents: int, ess: float, tables: _Tables) -> tuple[float, float]:
    """What one row more in its cells adds to `M_ess` of the family of a node, and of its parents."""
    return (
        math.log(tables.family_counts[family] + ess / tables.family_cells[node]),
        math.log(tables.parents_counts[parents] + ess / tables.parents_cells[node]),
    )


@compiled
def _log_ratio(
    row: NDArray[np.int64],
    node: int,
    levels: NDArray[np.int64],
    ess: NDArray[np.float64],
    log_weights: NDArray[np.float64],
    tables: _Tables,
) -> float:
    """The local score of a node with a row put into its counts, but for a constant."""
    cell = _cell(row, node, tables.strides)
    family = tables.family_start[node] + cell * levels[node] + row[node]
    parents = tables.parents_start[node] + cell
    above, below = -math.inf, -math.inf
    for size in range(ess.shape[0]):
        of_family, of_parents = _of_one_more(node, family, parents, ess[size], tables)
        a = log_weights[node, size] + tables.family_logs[node, size] + of_family
        b = log_weights[node, size] + tables.parents_logs[node, size] + of_parents
        higher, larger = max(above, a), max(below, b)
        above = higher + math.log1p(math.exp(min(above, a) - higher))
        below = larger + math.log1p(math.exp(min(below, b) - larger))
    return above - below


@compiled
def _draw(
    codes: NDArray[np.int64],
    missing: NDArray[np.bool_],
    was_set: NDArray[np.bool_],
    graph: NDArray[np.bool_],
    levels: NDArray[np.int64],
    ess: NDArray[np.float64],
    log_weights: NDArray[np.float64],
    tables: _Tables,
    uniforms: NDArray[np.float64],
) -> None:
    """Draw the missing cells of every row, in place."""
    n, d = codes.shape
    cells, touched = np.empty(d, np.int64), np.empty(d, np.bool_)
    weights = np.empty(max(MOST_AT_ONCE, levels.max()))
    for row in range(n):
        number, configurations = 0, 1
        touched[:] = False
        for node in range(d):
            if missing[row, node]:
                cells[number] = node
                number += 1
                configurations = min(configurations * levels[node], MOST_AT_ONCE + 1)
                touched[node] = True
                touched |= graph[node]
        if number == 0:
            continue
        touched &= ~was_set[row]
        for node in range(d):
            if touched[node]:
                _put(codes[row], node, -1, levels, ess, tables)
        if configurations <= MOST_AT_ONCE:
            for configuration in range(configurations):
                left = configuration
                for a in range(number):
                    codes[row, cells[a]] = left % levels[cells[a]]
                    left //= levels[cells[a]]
                total = 0.0
                for node in range(d):
                    if touched[node]:
                        total += _log_ratio(codes[row], node, levels, ess, log_weights, tables)
                weights[configuration] = total
            left = chosen(weights[:configurations], uniforms[row, 0])
            for a in range(number):
                codes[row, cells[a]] = left % levels[cells[a]]
                left //= levels[cells[a]]
        else:
            for a in range(number):
                cell = cells[a]
                for level in range(levels[cell]):
                    codes[row, cell] = level
                    total = 0.0
                    for node in range(d):
                        if touched[node] and (node == cell or graph[cell, node]):
                            total += _log_ratio(codes[row], node, levels, ess, log_weights, tables)
                    weights[level] = total
                codes[row, cell] = chosen(weights[: levels[cell]], uniforms[row, a])
        for node in range(d):
            if touched[node]:
                _put(codes[row], node, 1, levels, ess, tables)


@compiled
def chosen(logs: NDArray[np.float64], uniform: float) -> int:
    """A place in proportion to `exp(logs)`."""
    largest = logs.max()
    total = 0.0
    for place in range(logs.shape[0]):
        total += math.exp(logs[place] - largest)
    left = uniform * total
    for place in range(logs.shape[0]):
        left -= math.exp(logs[place] - largest)
        if left < 0:
            return place
    return int(logs.argmax())
