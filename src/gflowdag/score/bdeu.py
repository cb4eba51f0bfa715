"""BDeu: the Bayesian Dirichlet equivalent uniform score (Buntine 1991; Heckerman et al. 1995)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gflowdag.data.cells import distinct_rows
from gflowdag.errors import ScoreError
from gflowdag.runtime.compiled import compiled
from gflowdag.runtime.keywords import named_parameters
from gflowdag.runtime.place import option
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.threads import map_threads
from gflowdag.score.cell_limit import CellLimit, cell_limit
from gflowdag.score.conjugate import DiscreteParameters
from gflowdag.score.local_score import positive
from gflowdag.score.parameter_prior import ParameterPrior, no_parameter_prior, regression_prior
from gflowdag.score.set_function import SetFunctionScore, row_groups

if TYPE_CHECKING:
    from gflowdag.data import Dataset
    from gflowdag.score.discrete_cells import DiscreteCells

_SMALL = 64  # counts below this read log-gamma ratios from a table


NO_CELL_LIMIT = (
    "Nothing limits the cells of a variable with its parents: large parent sets look good in pure noise, so "
    "edges may be spurious."
)


class _Counts(NamedTuple):
    """The distinct rows of a table."""

    codes: NDArray[np.int32]  # [d, u]
    counts: NDArray[np.int64]  # [u]


@named_parameters
@dataclass(frozen=True, kw_only=True)
class BDeu:
    """Discrete networks under Dirichlet priors, for discrete columns.

    Args:
        ess: equivalent sample size, in rows; of several, each is equally likely and they are averaged out.
        cells_per_row: a family of three or more variables has at most so many cells for each row that
            counts; None for no limit, under which tables of independent columns have edges by the dozen.
        edge_factor: every edge multiplies the structure prior by it. Below 1, because averaging sample sizes
            out favours edges: two independent columns each pay for not knowing the size, a connected pair
            pays once.
    """

    ess: float | tuple[float, ...] = (1.0, 4.0, 16.0)
    cells_per_row: float | None = 1.0
    edge_factor: float = 0.25

    def __post_init__(self) -> None:
        given: list[object] = np.atleast_1d(np.asarray(self.ess, object)).tolist()
        if not given:
            raise ScoreError("ess must be a positive number or several, not an empty list.")
        first, *others = (positive("ess", size) for size in given)
        object.__setattr__(self, "ess", (first, *others) if others else first)
        if self.cells_per_row is not None:
            object.__setattr__(self, "cells_per_row", positive("cells_per_row", self.cells_per_row))
        object.__setattr__(self, "edge_factor", positive("edge_factor", self.edge_factor))

    def bind(self, data: Dataset, /) -> BDeuLikelihood:
        """The score of a table of discrete columns."""
        return BDeuLikelihood(data, self)

    def missing_cells(self, data: Dataset, /) -> DiscreteCells:
        """Draws of the missing cells of a table of discrete columns."""
        from gflowdag.score.discrete_cells import DiscreteCells

        return DiscreteCells(data, self)

    def parameter_prior(self, is_discrete: NDArray[np.bool_], /) -> ParameterPrior:
        """The prior of the parameters, for discrete columns."""
        if not is_discrete.all():
            raise no_parameter_prior(self)
        return ParameterPrior(regression_prior(is_discrete, 1.0, None), self)


class BDeuLikelihood(SetFunctionScore):
    """Discrete networks under Dirichlet priors with the equivalent sample size spread over all cells.

    `M_ess(S) = lnΓ(ess) − lnΓ(N + ess) + Σ_cells lnΓ(count + ess/q) − lnΓ(ess/q)` over the occupied cells of
    the contingency table of `S`, with `q` its number of cells: only distinct rows are ever counted, so that
    many levels cost nothing.
    Several sample sizes are averaged out within the set function, `M(S) = log mean_ess exp M_ess(S)`: each
    `exp M_ess` is a normalised likelihood of the columns `S` whose sum over one column is that of the others,
    hence so is their mean, and scores stay equivalent.
    """

    def __init__(self, data: Dataset, parameters: BDeu):
        """Collapse the data to distinct rows; nothing else of it is kept."""
        if not data.is_discrete:
            continuous = [
                name for name, kind in zip(data.names, data.kinds, strict=True) if kind == "continuous"
            ]
            raise ScoreError(
                f"score 'bdeu' needs discrete columns, but {continuous} are continuous: cut them into bins "
                f"({option('discretize', 'quantile')}), or use {option('score', 'bge')} where all are "
                "continuous."
            )
        self.num_variables = data.num_variables
        self.parameters = parameters
        self.edge_factor = parameters.edge_factor
        self.ess = np.atleast_1d(np.asarray(parameters.ess, np.float64))
        self.cardinalities = np.asarray(data.cardinalities, np.float64)
        self.group_of_node, rows = row_groups(data.intervened, data.num_rows, data.num_variables)
        codes = data.values.astype(np.int32)
        self._counts = [_distinct_rows(codes[kept]) for kept in rows]
        self._log_weights = [log_weights(self.ess, int(kept.sum())) for kept in rows]
        self._rows_of_node = rows.sum(axis=1)[self.group_of_node].astype(np.float64)

    def cell_limit(self, required: NDArray[np.bool_]) -> CellLimit | None:
        if self.parameters.cells_per_row is None:
            return None
        rows = self.parameters.cells_per_row * self._rows_of_node
        return cell_limit(self.cardinalities, rows, required)

    @property
    def notes(self) -> tuple[str, ...]:
        sizes, cells = [f"{size:g}" for size in self.ess], self.parameters.cells_per_row
        size = sizes[0] if len(sizes) == 1 else "averaged over " + ", ".join(sizes)
        if cells is None:
            limit = NO_CELL_LIMIT
        else:
            most = "as rows" if cells == 1 else f"as {cells:g} times the rows"
            limit = f"A variable with two or more parents has, with them, at most as many cells {most}"
            everywhere = len(set(self._rows_of_node)) == 1
            limit += f" ({cells * self._rows_of_node[0]:.0f})." if everywhere else " that count for it."
        if self.edge_factor != 1:
            limit += f" Each edge multiplies the prior by {self.edge_factor:g}."
        return (f"Discrete columns are scored by BDeu, equivalent sample size {size}. {limit}",)

    @property
    def cautions(self) -> tuple[str, ...]:
        return () if self.parameters.cells_per_row is not None else (NO_CELL_LIMIT,)

    @property
    def parameter_posterior(self) -> DiscreteParameters:
        (distinct, of_all), *groups = self._counts
        counts = np.stack([of_all, *(_counts_among(distinct, group) for group in groups)])
        return DiscreteParameters(
            distinct,
            counts,
            self.cardinalities.astype(np.int64),
            self.ess,
            self.group_of_node,
        )

    def log_marginals(self, group: int, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
        codes, counts = self._counts[group]
        weights = self._log_weights[group]
        subsets = np.ascontiguousarray(subsets, bool)
        return _log_marginals(codes, counts, self.cardinalities, self.ess, weights, subsets)

    def extended_log_marginals(self, group: int, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
        codes, counts = self._counts[group]
        subsets = np.ascontiguousarray(subsets, bool)
        weights = self._log_weights[group]
        return _extended_log_marginals(codes, counts, self.cardinalities, self.ess, weights, subsets)

    def all_log_marginals(
        self, group: int, variables: NDArray[np.integer[Any]], progress: Progress = silent
    ) -> NDArray[np.float64]:
        k = len(variables)
        low = max(k - 6, 0)  # the upper bits are split among threads
        out = np.empty((1 << (k - low), 1 << low))

        def fill(upper: int) -> None:
            self.fill_log_marginals(group, variables, low, upper, out[upper])

        map_threads(fill, range(len(out)), progress)
        return out.reshape(-1)

    def local_blocks(
        self, node: int, candidates: NDArray[np.integer[Any]], beside: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Two passes for each set, over the rows that are distinct in its columns and the candidates."""
        k, group = len(candidates), int(self.group_of_node[node])
        columns, counts = self._counts[group]
        weights = self._log_weights[group]
        out, without = np.empty((len(beside), 1 << k)), np.empty(1 << k)
        for others, block in zip(beside, out, strict=True):
            variables = np.concatenate([candidates, np.flatnonzero(others), [node]])
            cardinalities = self.cardinalities[variables]
            codes, of_rows = _collapsed(columns[variables], counts, cardinalities)
            everything = (1 << len(variables) - k) - 1
            _all_log_marginals(codes, of_rows, cardinalities, self.ess, weights, k, everything, block)
            everything >>= 1  # the node is the last bit
            _all_log_marginals(codes, of_rows, cardinalities, self.ess, weights, k, everything, without)
            block -= without
        return out

    def fill_log_marginals(
        self,
        group: int,
        variables: NDArray[np.integer[Any]],
        low: int,
        upper: int,
        out: NDArray[np.float64],
    ) -> None:
        """`M` of all subsets of the first `low` variables, joined to the set `upper` of the others."""
        columns, counts = self._counts[group]
        codes, cardinalities = columns[variables], self.cardinalities[variables]
        weights = self._log_weights[group]
        _all_log_marginals(codes, counts, cardinalities, self.ess, weights, low, upper, out)


def log_weights(ess: NDArray[np.float64], num_rows: int) -> NDArray[np.float64]:
    """Log of the share of each sample size times `Γ(ess) / Γ(N + ess)`, which cancels where there is one."""
    if len(ess) == 1:
        return np.zeros(1)
    return gammaln(ess) - gammaln(num_rows + ess) - np.log(len(ess))


def _counts_among(distinct: NDArray[np.int32], group: _Counts) -> NDArray[np.int64]:
    """How often each of the `distinct` rows [d, u] of the table is in a group of its rows, [u]."""
    both = np.concatenate([distinct.T, group.codes.T])
    _, inverse = np.unique(both, axis=0, return_inverse=True)
    u = distinct.shape[1]
    counts = np.zeros(u, np.int64)
    place = np.empty(u, np.int64)
    place[inverse.reshape(-1)[:u]] = np.arange(u)
    counts[place[inverse.reshape(-1)[u:]]] = group.counts
    return counts


def _distinct_rows(codes: NDArray[np.int32]) -> _Counts:
    rows, counts = distinct_rows(codes)
    return _Counts(np.ascontiguousarray(rows.T), counts)


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
    pseudo_counts: NDArray[np.float64],
    log_weights: NDArray[np.float64],
    totals: NDArray[np.int64],
    small: NDArray[np.float64],
) -> float:
    """`Σ_cells lnΓ(n + a) − lnΓ(a)`, as the log of the weighted sum of its exponential over several `a`.

    Most cells are small, so their terms come from the table `small` [len(pseudo_counts), _SMALL].
    """
    totals[:num_cells] = 0
    for row in range(counts.shape[0]):
        totals[cell_of_row[row]] += counts[row]
    total = -math.inf
    for place in range(pseudo_counts.shape[0]):
        value = float(log_weights[place]) + _log_rising(
            totals[:num_cells], pseudo_counts[place], small[place]
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
def _scratch(
    cardinalities: NDArray[np.float64], num_rows: int, num_sizes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Room for `lookup` of `_refine`, and for `totals` and `small` of `_dirichlet`."""
    lookup = np.full(lookup_size(cardinalities, num_rows), -1, np.int64)
    return lookup, np.empty(max(num_rows, 1), np.int64), np.empty((num_sizes, _SMALL))


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
            scratch[:] = cells
            num_cells = _refine(scratch, codes[variable], np.int64(cardinalities[variable]), cells, lookup)
    return num_cells


@compiled
def _collapsed(
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
def _log_marginals(
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    cardinalities: NDArray[np.float64],
    ess: NDArray[np.float64],
    log_weights: NDArray[np.float64],
    subsets: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """`M(S)` of given subsets, bool [m, d] -> [m]."""
    num_rows = counts.shape[0]
    out = np.empty(subsets.shape[0])
    cells = np.empty(num_rows, np.int64)
    scratch = np.empty(num_rows, np.int64)
    lookup, totals, small = _scratch(cardinalities, num_rows, ess.shape[0])
    for row in range(subsets.shape[0]):
        num_cells = occupied_cells(codes, cardinalities, subsets[row], cells, scratch, lookup)
        pseudo_count = ess / np.prod(cardinalities[subsets[row]])
        out[row] = _dirichlet(cells, num_cells, counts, pseudo_count, log_weights, totals, small)
    return out


@compiled
def _extended_log_marginals(
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    cardinalities: NDArray[np.float64],
    ess: NDArray[np.float64],
    log_weights: NDArray[np.float64],
    subsets: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """`M(S ∪ i)` of given subsets and every variable, bool [m, d] -> [m, d]."""
    m, d = subsets.shape
    num_rows = counts.shape[0]
    out = np.empty((m, d))
    cells = np.empty(num_rows, np.int64)
    scratch = np.empty(num_rows, np.int64)
    lookup, totals, small = _scratch(cardinalities, num_rows, ess.shape[0])
    for row in range(m):
        num_cells = occupied_cells(codes, cardinalities, subsets[row], cells, scratch, lookup)
        pseudo_count = ess / np.prod(cardinalities[subsets[row]])
        own = _dirichlet(cells, num_cells, counts, pseudo_count, log_weights, totals, small)
        for variable in range(d):
            if subsets[row, variable]:
                out[row, variable] = own
                continue
            cardinality = cardinalities[variable]
            occupied = _refine(cells, codes[variable], np.int64(cardinality), scratch, lookup)
            out[row, variable] = _dirichlet(
                scratch, occupied, counts, pseudo_count / cardinality, log_weights, totals, small
            )
    return out


@compiled
def _all_log_marginals(
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    cardinalities: NDArray[np.float64],
    ess: NDArray[np.float64],
    log_weights: NDArray[np.float64],
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
    pseudo_counts = np.empty((low + 1, ess.shape[0]))
    pseudo_counts[:] = ess
    lookup, totals, small = _scratch(cardinalities, num_rows, ess.shape[0])
    scratch = np.empty(num_rows, np.int64)
    for bit in range(codes.shape[0] - low):
        if (upper >> bit) & 1:
            cardinality = np.int64(cardinalities[low + bit])
            scratch[:] = cells[low]
            num_cells[low] = _refine(scratch, codes[low + bit], cardinality, cells[low], lookup)
            pseudo_counts[low] /= cardinalities[low + bit]
    out[0] = _dirichlet(cells[low], num_cells[low], counts, pseudo_counts[low], log_weights, totals, small)
    level_of = np.full(low + 1, low)  # where the cells that bit t has to refine are stored
    for subset in range(1, 1 << low):
        t = 0
        while not (subset >> t) & 1:
            t += 1
        source = level_of[t + 1]
        num_cells[t] = _refine(cells[source], codes[t], np.int64(cardinalities[t]), cells[t], lookup)
        pseudo_counts[t] = pseudo_counts[source] / cardinalities[t]
        out[subset] = _dirichlet(cells[t], num_cells[t], counts, pseudo_counts[t], log_weights, totals, small)
        level_of[: t + 1] = t
