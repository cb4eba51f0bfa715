"""The posterior of a network's parameters given its graph, where the score is conjugate: draws of them.

Both classes hold what a table says about parameters and nothing else of it, so that a posterior over graphs
can answer for effects without the table. Parameters of different nodes are independent given the graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, softmax

from gflowdag.errors import TooLargeError

if TYPE_CHECKING:
    from gflowdag.score.mixed_parameters import MixedParameters

MAX_CELLS = 1 << 22  # of one conditional table
_AT_ONCE = 1 << 22  # cells of conditional tables drawn at a time
_KEPT = 1 << 12  # regressions


@dataclass(frozen=True, eq=False)
class GaussianParameters:
    """Linear-Gaussian networks under the normal-Wishart prior of BGe.

    Attributes:
        scatter: posterior scale matrix R of each group of rows, [g, d, d].
        degrees: ν' = N + α_w − d of each group, [g].
        group_of_node: which rows count for each node, [d].
    """

    scatter: NDArray[np.float64]
    degrees: NDArray[np.float64]
    group_of_node: NDArray[np.int64]

    def draw_coefficients(
        self, node: int, parents: Sequence[int], size: int, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Coefficients of the regression of `node` on its `parents` [l], in coded units: [size, l]."""
        if not len(parents):
            return np.zeros((size, 0))
        return self.draw_regressions(node, parents, size, rng)[0]

    def draw_regressions(
        self, node: int, parents: Sequence[int], size: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The same coefficients [size, l], and the standard deviations of the noise [size].

        With `Σ ~ IW(R, ν)` on node and parents, `ν = ν' + l + 1`: the residual variance is `R_{j|P} / χ²_ν`,
        and given it the coefficients are normal around `R_PP⁻¹ R_Pj` with covariance `σ² R_PP⁻¹`.
        """
        inverse, whitened, residual, freedom = _regression(self, node, tuple(parents))
        deviation = np.sqrt(residual / rng.chisquare(freedom, size))
        noise = rng.normal(size=(size, len(whitened))) * deviation[:, None]
        return (whitened + noise) @ inverse, deviation

    def mean_regression(self, node: int, parents: Sequence[int]) -> tuple[NDArray[np.float64], float]:
        """Posterior means of the coefficients [l] and of the variance of the noise."""
        inverse, whitened, residual, freedom = _regression(self, node, tuple(parents))
        return whitened @ inverse, residual / (freedom - 2)


@lru_cache(_KEPT)  # many graphs share a family, and are asked again and again
def _regression(
    parameters: GaussianParameters, node: int, parents: tuple[int, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float]:
    """`L⁻¹` for the root L of `R_PP = L Lᵀ`, `L⁻¹ R_Pj`, `R_{j|P}` and the degrees of freedom."""
    group = parameters.group_of_node[node]
    scatter, chosen = parameters.scatter[group], np.array(parents, dtype=np.int64)
    root = np.asarray(np.linalg.cholesky(scatter[chosen[:, None], chosen]), np.float64)
    whitened = np.asarray(np.linalg.solve(root, scatter[chosen, node]), np.float64)
    residual = float(scatter[node, node] - whitened @ whitened)
    freedom = float(parameters.degrees[group]) + len(parents) + 1
    return np.asarray(np.linalg.inv(root), np.float64), whitened, residual, freedom


@dataclass(frozen=True, eq=False)
class DiscreteParameters:
    """Discrete networks under the Dirichlet priors of BDeu.

    Attributes:
        codes: the distinct rows, [d, u].
        counts: how often each is in each group of rows, [g, u].
        cardinalities: number of levels, [d].
        ess: equivalent sample sizes, equally likely, [k].
        group_of_node: which rows count for each node, [d].
    """

    codes: NDArray[np.int32]
    counts: NDArray[np.int64]
    cardinalities: NDArray[np.int64]
    ess: NDArray[np.float64]
    group_of_node: NDArray[np.int64]

    def draw_table(
        self, node: int, parents: Sequence[int], size: int, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Probabilities of the levels of `node` given its `parents` [l]: float64 [size, r_1, …, r_l, r_node].

        Of several equivalent sample sizes each draw takes one, by its posterior: in proportion to the
        marginal likelihood of the columns of node and parents.
        """
        counts, likely = self._counts(node, parents)
        shape, cells = tuple(int(r) for r in self.cardinalities[[*parents, node]]), counts.size
        ess = self.ess[rng.choice(len(self.ess), size, p=likely)]
        tables = np.empty((size, *counts.shape))
        step = max(_AT_ONCE // cells, 1)
        for start in range(0, size, step):
            part = slice(start, start + step)
            alpha = counts + (ess[part] / cells)[:, None, None]
            tables[part] = softmax(log_dirichlet(alpha, rng), axis=-1)
        return tables.reshape(size, *shape)

    def mean_table(self, node: int, parents: Sequence[int]) -> NDArray[np.float64]:
        """Posterior means of the same probabilities: float64 [r_1, …, r_l, r_node]."""
        counts, likely = self._counts(node, parents)
        mean = np.zeros_like(counts)
        for ess, weight in zip(self.ess, likely, strict=True):
            alpha = counts + ess / counts.size
            mean += weight * alpha / alpha.sum(axis=-1, keepdims=True)
        return mean.reshape([int(r) for r in self.cardinalities[[*parents, node]]])

    def _counts(self, node: int, parents: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How often each level of `node` occurs with each configuration of its parents, [q, r].

        And how probable each equivalent sample size is, by these counts.
        """
        shape = tuple(int(r) for r in self.cardinalities[[*parents, node]])
        cells = math.prod(shape)
        if cells > MAX_CELLS:
            raise TooLargeError(
                f"A variable with {len(parents)} parents has a table of {cells:,} cells, too many to draw "
                "from: bound the parents by knowledge (max_parents), or keep the limit of BDeu on cells."
            )
        cell = np.ravel_multi_index(tuple(self.codes[[*parents, node]]), shape)
        weights = self.counts[self.group_of_node[node]]
        found = np.bincount(cell, weights, minlength=cells).astype(np.float64).reshape(-1, shape[-1])
        return found, softmax([_log_marginal(found, size) for size in self.ess])


ConjugateParameters: TypeAlias = GaussianParameters | DiscreteParameters
ParameterPosterior: TypeAlias = "ConjugateParameters | MixedParameters"


def _log_marginal(counts: NDArray[np.float64], ess: float) -> float:
    """Log marginal likelihood of columns with these counts of cells under one equivalent sample size."""
    each = ess / counts.size
    occupied = counts[counts > 0]
    return float(
        gammaln(ess) - gammaln(ess + counts.sum()) + (gammaln(occupied + each) - gammaln(each)).sum()
    )


def log_dirichlet(alpha: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Draws from Dirichlet distributions along the last axis, each up to a factor.

    In logs, since `alpha` may be tiny.
    """
    return np.log(rng.standard_gamma(alpha + 1)) + np.log1p(-rng.random(alpha.shape)) / alpha
