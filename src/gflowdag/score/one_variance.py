"""A linear regression in every cell of the discrete parents, with one variance of the noise for all cells.

With `l` continuous parents the variance is `t / χ²(ν)`, `ν = α_w − d + l + 1`; given it, each cell has slopes
and an intercept of its own, normal around zero with `σ²/t` and `σ²/α_μ`. With one cell that is BGe. Let `R_c`
be the posterior scale matrix of the `n_c` rows of cell `c`, and `s_c = |R_c,P∪j| / |R_c,P|`. The marginal
likelihood is

    Γ((N + ν)/2) / Γ(ν/2) · π^(−N/2) · t^(ν/2) · (t + Σ_c (s_c − t))^(−(N + ν)/2)
        · Π_c [α_μ/(n_c + α_μ) · tˡ/|R_c,P|]^½

Why not a variance for each cell: where a column has heavy tails, the variances of cells differ by far more
than a normal distribution allows. With shuffled columns of real tables that made edges of probability one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gflowdag.runtime.compiled import compiled
from gflowdag.score.bge import all_log_minors, log_minors
from gflowdag.score.conditional_gaussian import posterior_scale, rows_by_cell
from gflowdag.score.subsets import member_sums

if TYPE_CHECKING:
    from gflowdag.score.parameter_prior import RegressionPrior


class OneVariance(NamedTuple):
    """The columns of the rows that count for some nodes.

    Attributes:
        codes: of the discrete columns, int32 [d', n].
        numbers: of the continuous ones, float64 [d'', n].
        cardinalities: float64 [d'].
        prior: of the regressions, with prior mean zero.
    """

    codes: NDArray[np.int32]
    numbers: NDArray[np.float64]
    cardinalities: NDArray[np.float64]
    prior: RegressionPrior

    def of_sets(
        self, node: int, discrete: NDArray[np.bool_], continuous: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Log marginal likelihoods of a continuous column, [m].

        Args:
            node: its place among the continuous columns.
            discrete: parents among the discrete columns, bool [d'].
            continuous: sets of parents among the continuous ones, bool [m, d''].
        """
        order, starts = rows_by_cell(self.codes, self.cardinalities, discrete)
        found = _of_sets(
            np.ascontiguousarray(self.numbers.T), order, starts, continuous, node, *self._parameters
        )
        return self._likelihood(continuous.sum(axis=1), *found)

    def of_all(
        self, node: int, discrete: NDArray[np.bool_], continuous: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The same for every subset of some `continuous` columns, int [k] -> [2^k]."""
        order, starts = rows_by_cell(self.codes, self.cardinalities, discrete)
        values = np.ascontiguousarray(self.numbers[np.append(continuous, node)].T)
        sizes = member_sums(np.ones(len(continuous), np.int64))
        return self._likelihood(sizes, *_of_all(values, order, starts, sizes, *self._parameters))

    @property
    def _parameters(self) -> tuple[float, float]:
        return self.prior.alpha_mu, self.prior.scale

    def _likelihood(
        self, sizes: NDArray[np.int64], of_cells: NDArray[np.float64], left: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """From the factors of the cells, and the sum of squares that the regressions leave, both [m]."""
        n, scale = self.numbers.shape[1], self.prior.scale
        free = self.prior.degrees + sizes + 1
        return (
            of_cells
            + gammaln(0.5 * (n + free))
            - gammaln(0.5 * free)
            - 0.5 * n * math.log(math.pi)
            + 0.5 * free * math.log(scale)
            - 0.5 * (n + free) * np.log(scale + left)
        )


@compiled
def _of_sets(
    values: NDArray[np.float64],
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    sets: NDArray[np.bool_],
    node: int,
    alpha_mu: float,
    scale: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Factors of the cells and `Σ_c (s_c − t)` for given sets of parents, bool [m, d] -> [m], [m]."""
    m, d = sets.shape
    factors, left = np.zeros(m), np.zeros(m)
    families = sets.copy()
    families[:, node] = True
    matrix = np.empty((d, d))
    for cell in range(len(starts) - 1):
        n = starts[cell + 1] - starts[cell]
        posterior_scale(values, order[starts[cell] : starts[cell + 1]], alpha_mu, scale, matrix)
        of_parents = log_minors(matrix, sets, scale)
        of_family = log_minors(matrix, families, scale)
        for row in range(m):
            size = sets[row].sum()
            factors[row] += 0.5 * (
                math.log(alpha_mu / (n + alpha_mu)) + size * math.log(scale) - of_parents[row]
            )
            left[row] += math.exp(of_family[row] - of_parents[row]) - scale
    return factors, left


@compiled
def _of_all(
    values: NDArray[np.float64],
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    alpha_mu: float,
    scale: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same for the last of the columns [n, k + 1] and every subset of the others: [2^k], [2^k]."""
    num_sets, d = len(sizes), values.shape[1]
    factors, left = np.zeros(num_sets), np.zeros(num_sets)
    matrix = np.empty((d, d))
    for cell in range(len(starts) - 1):
        n = starts[cell + 1] - starts[cell]
        posterior_scale(values, order[starts[cell] : starts[cell + 1]], alpha_mu, scale, matrix)
        minors = all_log_minors(matrix, scale)
        for subset in range(num_sets):
            factors[subset] += 0.5 * (
                math.log(alpha_mu / (n + alpha_mu)) + sizes[subset] * math.log(scale) - minors[subset]
            )
            left[subset] += math.exp(minors[num_sets + subset] - minors[subset]) - scale
    return factors, left
