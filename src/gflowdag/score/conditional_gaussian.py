"""Conditional Gaussian networks (Lauritzen; Bøttcher 2001): BDeu for discrete columns, BGe in every cell.

Given its parents, a continuous column is a linear regression on the continuous ones, with coefficients and
variance of its own in every cell of the discrete ones. A discrete column has a probability table and cannot
have a continuous parent: such edges are forbidden. So the direction of an edge between a discrete and a
continuous column is assumed, never learnt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gflowdag.errors import ScoreError
from gflowdag.runtime.compiled import compiled
from gflowdag.runtime.keywords import named_parameters
from gflowdag.runtime.messages import shown
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.threads import map_threads
from gflowdag.score.bdeu import BDeu
from gflowdag.score.bge import MAX_ROUNDING, all_log_minors, log_minors
from gflowdag.score.cell_limit import CellLimit, cell_limit
from gflowdag.score.contingency import lookup_size, occupied_cells
from gflowdag.score.local_score import positive
from gflowdag.score.parameter_prior import ParameterPrior, regression_prior
from gflowdag.score.set_function import SetFunctionScore, row_groups
from gflowdag.score.subsets import member_sums

if TYPE_CHECKING:
    from gflowdag.data import Dataset
    from gflowdag.score.mixed_cells import MixedCells


@named_parameters
@dataclass(frozen=True, kw_only=True)
class ConditionalGaussian:
    """Conditional Gaussian networks, for tables with continuous and discrete columns.

    No discrete variable has a continuous parent. Every cell of the discrete parents has the same
    normal-Wishart prior, with mean zero and scale matrix `t I`, `t = α_μ (α_w − d − 1) / (α_μ + 1)`, where
    `d` is the number of continuous columns.

    Args:
        ess: equivalent sample size of the discrete part, in rows, as in `BDeu`.
        cells_per_row: limit on the cells of discrete variables in a family, as in `BDeu`.
        alpha_mu: strength of the prior mean in each cell, in rows.
        alpha_w: degrees of freedom of the Wishart prior in each cell, more than `d + 1` (None: `d + 2`).
    """

    ess: float | tuple[float, ...] = (1.0, 4.0, 16.0)
    cells_per_row: float | None = 1.0
    alpha_mu: float = 1.0
    alpha_w: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ess", self.discrete_part.ess)
        object.__setattr__(self, "cells_per_row", self.discrete_part.cells_per_row)
        object.__setattr__(self, "alpha_mu", positive("alpha_mu", self.alpha_mu))
        if self.alpha_w is not None:
            object.__setattr__(self, "alpha_w", positive("alpha_w", self.alpha_w))

    @property
    def discrete_part(self) -> BDeu:
        """The score of the discrete columns."""
        return BDeu(ess=self.ess, cells_per_row=self.cells_per_row, edge_factor=1.0)

    def bind(self, data: Dataset, /) -> ConditionalGaussianLikelihood:
        """The score of a table with columns of both kinds."""
        return ConditionalGaussianLikelihood(data, self)

    def missing_cells(self, data: Dataset, /) -> MixedCells:
        """Draws of the missing cells of a table with columns of both kinds."""
        from gflowdag.score.generalized_linear import GeneralizedLinear
        from gflowdag.score.mixed_cells import MixedCells

        regressions = GeneralizedLinear(
            ess=self.ess, cells_per_row=self.cells_per_row, alpha_mu=self.alpha_mu, alpha_w=self.alpha_w
        )
        return MixedCells(data, regressions, own_variances=True)

    def parameter_prior(self, is_discrete: NDArray[np.bool_], /) -> ParameterPrior:
        """The prior of the parameters, for columns of any kinds."""
        dirichlet = self.discrete_part if is_discrete.any() else None
        return ParameterPrior(regression_prior(is_discrete, self.alpha_mu, self.alpha_w), dirichlet)


class ConditionalGaussianLikelihood(SetFunctionScore):
    """`M(S) = BDeu(discrete columns of S) + Σ_cells BGe(continuous columns of S | rows of the cell)`.

    The prior of a cell depends on the discrete columns alone, so that the score of a continuous node is a
    difference of two `M`, and graphs of one equivalence class that have no forbidden edge score alike.
    """

    def __init__(self, data: Dataset, parameters: ConditionalGaussian):
        is_discrete = np.array([kind == "discrete" for kind in data.kinds])
        discrete, continuous = np.flatnonzero(is_discrete), np.flatnonzero(~is_discrete)
        self.num_variables = data.num_variables
        self.group_of_node, rows = row_groups(data.intervened, data.num_rows, data.num_variables)
        self.forbidden_edges = ~is_discrete[:, None] & is_discrete
        self._place = np.where(is_discrete, np.cumsum(is_discrete), np.cumsum(~is_discrete)) - 1
        self._is_discrete = is_discrete
        self._names = np.array(data.names, object)
        part = replace(
            data,
            columns=tuple(data.columns[j] for j in discrete),
            values=data.values[:, discrete],
            intervened=None,
            knowledge=None,
        )
        self._dirichlet = [parameters.discrete_part.bind(part.take(kept)) for kept in rows]
        self._cardinalities = np.asarray(part.cardinalities, np.float64)
        self._cells = [
            _Cells(
                np.ascontiguousarray(part.values[kept].T, np.int32),
                np.ascontiguousarray(data.values[kept][:, continuous]),
                self._cardinalities,
                parameters,
            )
            for kept in rows
        ]
        _check_location(data, continuous, self._cells[0])
        self._cells_per_row = parameters.cells_per_row
        self._rows_of_node = rows.sum(axis=1)[self.group_of_node].astype(np.float64)
        self._levels = np.where(is_discrete, data.cardinalities, 1.0)

    def cell_limit(self, required: NDArray[np.bool_]) -> CellLimit | None:
        if self._cells_per_row is None:
            return None
        return cell_limit(self._levels, self._cells_per_row * self._rows_of_node, required)

    @property
    def cautions(self) -> tuple[str, ...]:
        return self._dirichlet[0].cautions if self._is_discrete.any() else ()

    @property
    def discrete_notes(self) -> tuple[str, ...]:
        """How discrete columns are scored, if there are any."""
        return self._dirichlet[0].notes if self._is_discrete.any() else ()

    @property
    def notes(self) -> tuple[str, ...]:
        discrete, continuous = self._names[self._is_discrete], self._names[~self._is_discrete]
        of_levels = self.discrete_notes
        if not len(discrete) or not len(continuous):
            return of_levels
        return (
            *of_levels,
            "Direction assumed: the score conditional-gaussian gives no discrete variable "
            f"({shown(discrete)}) a continuous parent ({shown(continuous)}). Where two such variables are "
            "connected, the edge points to the continuous one in every graph; other directions may follow "
            "from that. The data did not decide them.",
        )

    def log_marginals(self, group: int, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
        subsets = np.asarray(subsets, bool)
        discrete = np.ascontiguousarray(subsets[:, self._is_discrete])
        continuous = np.ascontiguousarray(subsets[:, ~self._is_discrete])
        out = self._dirichlet[group].log_marginals(0, discrete)
        groups, group_of_subset = np.unique(discrete, axis=0, return_inverse=True)
        for number, chosen in enumerate(groups):  # subsets with the same cells
            mine = group_of_subset.reshape(-1) == number
            out[mine] += self._cells[group].of_subsets(chosen, continuous[mine])
        return out

    def all_log_marginals(
        self, group: int, variables: NDArray[np.integer[Any]], progress: Progress = silent
    ) -> NDArray[np.float64]:
        is_discrete, place = self._is_discrete[variables], self._place[variables]
        discrete, continuous = place[is_discrete], place[~is_discrete]
        out = np.empty((1 << len(discrete), 1 << len(continuous)))
        out[:] = self._dirichlet[group].all_log_marginals(0, discrete)[:, None]

        def fill(subset: int) -> None:
            chosen = np.zeros(len(self._cardinalities), bool)
            chosen[discrete[(subset >> np.arange(len(discrete)) & 1).astype(bool)]] = True
            out[subset] += self._cells[group].of_all(chosen, continuous)

        if len(continuous):
            map_threads(fill, range(len(out)), progress)
        bits = 1 << np.arange(len(variables))
        index = member_sums(bits[is_discrete])[:, None] | member_sums(bits[~is_discrete])
        result = np.empty(out.size)
        result[index] = out
        return result


class _Cells:
    """The continuous part of `M(S)` on the rows of one group."""

    def __init__(
        self,
        codes: NDArray[np.int32],
        values: NDArray[np.float64],
        cardinalities: NDArray[np.float64],
        parameters: ConditionalGaussian,
    ):
        """`codes` [d of the discrete columns, n] and `values` [n, d of the continuous ones]."""
        d = values.shape[1]
        alpha_w = float(d + 2) if parameters.alpha_w is None else parameters.alpha_w
        if not alpha_w > d + 1:
            raise ScoreError(
                f"alpha_w = {alpha_w} must exceed d + 1 = {d + 1}, where d is the number of continuous "
                "columns."
            )
        self.alpha_mu = parameters.alpha_mu
        self.scale = self.alpha_mu * (alpha_w - d - 1) / (self.alpha_mu + 1)
        self._prior = (self.alpha_mu, alpha_w - d, self.scale)
        self._codes, self._values, self._cardinalities = codes, values, cardinalities

    def of_subsets(self, chosen: NDArray[np.bool_], subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Of given sets of continuous columns, bool [m, d] -> [m], in the cells of `chosen` discrete ones."""
        order, starts = rows_by_cell(self._codes, self._cardinalities, chosen)
        return _sum_over_cells(self._values, order, starts, subsets, *self._prior)

    def of_all(self, chosen: NDArray[np.bool_], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of every subset of `columns` [k] -> [2^k], in the cells of `chosen` discrete columns."""
        order, starts = rows_by_cell(self._codes, self._cardinalities, chosen)
        return _sum_over_cells_of_all(self._values[:, columns], order, starts, *self._prior)


def _check_location(data: Dataset, continuous: NDArray[np.int64], cells: _Cells) -> None:
    """Refuse columns so far from zero, the prior mean, that rounding would decide their score in a cell."""
    n, alpha_mu = data.num_rows, cells.alpha_mu
    for column in continuous:
        largest = float(np.abs(data.values[:, column]).max())
        # A cell may hold copies of one value: then nothing but the prior scale is left of its scatter.
        if np.finfo(float).eps * n * n * alpha_mu / (n + alpha_mu) * largest**2 / cells.scale > MAX_ROUNDING:
            raise ScoreError(
                f"Column {data.names[column]!r} has values up to {largest:.3g}, too far from the prior mean "
                "0: rounding would decide its score. Standardise the table (standardize=True)."
            )


@compiled
def rows_by_cell(
    codes: NDArray[np.int32], cardinalities: NDArray[np.float64], chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows ordered by cell, [n], and where each occupied cell starts, [cells + 1]."""
    num_rows = codes.shape[1]
    cells = np.empty(num_rows, np.int64)
    scratch = np.empty(num_rows, np.int64)
    lookup = np.full(lookup_size(cardinalities, num_rows), -1, np.int64)
    num_cells = occupied_cells(codes, cardinalities, chosen, cells, scratch, lookup)
    starts = np.zeros(num_cells + 1, np.int64)
    for row in range(num_rows):
        starts[cells[row] + 1] += 1
    starts = starts.cumsum()
    filled = starts.copy()
    order = np.empty(num_rows, np.int64)
    for row in range(num_rows):
        order[filled[cells[row]]] = row
        filled[cells[row]] += 1
    return order, starts


@compiled
def posterior_scale(
    values: NDArray[np.float64],
    rows: NDArray[np.int64],
    alpha_mu: float,
    scale: float,
    out: NDArray[np.float64],
) -> None:
    """`R = tI + S_n + (n α_μ / (n + α_μ)) x̄ x̄ᵀ` of the `rows`, into `out` [d, d]."""
    n, d = len(rows), values.shape[1]
    mean = np.zeros(d)
    for row in rows:
        for a in range(d):
            mean[a] += values[row, a] / n
    weight = n * alpha_mu / (n + alpha_mu)
    for a in range(d):
        for b in range(a + 1):
            total = weight * mean[a] * mean[b]
            for row in rows:
                total += (values[row, a] - mean[a]) * (values[row, b] - mean[b])
            out[a, b] = total
            out[b, a] = total
        out[a, a] += scale


@compiled
def _constant_sums(n: int, alpha_mu: float, degrees: float, scale: float, out: NDArray[np.float64]) -> None:
    """What `M` of `0 … d` columns has beside the determinant, for a cell of `n` rows, into `out` [d + 1].

    `degrees` is `α_w − d`; the terms are the constants of BGe.
    """
    out[0] = 0.0
    for l in range(len(out) - 1):
        free = degrees + l + 1
        out[l + 1] = (
            out[l]
            + 0.5 * math.log(alpha_mu / (n + alpha_mu))
            + math.lgamma(0.5 * (n + free))
            - math.lgamma(0.5 * free)
            - 0.5 * n * math.log(math.pi)
            + 0.5 * (free + l) * math.log(scale)
        )


@compiled
def _sum_over_cells(
    values: NDArray[np.float64],
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    subsets: NDArray[np.bool_],
    alpha_mu: float,
    degrees: float,
    scale: float,
) -> NDArray[np.float64]:
    """`Σ_cells BGe(S)` of given sets of columns, bool [m, d] -> [m]."""
    m, d = subsets.shape
    out = np.zeros(m)
    matrix = np.empty((d, d))
    constants = np.empty(d + 1)
    for cell in range(len(starts) - 1):
        n = starts[cell + 1] - starts[cell]
        posterior_scale(values, order[starts[cell] : starts[cell + 1]], alpha_mu, scale, matrix)
        _constant_sums(n, alpha_mu, degrees, scale, constants)
        log_determinants = log_minors(matrix, subsets, scale)
        for row in range(m):
            size = subsets[row].sum()
            out[row] += constants[size] - 0.5 * (n + degrees + size) * log_determinants[row]
    return out


@compiled
def _sum_over_cells_of_all(
    values: NDArray[np.float64],
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    alpha_mu: float,
    degrees: float,
    scale: float,
) -> NDArray[np.float64]:
    """`Σ_cells BGe(S)` of every subset of the columns of `values` [n, k] -> [2^k]."""
    k = values.shape[1]
    sizes = np.zeros(1 << k, np.int64)
    for subset in range(1, 1 << k):
        sizes[subset] = sizes[subset & (subset - 1)] + 1
    out = np.zeros(1 << k)
    matrix = np.empty((k, k))
    constants = np.empty(k + 1)
    for cell in range(len(starts) - 1):
        n = starts[cell + 1] - starts[cell]
        posterior_scale(values, order[starts[cell] : starts[cell + 1]], alpha_mu, scale, matrix)
        _constant_sums(n, alpha_mu, degrees, scale, constants)
        log_determinants = all_log_minors(matrix, scale)
        for subset in range(1 << k):
            size = sizes[subset]
            out[subset] += constants[size] - 0.5 * (n + degrees + size) * log_determinants[subset]
    return out
