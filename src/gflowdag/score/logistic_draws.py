"""Draws of the coefficients of a multinomial logistic regression, from its posterior in one cell.

A multivariate t around the most probable coefficients, as wide as Laplace's approximation, proposes; each
proposal is weighed by the posterior density over that of the t, and draws are taken by weight. So the draws
are skewed where the posterior is, as it is for levels that are rare.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from gflowdag.runtime.compiled import compiled
from gflowdag.score.conjugate import log_dirichlet
from gflowdag.score.logistic import LEAST_ROWS, climb, log_posterior

_PROPOSALS = 2000  # of each regression
_FREEDOM = 5.0  # of the t distribution


def draw_coefficients(
    level: NDArray[np.int64],
    x: NDArray[np.float64],
    num_levels: int,
    pseudo_count: float,
    deviation: float,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Log-odds of the levels against the first: intercept and slopes, [size, r, 1 + l].

    Args:
        level: of the rows of one cell, [n].
        x: covariates, [l, n]; they are left out where the score leaves them out.
        num_levels: r.
        pseudo_count: rows of each level that the prior is worth at `x = 0`.
        deviation: prior standard deviation of the slopes.
        size: number of draws.
        rng: source of randomness.
    """
    out = np.zeros((size, num_levels, len(x) + 1))
    if not len(x) or len(level) < LEAST_ROWS:
        counts = np.asarray(np.bincount(level, minlength=num_levels) + pseudo_count, np.float64)
        logs = log_dirichlet(np.broadcast_to(counts, (size, num_levels)), rng)
        out[:, :, 0] = logs - logs[:, :1]
        return out
    design = np.concatenate([np.ones((1, len(level))), x])
    mode, root = _laplace(level, design, num_levels, pseudo_count, deviation)
    steps = rng.normal(size=(_PROPOSALS, mode.size))
    steps *= np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, _PROPOSALS))[:, None]
    proposals = mode.reshape(-1) + np.linalg.solve(root.T, steps.T).T
    heights = _log_posteriors(
        level, design, pseudo_count, deviation, proposals.reshape(_PROPOSALS, *mode.shape)
    )
    heights += 0.5 * (_FREEDOM + mode.size) * np.log1p(np.square(steps).sum(axis=1) / _FREEDOM)
    chosen = rng.choice(_PROPOSALS, size, p=softmax(heights))
    out[:, 1:] = proposals[chosen].reshape(size, *mode.shape)
    return out


def _laplace(
    level: NDArray[np.int64],
    design: NDArray[np.float64],
    num_levels: int,
    pseudo_count: float,
    deviation: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The most probable coefficients [r − 1, k], and the root L of minus the second derivatives `L Lᵀ`."""
    counts = np.bincount(level, minlength=num_levels) + pseudo_count
    mode = np.zeros((num_levels - 1, len(design)))
    mode[:, 0] = np.log(counts[1:] / counts[0])
    hessian = np.empty((mode.size, mode.size))
    climb(level, design, pseudo_count, deviation, mode, hessian)
    lower = np.tril(hessian)
    root = np.linalg.cholesky(lower + np.tril(hessian, -1).T)
    return mode, np.asarray(root, np.float64)


@compiled
def _log_posteriors(
    level: NDArray[np.int64],
    design: NDArray[np.float64],
    pseudo_count: float,
    deviation: float,
    coefficients: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The log posterior of many coefficients [m, r − 1, k], up to a constant, [m]."""
    scratch = np.empty((coefficients.shape[1], design.shape[1]))
    out = np.empty(len(coefficients))
    for number in range(len(out)):
        out[number] = log_posterior(level, design, pseudo_count, deviation, coefficients[number], scratch)
    return out
