"""The prior of the parameters of a network, as a score says it: what tables are drawn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.errors import ScoreError
from gflowdag.score.edge_factors import EdgeFactors

if TYPE_CHECKING:
    from gflowdag.score.bdeu import BDeu


class RegressionPrior(NamedTuple):
    """Normal-Wishart prior of continuous columns, with scale matrix `t I`."""

    alpha_mu: float
    degrees: float  # α_w − d
    scale: float  # t
    mean: NDArray[np.float64]  # [d], of each column; those of discrete ones do not count


class ParameterPrior(NamedTuple):
    """What a score takes for granted about the parameters of the columns of a table."""

    normal: RegressionPrior
    dirichlet: BDeu | None = None  # None where none is discrete
    deviation: float | None = None  # of logistic slopes; None where no discrete column has any
    edge_factors: EdgeFactors = EdgeFactors()  # of the structure prior


@runtime_checkable
class HasParameterPrior(Protocol):
    """A score whose prior tables can be drawn from."""

    def parameter_prior(self, is_discrete: NDArray[np.bool_], /) -> ParameterPrior:
        """The prior for columns of these kinds, bool [d]; refuses kinds that the score is not for."""
        ...


def regression_prior(
    is_discrete: NDArray[np.bool_],
    alpha_mu: float,
    alpha_w: float | None,
    scale: float | None = None,
    mean: ArrayLike = 0.0,
) -> RegressionPrior:
    """The normal-Wishart prior of the continuous columns, with the usual values for what is None."""
    d = int((~is_discrete).sum())
    degrees = 2.0 if alpha_w is None else alpha_w - d
    if not degrees > 1:
        raise ScoreError(f"alpha_w = {alpha_w} must exceed d + 1 = {d + 1}.")
    usual = alpha_mu * (degrees - 1) / (alpha_mu + 1)
    means = np.broadcast_to(np.asarray(mean, np.float64), is_discrete.shape)
    return RegressionPrior(alpha_mu, degrees, usual if scale is None else scale, means)


def no_parameter_prior(score: object) -> ScoreError:
    """The refusal of a score that has no prior to draw from, or not for such columns."""
    return ScoreError(
        f"{score!r} has no prior on the parameters of such columns to draw from: take BGe where all are "
        "continuous, BDeu where all are discrete, ConditionalGaussian or GeneralizedLinear for any."
    )
