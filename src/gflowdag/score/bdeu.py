"""BDeu: the Bayesian Dirichlet equivalent uniform score (Buntine 1991; Heckerman et al. 1995)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gflowdag.data.cells import distinct_rows
from gflowdag.errors import ScoreError
from gflowdag.runtime.keywords import named_parameters
from gflowdag.runtime.place import option
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.threads import map_threads
from gflowdag.score.cell_limit import CellLimit, cell_limit
from gflowdag.score.conjugate import DiscreteParameters
from gflowdag.score.contingency import (
    CountedRows,
    collapsed,
    log_marginals_of,
    log_marginals_of_all,
    log_marginals_of_extended,
)
from gflowdag.score.edge_factors import BY_KINDS, EdgeFactors
from gflowdag.score.local_score import positive
from gflowdag.score.parameter_prior import ParameterPrior, no_parameter_prior, regression_prior
from gflowdag.score.set_function import SetFunctionScore, row_groups

if TYPE_CHECKING:
    from gflowdag.data import Dataset
    from gflowdag.score.discrete_cells import DiscreteCells

NO_CELL_LIMIT = (
    "Nothing limits the cells of a variable with its parents: large parent sets look good in pure noise, so "
    "edges may be spurious."
)


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
    edge_factor: float = BY_KINDS.within_discrete

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
        edges = EdgeFactors(within_discrete=self.edge_factor)
        return ParameterPrior(regression_prior(is_discrete, 1.0, None), self, edge_factors=edges)


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
        self._tables = [
            CountedRows(
                *_distinct_rows(codes[kept]),
                self.cardinalities,
                self.ess,
                log_weights(self.ess, int(kept.sum())),
            )
            for kept in rows
        ]
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
        first, *groups = self._tables
        counts = np.stack([first.counts, *(_counts_among(first.codes, group) for group in groups)])
        return DiscreteParameters(
            first.codes,
            counts,
            self.cardinalities.astype(np.int64),
            self.ess,
            self.group_of_node,
        )

    def log_marginals(self, group: int, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
        return log_marginals_of(self._tables[group], np.ascontiguousarray(subsets, bool))

    def extended_log_marginals(self, group: int, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
        return log_marginals_of_extended(self._tables[group], np.ascontiguousarray(subsets, bool))

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
        table = self._tables[group]
        out, without = np.empty((len(beside), 1 << k)), np.empty(1 << k)
        for others, block in zip(beside, out, strict=True):
            variables = np.concatenate([candidates, np.flatnonzero(others), [node]])
            cardinalities = self.cardinalities[variables]
            codes, of_rows = collapsed(table.codes[variables], table.counts, cardinalities)
            own = CountedRows(codes, of_rows, cardinalities, self.ess, table.log_weights)
            everything = (1 << len(variables) - k) - 1
            log_marginals_of_all(own, k, everything, block)
            log_marginals_of_all(own, k, everything >> 1, without)  # the node is the last bit
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
        table = self._tables[group]
        of_variables = {"codes": table.codes[variables], "cardinalities": self.cardinalities[variables]}
        log_marginals_of_all(table._replace(**of_variables), low, upper, out)


def log_weights(ess: NDArray[np.float64], num_rows: int) -> NDArray[np.float64]:
    """Log of the share of each sample size times `Γ(ess) / Γ(N + ess)`, which cancels where there is one."""
    if len(ess) == 1:
        return np.zeros(1)
    return gammaln(ess) - gammaln(num_rows + ess) - np.log(len(ess))


def _counts_among(distinct: NDArray[np.int32], group: CountedRows) -> NDArray[np.int64]:
    """How often each of the `distinct` rows [d, u] of the table is in a group of its rows, [u]."""
    both = np.concatenate([distinct.T, group.codes.T])
    _, inverse = np.unique(both, axis=0, return_inverse=True)
    u = distinct.shape[1]
    counts = np.zeros(u, np.int64)
    place = np.empty(u, np.int64)
    place[inverse.reshape(-1)[:u]] = np.arange(u)
    counts[place[inverse.reshape(-1)[u:]]] = group.counts
    return counts


def _distinct_rows(codes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    rows, counts = distinct_rows(codes)
    return np.ascontiguousarray(rows.T), counts
