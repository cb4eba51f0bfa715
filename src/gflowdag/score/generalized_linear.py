"""Generalised linear score: regressions of columns of both kinds, with edges in all directions.

Discrete columns whose parents are discrete have the probability tables of BDeu, continuous columns whose
parents are continuous the regressions of BGe. A discrete column with continuous parents is a multinomial
logistic regression in every cell of its discrete parents. A continuous column with discrete parents is a
linear regression in every cell, or one regression in which the levels shift the mean: either with probability
one half, and with one variance of the noise (`one_variance`). All but the logistic regressions have exact
marginal likelihoods; those have Laplace's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gflowdag.errors import ScoreError
from gflowdag.runtime.messages import shown
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.threads import map_threads
from gflowdag.score.bdeu import BDeu, log_weights
from gflowdag.score.cell_limit import CellLimit
from gflowdag.score.conditional_gaussian import ConditionalGaussian, rows_by_cell
from gflowdag.score.degenerate_gaussian import DegenerateGaussian
from gflowdag.score.edge_factors import BY_KINDS, EdgeFactors
from gflowdag.score.local_score import LocalScore, positive
from gflowdag.score.logistic import all_log_bayes_factors, log_bayes_factors
from gflowdag.score.one_variance import OneVariance
from gflowdag.score.parameter_prior import ParameterPrior, regression_prior
from gflowdag.score.set_function import row_groups
from gflowdag.score.subsets import member_sums

if TYPE_CHECKING:
    from gflowdag.data import Dataset
    from gflowdag.score.mixed_cells import MixedCells
    from gflowdag.score.mixed_parameters import MixedParameters


@dataclass(frozen=True, kw_only=True)
class GeneralizedLinear:
    """Linear and logistic regressions, for tables with continuous and discrete columns.

    Args:
        ess: equivalent sample size of discrete columns, in rows, as in `BDeu`.
        cells_per_row: limit on the cells of discrete variables in a family, as in `BDeu`.
        alpha_mu: strength of the prior mean of continuous columns, as in `BGe`.
        alpha_w: degrees of freedom of their Wishart prior, as in `ConditionalGaussian`.
        deviation: prior standard deviation of the coefficients of the log-probability of each level, for
            covariates as they are in the table: standardised, unless that was turned off. With 4.5 a
            logistic regression on two levels is as strict as the linear one in the other direction.
        edge_factor: every edge multiplies the structure prior by it. None: by a factor for the kinds of its
            ends, ¼ within discrete columns, ⅓ from a discrete to a continuous one and 5/3 the other way.
    """

    ess: float | tuple[float, ...] = (1.0, 4.0, 16.0)
    cells_per_row: float | None = 1.0
    alpha_mu: float = 1.0
    alpha_w: float | None = None
    deviation: float = 4.5
    edge_factor: float | None = None

    def __post_init__(self) -> None:
        cells = self.within_cells
        object.__setattr__(self, "ess", cells.ess)
        object.__setattr__(self, "cells_per_row", cells.cells_per_row)
        object.__setattr__(self, "alpha_mu", cells.alpha_mu)
        object.__setattr__(self, "alpha_w", cells.alpha_w)
        object.__setattr__(self, "deviation", positive("deviation", self.deviation))
        if self.edge_factor is not None:
            object.__setattr__(self, "edge_factor", positive("edge_factor", self.edge_factor))

    @property
    def within_cells(self) -> ConditionalGaussian:
        """The score that families of discrete columns have, with the limit on their cells."""
        return ConditionalGaussian(
            ess=self.ess, cells_per_row=self.cells_per_row, alpha_mu=self.alpha_mu, alpha_w=self.alpha_w
        )

    @property
    def edge_factors(self) -> EdgeFactors:
        """By what edges multiply the structure prior."""
        return BY_KINDS if self.edge_factor is None else EdgeFactors(*[self.edge_factor] * 4)

    def bind(self, data: Dataset, /) -> GeneralizedLinearLikelihood:
        """The score of a table with columns of both kinds."""
        return GeneralizedLinearLikelihood(data, self)

    def missing_cells(self, data: Dataset, /) -> MixedCells:
        """Draws of the missing cells of a table with columns of both kinds."""
        from gflowdag.score.mixed_cells import MixedCells

        return MixedCells(data, self, own_variances=False)

    def parameter_prior(self, is_discrete: NDArray[np.bool_], /) -> ParameterPrior:
        """The prior of the parameters, for columns of any kinds."""
        if self.alpha_w is not None:
            raise ScoreError("Tables of GeneralizedLinear are drawn with alpha_w=None only.")
        prior = self.within_cells.parameter_prior(is_discrete)
        return prior._replace(deviation=self.deviation, edge_factors=self.edge_factors)


class GeneralizedLinearLikelihood(LocalScore):
    """Marginal likelihoods of the regressions.

    With discrete parents `D` and continuous parents `C`, a discrete column `j` scores

        log Σ_e P(e | D) exp[BDeu_e(j | D) + Σ_cells log p_e(j | x_C) / p_e(j)],

    where the sample sizes `e` have the probabilities that BDeu's average over them gives: without `C` it is
    the local score of `BDeu`. For the ratios see `logistic`, for continuous columns `one_variance`.
    """

    uses_interventions = True

    def __init__(self, data: Dataset, parameters: GeneralizedLinear):
        is_discrete = np.array([kind == "discrete" for kind in data.kinds])
        self.num_variables = data.num_variables
        self._data, self._parameters = data, parameters
        self._deviation = parameters.deviation
        self._is_discrete = is_discrete
        self.edge_factor = parameters.edge_factors.of(is_discrete)
        self._place = np.where(is_discrete, np.cumsum(is_discrete), np.cumsum(~is_discrete)) - 1
        self._names = np.array(data.names, object)
        self._within_cells = parameters.within_cells.bind(data)
        self._shifts = DegenerateGaussian(alpha_mu=parameters.alpha_mu, alpha_w=parameters.alpha_w).bind(data)
        self._group_of_node, rows = row_groups(data.intervened, data.num_rows, data.num_variables)
        part = replace(
            data,
            columns=tuple(column for column in data.columns if column.kind == "discrete"),
            values=data.values[:, is_discrete],
            intervened=None,
            knowledge=None,
        )
        self._ess = np.atleast_1d(np.asarray(parameters.ess, np.float64))
        self._dirichlet = [[BDeu(ess=e).bind(part.take(kept)) for e in self._ess.tolist()] for kept in rows]
        self._log_weights = [log_weights(self._ess, int(kept.sum())) for kept in rows]
        self._cardinalities = np.asarray(part.cardinalities, np.float64)
        self._codes = [np.ascontiguousarray(part.values[kept].T, np.int32) for kept in rows]
        self._numbers = [np.ascontiguousarray(data.values[kept][:, ~is_discrete].T) for kept in rows]
        prior = regression_prior(is_discrete, parameters.alpha_mu, parameters.alpha_w)
        self._regressions = [
            OneVariance(codes, numbers, self._cardinalities, prior)
            for codes, numbers in zip(self._codes, self._numbers, strict=True)
        ]

    def cell_limit(self, required: NDArray[np.bool_]) -> CellLimit | None:
        return self._within_cells.cell_limit(required)

    @property
    def cautions(self) -> tuple[str, ...]:
        return self._within_cells.cautions

    @property
    def notes(self) -> tuple[str, ...]:
        discrete, continuous = self._names[self._is_discrete], self._names[~self._is_discrete]
        of_levels = self._within_cells.discrete_notes
        if not len(discrete) or not len(continuous):
            return of_levels
        return (
            *of_levels,
            "Columns of both kinds are scored by generalized-linear: linear regressions of continuous "
            f"columns, multinomial logistic ones of {shown(discrete)}. Directions between the kinds are told "
            "apart by the form of the relation alone: a skewed or two-peaked column can decide them."
            + self._parameters.edge_factors.told,
        )

    @property
    def parameter_posterior(self) -> MixedParameters:
        from gflowdag.score.mixed_parameters import MixedParameters

        return MixedParameters.of(self._data, self._parameters)

    def local(self, node: int, parents: NDArray[np.bool_]) -> NDArray[np.float64]:
        parents = np.asarray(parents, bool)
        discrete, continuous = parents[:, self._is_discrete], parents[:, ~self._is_discrete]
        if not self._is_discrete[node]:
            found = self._in_every_cell(node, discrete, continuous)
            return _mean(found, self._shifts.local(node, parents), discrete)
        found = self._within_cells.local(node, parents)
        logistic = np.flatnonzero(continuous.any(axis=1))
        for mine, chosen in _same_cells(discrete[logistic]):
            found[logistic[mine]] = self._logistic(node, chosen, continuous[logistic[mine]])
        return found

    def local_subsets(self, node: int, candidates: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        candidates = np.asarray(candidates)
        out = self._within_cells.local_subsets(node, candidates)
        shifts = None if self._is_discrete[node] else self._shifts.local_subsets(node, candidates)
        self._complete(node, candidates, out, shifts)
        return out

    def tables(self, progress: Progress = silent) -> NDArray[np.float64]:
        d = self.num_variables
        out, shifts = self._within_cells.tables(), self._shifts.tables()
        for node in range(d):
            self._complete(node, np.delete(np.arange(d), node), out[node], shifts[node])
            progress(node + 1, d)
        return out

    def _complete(
        self,
        node: int,
        candidates: NDArray[np.integer[Any]],
        scores: NDArray[np.float64],
        shifts: NDArray[np.float64] | None,
    ) -> None:
        """Turn the scores within cells of every subset of `candidates`, [2^k], into those of this model."""
        bits = 1 << np.arange(len(candidates))
        is_discrete, own = self._is_discrete[candidates], int(self._place[node])
        discrete = self._place[candidates[is_discrete]]
        continuous = self._place[candidates[~is_discrete]]
        if self._is_discrete[node] and not len(continuous):
            return
        of_discrete, of_continuous = member_sums(bits[is_discrete]), member_sums(bits[~is_discrete])
        regressions = self._regressions[int(self._group_of_node[node])]

        def fill(subset: int) -> None:
            chosen = np.zeros(len(self._cardinalities), bool)
            chosen[discrete[(subset >> np.arange(len(discrete)) & 1).astype(bool)]] = True
            if self._is_discrete[node]:
                found = self._logistic(node, chosen, continuous)
                scores[of_discrete[subset] | of_continuous[1:]] = found[1:]
            else:
                scores[of_discrete[subset] | of_continuous] = regressions.of_all(own, chosen, continuous)

        map_threads(fill, range(len(of_discrete)))
        if not self._is_discrete[node]:
            some = (np.arange(len(scores)) & bits[is_discrete].sum()) != 0
            scores[:] = _mean(scores, shifts, some[:, None])

    def _in_every_cell(
        self, node: int, discrete: NDArray[np.bool_], continuous: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Scores of a continuous node with a regression in every cell of its discrete parents."""
        regressions = self._regressions[int(self._group_of_node[node])]
        found = np.empty(len(discrete))
        for mine, chosen in _same_cells(discrete):
            found[mine] = regressions.of_sets(int(self._place[node]), chosen, continuous[mine])
        return found

    def models(self, node: int, parents: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Log marginal likelihoods of the models of a node that its score averages, weights included.

        Of a discrete node one for each equivalent sample size, [e]. Of a continuous node with discrete
        parents two: a regression in every cell, with one variance for all, and one regression with levels
        that shift the mean; without discrete parents these are one.

        Args:
            node: whose score it is.
            parents: bool [d].
        """
        if self._is_discrete[node]:
            chosen, continuous = parents[self._is_discrete], parents[~self._is_discrete]
            return self._of_sample_sizes(node, chosen, continuous[None])[:, 0]
        discrete, continuous = parents[self._is_discrete], parents[~self._is_discrete]
        in_every_cell = self._in_every_cell(node, discrete[None], continuous[None])
        if not discrete.any():
            return in_every_cell
        return np.append(in_every_cell, self._shifts.local(node, parents[None]))

    def _logistic(
        self, node: int, chosen: NDArray[np.bool_], covariates: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Scores of a discrete node in the cells of `chosen` discrete columns.

        `covariates` are sets of continuous columns, bool [s, m], or columns, int [k], for all their subsets.
        """
        return logsumexp(self._of_sample_sizes(node, chosen, covariates), axis=0)

    def _of_sample_sizes(
        self, node: int, chosen: NDArray[np.bool_], covariates: NDArray[Any]
    ) -> NDArray[np.float64]:
        """The same for each equivalent sample size, with its log weight, [e, s]."""
        group, own = int(self._group_of_node[node]), int(self._place[node])
        r = int(self._cardinalities[own])
        order, starts = rows_by_cell(self._codes[group], self._cardinalities, chosen)
        level = self._codes[group][own][order].astype(np.int64)
        pseudo_counts = self._ess / (np.prod(self._cardinalities[chosen]) * r)
        x = self._numbers[group][:, order]
        if covariates.dtype == bool:
            ratios = log_bayes_factors(
                level, x, starts, r, pseudo_counts, self._deviation, np.ascontiguousarray(covariates)
            )
        else:
            x = np.ascontiguousarray(x[covariates])
            ratios = all_log_bayes_factors(level, x, starts, r, pseudo_counts, self._deviation)
        family = chosen.copy()
        family[own] = True
        sets = np.stack([chosen, family])
        without, with_node = np.concatenate(
            [part.log_marginals(0, sets)[:, None] for part in self._dirichlet[group]], axis=1
        )
        weights = self._log_weights[group] + without
        return (self._log_weights[group] + with_node - logsumexp(weights))[:, None] + ratios


def _same_cells(discrete: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """The places of the sets that have the same discrete parents, and these parents."""
    groups, group_of_set = np.unique(discrete, axis=0, return_inverse=True)
    for number, chosen in enumerate(groups):
        yield np.flatnonzero(group_of_set.reshape(-1) == number), chosen


def _mean(
    in_every_cell: NDArray[np.float64], shifts: NDArray[np.float64] | None, discrete: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Of two models of a continuous column, in logarithms; they are one where it has no discrete parent."""
    assert shifts is not None
    return np.where(discrete.any(axis=1), np.logaddexp(in_every_cell, shifts) - np.log(2), in_every_cell)
