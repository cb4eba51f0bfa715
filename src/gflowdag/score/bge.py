"""BGe: the Bayesian Gaussian equivalent score (Geiger & Heckerman 1994; Kuipers et al. 2014)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gflowdag.errors import ScoreError
from gflowdag.runtime.compiled import compiled
from gflowdag.runtime.keywords import named_parameters
from gflowdag.runtime.place import option
from gflowdag.runtime.progress import Progress, silent
from gflowdag.score.conjugate import GaussianParameters
from gflowdag.score.local_score import positive
from gflowdag.score.normal_wishart import NormalWishart
from gflowdag.score.parameter_prior import ParameterPrior, no_parameter_prior, regression_prior
from gflowdag.score.set_function import SetFunctionScore, row_groups

if TYPE_CHECKING:
    from gflowdag.data import Dataset
    from gflowdag.score.gaussian_cells import GaussianCells

MAX_ROUNDING = 0.01  # nats that a local score may lose where columns are far from the prior mean


@named_parameters
@dataclass(frozen=True, kw_only=True)
class BGe:
    """Linear-Gaussian networks under a normal-Wishart prior, for continuous columns.

    The prior of the mean has strength `alpha_mu` around `prior_mean`, that of the precision matrix `alpha_w`
    degrees of freedom and scale matrix `t I`.

    Args:
        alpha_mu: strength of the prior mean, in rows.
        alpha_w: degrees of freedom of the Wishart prior, more than `d + 1` (None: `d + 2`).
        scale: prior scale `t` (None: `α_μ (α_w − d − 1) / (α_μ + 1)`).
        prior_mean: prior mean, a number or one for each column.
    """

    alpha_mu: float = 1.0
    alpha_w: float | None = None
    scale: float | None = None
    prior_mean: float | Sequence[float] = 0.0

    def __post_init__(self) -> None:
        for name in ("alpha_mu", "alpha_w", "scale"):
            value = getattr(self, name)
            if value is not None or name == "alpha_mu":
                object.__setattr__(self, name, positive(name, value))
        object.__setattr__(self, "prior_mean", _checked_mean(self.prior_mean))

    def bind(self, data: Dataset, /) -> BGeLikelihood:
        """The score of a table of continuous columns."""
        return BGeLikelihood(data, self)

    def missing_cells(self, data: Dataset, /) -> GaussianCells:
        """Draws of the missing cells of a table of continuous columns."""
        from gflowdag.score.gaussian_cells import GaussianCells

        return GaussianCells(data, self)

    def parameter_prior(self, is_discrete: NDArray[np.bool_], /) -> ParameterPrior:
        """The prior of the parameters, for continuous columns."""
        if is_discrete.any():
            raise no_parameter_prior(self)
        return ParameterPrior(
            regression_prior(is_discrete, self.alpha_mu, self.alpha_w, self.scale, self.prior_mean)
        )


class BGeLikelihood(SetFunctionScore):
    """BGe of one table; nothing of it is kept but its summary, the normal-Wishart posterior."""

    def __init__(self, data: Dataset, parameters: BGe):
        if not data.is_continuous:
            discrete = [name for name, kind in zip(data.names, data.kinds, strict=True) if kind == "discrete"]
            of_discrete = f"use {option('score', 'bdeu')}"
            if data.is_mixed:
                of_discrete += (
                    f" with bins ({option('discretize', 'quantile')}), or name a score for both kinds "
                    "('generalized-linear', 'conditional-gaussian', 'degenerate-gaussian')"
                )
            raise ScoreError(
                f"score 'bge' needs continuous columns, but {discrete} are discrete: take them as "
                f"measurements ({option('continuous', discrete)}), or {of_discrete}."
            )
        self.num_variables = data.num_variables
        self.group_of_node, rows = row_groups(data.intervened, data.num_rows, data.num_variables)
        self._posterior = normal_wishart_posterior(
            data.values, data.names, parameters, rows, self.group_of_node
        )

    @property
    def normal_wishart(self) -> NormalWishart:
        return self._posterior

    @property
    def parameter_posterior(self) -> GaussianParameters:
        return GaussianParameters(self._posterior.scatter, self._posterior.degrees, self.group_of_node)

    def log_marginals(self, group: int, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
        scatter, scale = self._posterior.scatter[group], self._posterior.scale
        log_determinants = log_minors(scatter, np.ascontiguousarray(subsets, bool), scale)
        return self._posterior.log_marginals(group, subsets.sum(axis=1), log_determinants)

    def all_log_marginals(
        self, group: int, variables: NDArray[np.integer[Any]], progress: Progress = silent
    ) -> NDArray[np.float64]:
        matrix = self._posterior.scatter[group][np.ix_(variables, variables)]
        sizes = np.bitwise_count(np.arange(1 << len(variables), dtype=np.uint32))
        return self._posterior.log_marginals(group, sizes, all_log_minors(matrix, self._posterior.scale))


def normal_wishart_posterior(
    values: NDArray[np.float64],
    names: Sequence[str],
    parameters: BGe,
    rows: NDArray[np.bool_],
    group_of_node: NDArray[np.int64],
) -> NormalWishart:
    """The posterior of continuous columns, for each group of rows.

    Args:
        values: float64 [n, d].
        names: of the columns, for error texts.
        parameters: of the prior.
        rows: the rows of each group, bool [g, n].
        group_of_node: int [number of nodes].
    """
    d = values.shape[1]
    alpha_mu = parameters.alpha_mu
    alpha_w = float(d + 2) if parameters.alpha_w is None else parameters.alpha_w
    if not alpha_w > d + 1:
        raise ScoreError(f"alpha_w = {alpha_w} must exceed d + 1 = {d + 1}.")
    usual = alpha_mu * (alpha_w - d - 1) / (alpha_mu + 1)
    scale = usual if parameters.scale is None else parameters.scale
    mean = np.asarray(parameters.prior_mean, np.float64)
    if mean.shape not in ((), (d,)):
        raise ScoreError(f"prior_mean must be one number, or one for each of {d} columns, not {mean.size}.")
    scatter = np.stack([_posterior_scale(values[kept], names, alpha_mu, scale, mean) for kept in rows])
    num_rows = rows.sum(axis=1).astype(float)
    constants = np.stack([_constants(n, d, alpha_mu, alpha_w, scale) for n in num_rows])
    return NormalWishart(scatter, num_rows + alpha_w - d, constants, scale, group_of_node)


def _checked_mean(prior_mean: object) -> float | tuple[float, ...]:
    """The prior mean as one number, or as one for each column."""
    try:
        mean = np.asarray(prior_mean, float)
    except (TypeError, ValueError) as error:
        raise ScoreError(f"prior_mean must be numbers, got {prior_mean!r}.") from error
    if mean.ndim > 1 or not np.isfinite(mean).all():
        raise ScoreError(f"prior_mean must be a finite number, or one for each column; got {prior_mean!r}.")
    return tuple(mean.tolist()) if mean.ndim else float(mean)


def _posterior_scale(
    values: NDArray[np.float64],
    names: Sequence[str],
    alpha_mu: float,
    scale: float,
    prior_mean: NDArray[np.float64],
) -> NDArray[np.float64]:
    """`R = tI + S_N + (N α_μ / (N + α_μ)) (x̄ − ν)(x̄ − ν)ᵀ`, [d, d].

    Raises:
        ScoreError: a column is so far from the prior mean that its scatter is lost in rounding.
    """
    n, d = values.shape
    if n == 0:
        return scale * np.eye(d)
    mean = values.mean(axis=0)
    centred, shift = values - mean, mean - prior_mean
    own = scale * np.eye(d) + centred.T @ centred
    weight = n * alpha_mu / (n + alpha_mu)
    # R_jj is rounded to ε w (x̄_j − ν_j)², and a score has ½ N log of what the parents of a column leave of
    # it, in units in which all columns are alike: no less than all others leave.
    left = _left_by_others(own, scale)
    rounding = np.finfo(float).eps * n * weight * shift**2 / left
    if rounding.max() > MAX_ROUNDING:
        worst = int(rounding.argmax())
        raise ScoreError(
            f"Column {names[worst]!r} lies {shift[worst]:.3g} from the prior mean, but given the other "
            f"columns its standard deviation is only {np.sqrt(left[worst] / n):.3g}: its BGe score would be "
            "rounding error. Standardise the table (standardize=True), or subtract a constant from the "
            "column."
        )
    return own + weight * np.outer(shift, shift)


def _left_by_others(own: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """What all other columns leave of each column's `t + S_N`, one over the diagonal of the inverse, [d]."""
    unit = np.sqrt(np.diagonal(own))
    try:
        left = unit**2 / np.diagonal(np.linalg.inv(own / np.outer(unit, unit)))
    except np.linalg.LinAlgError:  # fewer rows than columns, and `t` is lost beside them
        return np.full(len(unit), scale)
    return np.maximum(left, scale)


def _constants(n: float, d: int, alpha_mu: float, alpha_w: float, scale: float) -> NDArray[np.float64]:
    """`c_l` for `l = 0 … d − 1` parents."""
    l = np.arange(d)
    free = alpha_w - d + l + 1
    return (
        0.5 * np.log(alpha_mu / (n + alpha_mu))
        + gammaln(0.5 * (n + free))
        - gammaln(0.5 * free)
        - 0.5 * n * np.log(np.pi)
        + 0.5 * (free + l) * np.log(scale)
    )


@compiled
def all_log_minors(matrix: NDArray[np.float64], floor: float) -> NDArray[np.float64]:
    """Log determinants of all `2^k` principal minors of `matrix` [k, k], by one walk of Schur complements.

    Counting upwards, the step to `S` sets bit `t` and clears those below: pivot `t` is swept out of the Schur
    complement that the bits above `t` left behind, and only the `t × t` block below it is needed. Half of the
    steps have `t = 0`, so that a minor costs O(1) on average. `floor` bounds every pivot from below.
    """
    k = matrix.shape[0]
    out = np.empty(1 << k)
    out[0] = 0.0
    complements = np.empty((k + 1, k, k))  # level t: Schur complement of bits below t
    for a in range(k):  # not `complements[k] = matrix`: numba compiles words about unequal shapes for seconds
        for b in range(k):
            complements[k, a, b] = matrix[a, b]
    level_of = np.full(k + 1, k)  # where the complement that bit t has to use is stored
    for subset in range(1, 1 << k):
        t = 0
        while not (subset >> t) & 1:
            t += 1
        source = complements[level_of[t + 1]]
        pivot = max(source[t, t], floor)
        out[subset] = out[subset & (subset - 1)] + np.log(pivot)
        if t > 0:
            swept = complements[t]
            for a in range(t):
                ratio = source[a, t] / pivot
                for b in range(a + 1):
                    swept[a, b] = source[a, b] - ratio * source[b, t]
                    swept[b, a] = swept[a, b]
            level_of[: t + 1] = t
        # Bits below t are clear: they read from level t until one of them is set.
    return out


@compiled
def log_minors(matrix: NDArray[np.float64], subsets: NDArray[np.bool_], floor: float) -> NDArray[np.float64]:
    """Log determinants of the principal minors `subsets`, bool [m, d] -> [m], by Cholesky factors."""
    m, d = subsets.shape
    out = np.empty(m)
    factor = np.empty((d, d))
    members = np.empty(d, np.int64)
    for row in range(m):
        size = 0
        log_determinant = 0.0
        for variable in range(d):
            if not subsets[row, variable]:
                continue
            pivot = matrix[variable, variable]
            for b in range(size):
                entry = matrix[variable, members[b]]
                for c in range(b):
                    entry -= factor[size, c] * factor[b, c]
                entry /= factor[b, b]
                factor[size, b] = entry
                pivot -= entry * entry
            pivot = max(pivot, floor)
            log_determinant += np.log(pivot)
            factor[size, size] = np.sqrt(pivot)
            members[size] = variable
            size += 1
        out[row] = log_determinant
    return out
