"""BDeu: the Bayesian Dirichlet equivalent uniform score (Buntine 1991; Heckerman et al. 1995)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.errors import ScoreError
from gflowdag.runtime.compiled import compiled
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.threads import map_threads
from gflowdag.score.local_score import positive
from gflowdag.score.set_function import SetFunctionScore, row_groups

if TYPE_CHECKING:
    from gflowdag.data import Dataset

_SMALL = 64  # counts below this read log-gamma ratios from a table


class _Counts(NamedTuple):
    """The distinct rows of a table."""

    codes: NDArray[np.int32]  # [d, u]
    counts: NDArray[np.int64]  # [u]


@dataclass(frozen=True, kw_only=True)
class BDeu:
    """Discrete networks under Dirichlet priors, for discrete columns.

    Args:
        ess: equivalent sample size, in rows.
    """

    ess: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "ess", positive("ess", self.ess))

    def bind(self, data: Dataset, /) -> BDeuLikelihood:
        """The score of a table of discrete columns."""
        return BDeuLikelihood(data, self)


class BDeuLikelihood(SetFunctionScore):
    """Discrete networks under Dirichlet priors with the equivalent sample size spread over all cells.

    `M(S) = Σ_cells lnΓ(count + ess/q) − lnΓ(ess/q)` over the occupied cells of the contingency table of `S`,
    with `q` its number of cells: only distinct rows are ever counted, so that many levels cost nothing.
    """

    def __init__(self, data: Dataset, parameters: BDeu):
        """Collapse the data to distinct rows; nothing else of it is kept."""
        if not data.is_discrete:
            continuous = [
                name for name, kind in zip(data.names, data.kinds, strict=True) if kind == "continuous"
            ]
            raise ScoreError(
                f"score 'bde' needs discrete columns, but {continuous} are continuous: discretise them "
                "(discretize='quantile'), or use score='bge' where all columns are continuous."
            )
        self.num_variables = data.num_variables
        self.ess = parameters.ess
        self.cardinalities = np.asarray(data.cardinalities, np.float64)
        self.group_of_node, rows = row_groups(data.intervened, data.num_rows, data.num_variables)
        codes = data.values.astype(np.int32)
        self._counts = [_distinct_rows(codes[kept]) for kept in rows]

    def log_marginals(self, group: int, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
        codes, counts = self._counts[group]
        return _log_marginals(
            codes, counts, self.cardinalities, self.ess, np.ascontiguousarray(subsets, bool)
        )

    def extended_log_marginals(self, group: int, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
        codes, counts = self._counts[group]
        subsets = np.ascontiguousarray(subsets, bool)
        return _extended_log_marginals(codes, counts, self.cardinalities, self.ess, subsets)

    def all_log_marginals(
        self, group: int, variables: NDArray[np.integer[Any]], progress: Progress = silent
    ) -> NDArray[np.float64]:
        k = len(variables)
        columns, counts = self._counts[group]
        codes, cardinalities = columns[variables], self.cardinalities[variables]
        low = max(k - 6, 0)  # the upper bits are split among threads
        out = np.empty((1 << (k - low), 1 << low))

        def fill(upper: int) -> None:
            _all_log_marginals(codes, counts, cardinalities, self.ess, low, upper, out[upper])

        map_threads(fill, range(len(out)), progress)
        return out.reshape(-1)


def _distinct_rows(codes: NDArray[np.int32]) -> _Counts:
    rows, counts = np.unique(codes, axis=0, return_counts=True)
    return _Counts(np.ascontiguousarray(rows.T), counts.astype(np.int64))


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
    counts: NDArray[np.int64],
    pseudo_count: float | np.floating[Any],
    totals: NDArray[np.int64],
    small: NDArray[np.float64],
) -> float:
    """`Σ_cells lnΓ(n + a) − lnΓ(a)`; most cells are small, so their terms come from a table."""
    totals[:num_cells] = 0
    for row in range(counts.shape[0]):
        totals[cell_of_row[row]] += counts[row]
    filled = 1
    small[0] = 0.0
    offset = math.lgamma(pseudo_count)
    value = 0.0
    for cell in range(num_cells):
        n: np.int64 = totals[cell]
        if n < _SMALL:
            while filled <= n:
                small[filled] = small[filled - 1] + math.log(pseudo_count + (filled - 1))
                filled += 1
            value += small[n]
        else:
            value += math.lgamma(n + pseudo_count) - offset
    return value


@compiled
def _lookup_size(cardinalities: NDArray[np.float64], num_rows: int) -> np.int64:
    return np.int64(cardinalities.max() * max(num_rows, 1)) if cardinalities.size else np.int64(1)


@compiled
def _cells(
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
            scratch[:] = cells
            num_cells = _refine(scratch, codes[variable], np.int64(cardinalities[variable]), cells, lookup)
    return num_cells


@compiled
def _log_marginals(
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    cardinalities: NDArray[np.float64],
    ess: float,
    subsets: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """`M(S)` of given subsets, bool [m, d] -> [m]."""
    num_rows = counts.shape[0]
    out = np.empty(subsets.shape[0])
    cells = np.empty(num_rows, np.int64)
    scratch = np.empty(num_rows, np.int64)
    lookup = np.full(_lookup_size(cardinalities, num_rows), -1, np.int64)
    totals = np.empty(max(num_rows, 1), np.int64)
    small = np.empty(_SMALL)
    for row in range(subsets.shape[0]):
        num_cells = _cells(codes, cardinalities, subsets[row], cells, scratch, lookup)
        pseudo_count = ess / np.prod(cardinalities[subsets[row]])
        out[row] = _dirichlet(cells, num_cells, counts, pseudo_count, totals, small)
    return out


@compiled
def _extended_log_marginals(
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    cardinalities: NDArray[np.float64],
    ess: float,
    subsets: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """`M(S ∪ i)` of given subsets and every variable, bool [m, d] -> [m, d]."""
    m, d = subsets.shape
    num_rows = counts.shape[0]
    out = np.empty((m, d))
    cells = np.empty(num_rows, np.int64)
    scratch = np.empty(num_rows, np.int64)
    lookup = np.full(_lookup_size(cardinalities, num_rows), -1, np.int64)
    totals = np.empty(max(num_rows, 1), np.int64)
    small = np.empty(_SMALL)
    for row in range(m):
        num_cells = _cells(codes, cardinalities, subsets[row], cells, scratch, lookup)
        pseudo_count = ess / np.prod(cardinalities[subsets[row]])
        own = _dirichlet(cells, num_cells, counts, pseudo_count, totals, small)
        for variable in range(d):
            if subsets[row, variable]:
                out[row, variable] = own
                continue
            cardinality = cardinalities[variable]
            occupied = _refine(cells, codes[variable], np.int64(cardinality), scratch, lookup)
            out[row, variable] = _dirichlet(
                scratch, occupied, counts, pseudo_count / cardinality, totals, small
            )
    return out


@compiled
def _all_log_marginals(
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    cardinalities: NDArray[np.float64],
    ess: float,
    low: int,
    upper: int,
    out: NDArray[np.float64],
) -> None:
    """`M(S)` of all subsets of the first `low` variables, joined to the set `upper` of the others -> [2^low].

    Counting upwards, the step that sets bit `t` and clears those below refines the cells that the bits above
    `t` left behind: one pass over the distinct rows for each subset.
    """
    num_rows = counts.shape[0]
    cells = np.zeros((low + 1, num_rows), np.int64)
    num_cells = np.ones(low + 1, np.int64)
    pseudo_counts = np.full(low + 1, ess)
    lookup = np.full(_lookup_size(cardinalities, num_rows), -1, np.int64)
    totals = np.empty(max(num_rows, 1), np.int64)
    small = np.empty(_SMALL)
    scratch = np.empty(num_rows, np.int64)
    for bit in range(codes.shape[0] - low):
        if (upper >> bit) & 1:
            cardinality = np.int64(cardinalities[low + bit])
            scratch[:] = cells[low]
            num_cells[low] = _refine(scratch, codes[low + bit], cardinality, cells[low], lookup)
            pseudo_counts[low] /= cardinalities[low + bit]
    out[0] = _dirichlet(cells[low], num_cells[low], counts, pseudo_counts[low], totals, small)
    level_of = np.full(low + 1, low)  # where the cells that bit t has to refine are stored
    for subset in range(1, 1 << low):
        t = 0
        while not (subset >> t) & 1:
            t += 1
        source = level_of[t + 1]
        num_cells[t] = _refine(cells[source], codes[t], np.int64(cardinalities[t]), cells[t], lookup)
        pseudo_counts[t] = pseudo_counts[source] / cardinalities[t]
        out[subset] = _dirichlet(cells[t], num_cells[t], counts, pseudo_counts[t], totals, small)
        level_of[: t + 1] = t
