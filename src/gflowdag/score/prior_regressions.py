"""Coefficients of regressions from the priors of the scores, in every cell of the discrete parents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gflowdag.score.degenerate_gaussian import contrasts
from gflowdag.score.logistic import LEAST_ROWS
from gflowdag.score.parameter_prior import RegressionPrior


def in_every_cell(
    prior: RegressionPrior,
    node: int,
    parents: NDArray[np.int64],
    count: int,
    rng: np.random.Generator,
    *,
    num_variances: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Intercept and slopes [cells, 1, 1 + l] and the deviation of the noise [cells] in every cell.

    Under the inverse-Wishart with matrix `t I` the variance given l parents is `t / χ²(α_w − d + l + 1)`,
    and slopes and intercept are normal around their prior with `σ²/t` and `σ²/α_μ`.

    Args:
        prior: of the columns.
        node: whose regression it is.
        parents: its continuous parents, int [l].
        count: number of cells.
        rng: source of randomness.
        num_variances: one for each cell, or one for all.
    """
    variance, slopes, noise = _slopes(prior, len(parents), count, rng, num_variances)
    centre = prior.mean[node] - slopes @ prior.mean[parents]
    intercept = centre + noise * np.sqrt(variance / prior.alpha_mu)
    return np.column_stack([intercept, slopes])[:, None, :], np.sqrt(variance)


def with_shifts(
    prior: RegressionPrior,
    values: NDArray[np.float64],
    parents: NDArray[np.bool_],
    num_levels: NDArray[np.int64],
    count: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same of one regression in which levels shift the mean, for columns whose prior mean is 0.

    Its covariates are the contrasts of the levels and the continuous parents.

    Args:
        prior: of the columns.
        values: float64 [n, d], discrete columns hold codes.
        parents: bool [d].
        num_levels: of all columns, int [d], 0 for a continuous one.
        count: number of cells of the discrete parents.
        rng: source of randomness.
    """
    discrete = np.flatnonzero(parents & (num_levels > 0))
    codes = np.stack(np.unravel_index(np.arange(count), num_levels[discrete]))  # of every cell
    blocks: list[NDArray[np.float64]] = []
    for parent, code in zip(discrete, codes, strict=True):
        column = contrasts(values[:, parent])
        of_level = np.zeros((num_levels[parent], column.shape[1]))  # zero where a level does not occur
        of_level[values[:, parent].astype(np.int64)] = column
        blocks.append(of_level[code])
    shifts = np.concatenate(blocks, axis=1)
    num_numbers = int((parents & (num_levels == 0)).sum())
    variance, slopes, noise = _slopes(prior, shifts.shape[1] + num_numbers, 1, rng, 1)
    intercept = shifts @ slopes[0, : shifts.shape[1]] + noise * np.sqrt(variance / prior.alpha_mu)
    numbers = np.broadcast_to(slopes[:, shifts.shape[1] :], (count, num_numbers))
    return np.column_stack([intercept, numbers])[:, None, :], np.full(count, np.sqrt(variance[0]))


def logistic_slopes(
    cell: NDArray[np.int64],
    shape: tuple[int, ...],
    num_parents: int,
    deviation: float,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Coefficients of the log-probability of each level, zero in cells of few rows.

    Args:
        cell: of each row, int [n].
        shape: cells and levels.
        num_parents: continuous parents.
        deviation: of the coefficients.
        rng: source of randomness.

    Returns:
        float64 [cells, levels, num_parents].
    """
    slopes = rng.normal(0.0, deviation, (*shape, num_parents))
    slopes[np.bincount(cell, minlength=shape[0]) < LEAST_ROWS] = 0.0
    return slopes


def _slopes(
    prior: RegressionPrior, size: int, count: int, rng: np.random.Generator, num_variances: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Variances [count], slopes [count, size] around 0, and standard normal numbers for the intercepts."""
    drawn = prior.scale / rng.chisquare(prior.degrees + size + 1, num_variances)
    variance = np.broadcast_to(drawn, count)
    slopes = rng.normal(size=(count, size)) * np.sqrt(variance / prior.scale)[:, None]
    return variance, slopes, rng.normal(size=count)
