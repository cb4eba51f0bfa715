"""Dirichlet marginals of contingency tables: occupied cells, refined by one variable at a time.

Tables are given by their distinct rows.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.runtime.compiled import compiled

_SMALL = 64  # counts below this read log-gamma ratios from a table


class CountedRows(NamedTuple):
    """The distinct rows of a table, and what they are weighed by (see `BDeuLikelihood`)."""

    codes: NDArray[np.int32]  # [d, u]
    counts: NDArray[np.int64]  # [u]
    cardinalities: NDArray[np.float64]  # [d]
    ess: NDArray[np.float64]  # equivalent sample sizes, [k]
    log_weights: NDArray[np.float64]  # of the sample sizes in the average, [k]


class _Room(NamedTuple):
    """Arrays that are used again for every set."""

    cells: NDArray[np.int64]  # the occupied cell of each row, [u]
    scratch: NDArray[np.int64]  # [u]
    lookup: NDArray[np.int64]  # of `_refine`
    totals: NDArray[np.int64]  # of `_dirichlet`, [u]
    small: NDArray[np.float64]  # of `_dirichlet`, [k, _SMALL]


@compiled
def _refine(
    cell_of_row: NDArray[np.int64],
    codes: NDArray[np.int32],
    cardinality: int | np.int64,
    refined: NDArray[np.int64],
    lookup: NDArray[np.int64],
) -> int:
    """Split the cells by one more variable; returns the number of occupied cells.

    `lookup` is a scratch array of −1 with room for every (cell, level), handed back as it came.
    """
    occupied = 0
    for row in range(codes.shape[0]):
        key = cell_of_row[row] * cardinality + codes[row]
        if lookup[key] < 0:
            lookup[key] = occupied
            occupied += 1
        refined[row] = lookup[key]
    for row in range(codes.shape[0]):
        lookup[cell_of_row[row] * cardinality + codes[row]] = -1
    return occupied


@compiled
def _dirichlet(
    cell_of_row: NDArray[np.int64],
    num_cells: int,
    table: CountedRows,
    pseudo_counts: NDArray[np.float64],
    room: _Room,
) -> float:
    """`Σ_cells lnΓ(n + a) − lnΓ(a)`, as the log of the weighted sum of its exponential over several `a`.

    Most cells are small, so their terms come from the table `small` [len(pseudo_counts), _SMALL].
    """
    totals = room.totals
    totals[:num_cells] = 0
    for row in range(table.counts.shape[0]):
        totals[cell_of_row[row]] += table.counts[row]
    total = -math.inf
    for place in range(pseudo_counts.shape[0]):
        value = float(table.log_weights[place]) + _log_rising(
            totals[:num_cells], pseudo_counts[place], room.small[place]
        )
        larger = max(total, value)
        total = larger + math.log1p(math.exp(min(total, value) - larger))
    return total


@compiled
def _log_rising(
    totals: NDArray[np.int64], pseudo_count: float | np.floating[Any], small: NDArray[np.float64]
) -> float:
    """`Σ_n lnΓ(n + a) − lnΓ(a)`."""
    filled = 1
    small[0] = 0.0
    offset = math.lgamma(pseudo_count)
    value = 0.0
    n: np.int64
    for n in totals:
        if n < _SMALL:
            while filled <= n:
                small[filled] = small[filled - 1] + math.log(pseudo_count + (filled - 1))
                filled += 1
            value += small[n]
        else:
            value += math.lgamma(n + pseudo_count) - offset
    return value


@compiled
def lookup_size(cardinalities: NDArray[np.float64], num_rows: int) -> np.int64:
    return np.int64(cardinalities.max() * max(num_rows, 1)) if cardinalities.size else np.int64(1)


@compiled
def _room(table: CountedRows) -> _Room:
    num_rows = table.counts.shape[0]
    return _Room(
        np.empty(num_rows, np.int64),
        np.empty(num_rows, np.int64),
        np.full(lookup_size(table.cardinalities, num_rows), -1, np.int64),
        np.empty(max(num_rows, 1), np.int64),
        np.empty((table.ess.shape[0], _SMALL)),
    )


@compiled
def occupied_cells(
    codes: NDArray[np.int32],
    cardinalities: NDArray[np.float64],
    subset: NDArray[np.bool_],
    cells: NDArray[np.int64],
    scratch: NDArray[np.int64],
    lookup: NDArray[np.int64],
) -> int:
    """Write the occupied cell of each row under `subset` [d] into `cells`; returns how many there are."""
    cells[:] = 0
    num_cells = 1
    for variable in range(subset.shape[0]):
        if subset[variable]:
            for row in range(cells.shape[0]):  # as arrays, numba would compile for seconds
                scratch[row] = cells[row]
            num_cells = _refine(scratch, codes[variable], np.int64(cardinalities[variable]), cells, lookup)
    return num_cells


@compiled
def collapsed(
    codes: NDArray[np.int32], counts: NDArray[np.int64], cardinalities: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The rows that are distinct in these columns, in order of appearance, and how often each is there."""
    num_columns, num_rows = codes.shape
    cells = np.empty(num_rows, np.int64)
    scratch = np.empty(num_rows, np.int64)
    lookup = np.full(lookup_size(cardinalities, num_rows), -1, np.int64)
    everything = np.ones(num_columns, np.bool_)
    num_cells = occupied_cells(codes, cardinalities, everything, cells, scratch, lookup)
    distinct = np.empty((num_columns, num_cells), np.int32)
    of_cells = np.zeros(num_cells, np.int64)
    for row in range(num_rows):
        cell = cells[row]
        if of_cells[cell] == 0:
            for column in range(num_columns):
                distinct[column, cell] = codes[column, row]
        of_cells[cell] += counts[row]
    return distinct, of_cells


@compiled
def _of_subset(
    table: CountedRows, subset: NDArray[np.bool_], room: _Room
) -> tuple[NDArray[np.float64], float]:
    """Pseudo-counts of a cell of `subset` [d], and `M(S)`; `room.cells` are its cells afterwards."""
    num_cells = occupied_cells(
        table.codes, table.cardinalities, subset, room.cells, room.scratch, room.lookup
    )
    pseudo_counts = table.ess / np.prod(table.cardinalities[subset])
    return pseudo_counts, _dirichlet(room.cells, num_cells, table, pseudo_counts, room)


@compiled
def log_marginals_of(table: CountedRows, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
    """`M(S)` of given subsets, bool [m, d] -> [m]."""
    out, room = np.empty(subsets.shape[0]), _room(table)
    for row in range(subsets.shape[0]):
        _, out[row] = _of_subset(table, subsets[row], room)
    return out


@compiled
def log_marginals_of_extended(table: CountedRows, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
    """`M(S ∪ i)` of given subsets and every variable, bool [m, d] -> [m, d]."""
    out, room = np.empty(subsets.shape), _room(table)
    for row in range(subsets.shape[0]):
        pseudo_counts, own = _of_subset(table, subsets[row], room)
        for variable in range(subsets.shape[1]):
            if subsets[row, variable]:
                out[row, variable] = own
                continue
            levels = table.cardinalities[variable]
            occupied = _refine(room.cells, table.codes[variable], np.int64(levels), room.scratch, room.lookup)
            out[row, variable] = _dirichlet(room.scratch, occupied, table, pseudo_counts / levels, room)
    return out


@compiled
def log_marginals_of_all(
    table: CountedRows,
    low: int,
    upper: int,
    out: NDArray[np.float64],
) -> None:
    """`M(S)` of all subsets of the first `low` variables, joined to the set `upper` of the others -> [2^low].

    Counting upwards, the step that sets bit `t` and clears those below refines the cells that the bits above
    `t` left behind: one pass over the distinct rows for each subset.
    """
    codes, cardinalities, num_sizes = table.codes, table.cardinalities, table.ess.shape[0]
    cells = np.zeros((low + 1, table.counts.shape[0]), np.int64)
    num_cells = np.ones(low + 1, np.int64)
    pseudo_counts = np.empty((low + 1, num_sizes))
    for size in range(num_sizes):  # as arrays, numba would compile for seconds
        pseudo_counts[low, size] = table.ess[size]
    room = _room(table)
    joined = np.zeros(codes.shape[0], np.bool_)
    for bit in range(codes.shape[0] - low):
        if (upper >> bit) & 1:
            joined[low + bit] = True
            for size in range(num_sizes):
                pseudo_counts[low, size] /= cardinalities[low + bit]
    num_cells[low] = occupied_cells(codes, cardinalities, joined, cells[low], room.scratch, room.lookup)
    out[0] = _dirichlet(cells[low], num_cells[low], table, pseudo_counts[low], room)
    level_of = np.full(low + 1, low)  # where the cells that bit t has to refine are stored
    for subset in range(1, 1 << low):
        t = 0
        while not (subset >> t) & 1:
            t += 1
        source = level_of[t + 1]
        num_cells[t] = _refine(cells[source], codes[t], np.int64(cardinalities[t]), cells[t], room.lookup)
        for size in range(num_sizes):
            pseudo_counts[t, size] = pseudo_counts[source, size] / cardinalities[t]
        out[subset] = _dirichlet(cells[t], num_cells[t], table, pseudo_counts[t], room)
        level_of[: t + 1] = t
