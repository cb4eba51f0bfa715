"""Whether parallel chains agree: rank-normalised split R-hat and effective sample sizes.

The definitions are those of Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), as ArviZ computes them, for
many quantities at once: draws are [chains, draws, ...], answers [...]. Two draws that differ by no more than
rounding are equal: ranks would magnify rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from gflowdag.runtime.ranks import mean_ranks

MAXIMAL_R_HAT = 1.05  # chains have not mixed above this
MINIMAL_EFFECTIVE_SAMPLES = 400  # below this R-hat and ESS themselves are noise
MAXIMAL_ERROR = 0.01  # of an edge probability, so that two runs differ by less than 0.05 in every edge
MOVING = 0.01  # standard deviation from which on an edge probability varies, and its R-hat means anything
FEWEST_DRAWS = 4  # of each chain, for an R-hat
FEWEST_CHAINS = 4  # Vehtari et al. 2021
FEWEST_SCATTERED_CHAINS = 60  # that stay where they end: a share of 0.05 elsewhere shows in 95 of 100 cases
_ROUNDING = 1e-10  # in units of the largest draw
_FEWEST_LAGGED = 4  # draws of half a chain, for autocorrelations
_COVERED = 0.975  # two errors to either side cover 0.95
_FEWEST_DEGREES = 2.0  # those of an error that one part of one chain accounts for


def rank_r_hat(chains: ArrayLike) -> NDArray[np.float64]:
    """Rank-normalised split R-hat, the larger of that of location and that of spread.

    1 where all draws are equal: that says something only where the chains started far apart. Infinite where
    every chain is constant and they differ.
    """
    halves = _halves(_rankable(chains))
    if np.asarray(chains).dtype == bool:  # of two values, ranks and deviations say what the values say
        return _r_hat(halves)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.fmax(_r_hat(_normal_scores(halves)), _r_hat(_normal_scores(folded)))


def bulk_ess(chains: ArrayLike) -> NDArray[np.float64]:
    """Effective sample size of the rank-normalised draws; all draws count where they are equal."""
    halves = _halves(_rankable(chains))
    return _ess(halves if np.asarray(chains).dtype == bool else _normal_scores(halves))


def tail_ess(chains: ArrayLike) -> NDArray[np.float64]:
    """The smaller effective sample size of the 5 % and the 95 % quantile."""
    draws = _rankable(chains)
    low, high = np.quantile(draws, [0.05, 0.95], axis=(0, 1))
    return np.minimum(
        _ess(_halves((draws <= low).astype(float))), _ess(_halves((draws <= high).astype(float)))
    )


def mean_error(chains: ArrayLike) -> NDArray[np.float64]:
    """Monte Carlo standard error of the mean of all draws."""
    draws = _draws(chains)
    return draws.std(axis=(0, 1), ddof=1) / np.sqrt(_ess(_halves(draws)))


def stated_error(chains: ArrayLike) -> NDArray[np.float64]:
    """Monte Carlo standard error of the mean, larger where that error is itself known from little.

    Half the width of the interval of 95 % by Student's t, in units of a normal standard error: two of these
    errors cover 95 % however few the visits are that show how much the draws vary.
    """
    return mean_error(chains) * stdtrit(_degrees_of_freedom(chains), _COVERED) / ndtri(_COVERED)


def _degrees_of_freedom(chains: ArrayLike) -> NDArray[np.float64]:
    """Those of the squared error of the mean, after Welch and Satterthwaite.

    Each half of a chain has its own estimate of the long-run variance. By their spread the mean of these `m`
    has `2 mean² / (variance / m)` degrees: about twice the number of visits where few visits to another mode
    make up the variance.
    """
    halves = _halves(_draws(chains))
    num_halves, num_draws = halves.shape[:2]
    if num_draws < _FEWEST_LAGGED:  # nor is the error itself known
        return np.full(halves.shape[2:], np.inf)
    covariance = _autocovariance(halves - halves.mean(axis=(0, 1)))
    rho = _autocorrelation(halves)
    last = 2 * _num_pairs(rho)  # lags before this one count, as they do for the effective sample size
    lags = np.arange(num_draws).reshape(-1, *[1] * (halves.ndim - 2))
    counted = np.where(lags < last, np.where(lags == 0, 1.0, 2.0), 0.0)
    variances = (covariance * counted).sum(axis=1)
    mean, spread = variances.mean(axis=0), variances.var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = 2 * num_halves * np.square(mean) / spread
    return np.where(spread > 0, np.maximum(degrees, _FEWEST_DEGREES), np.inf)


def varies(chains: ArrayLike) -> NDArray[np.bool_]:
    """Whether the draws of all chains differ at all, but for rounding."""
    return _varies(_draws(chains), axis=(0, 1))


def _draws(chains: ArrayLike) -> NDArray[np.float64]:
    draws = np.asarray(chains, np.float64)
    if draws.ndim < 2 or draws.shape[1] < FEWEST_DRAWS:
        raise ValueError(
            f"need chains of at least {FEWEST_DRAWS} draws, shape [chains, draws, ...]; got {draws.shape}"
        )
    return draws


def _rankable(chains: ArrayLike) -> NDArray[np.float64]:
    """The draws, equal where they differ by rounding alone."""
    draws = _draws(chains)
    if np.asarray(chains).dtype == bool:
        return draws
    flat = draws.reshape(draws.shape[0] * draws.shape[1], -1)
    order = flat.argsort(axis=0)
    ascending = np.take_along_axis(flat, order, axis=0)
    is_new = np.diff(ascending, axis=0) > _ROUNDING * np.abs(ascending).max(axis=0)
    ascending[1:][~is_new] = -np.inf
    out = np.empty_like(flat)
    np.put_along_axis(out, order, np.maximum.accumulate(ascending, axis=0), axis=0)
    return out.reshape(draws.shape)


def _halves(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Every chain as two; the middle draw of an odd number is left out."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]], axis=0)


def _normal_scores(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Normal quantiles of the ranks among the draws of all chains."""
    flat = draws.reshape(draws.shape[0] * draws.shape[1], -1)
    return ndtri((mean_ranks(flat) - 0.375) / (len(flat) + 0.25)).reshape(draws.shape)


def _r_hat(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    num_draws = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    between = draws.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = np.sqrt((num_draws - 1) / num_draws + between / within)
    within_varies = _varies(draws, axis=1).any(axis=0)
    return np.where(within_varies, r_hat, np.where(_varies(draws, axis=(0, 1)), np.inf, 1.0))


def _ess(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Geyer's initial monotone sequence on the autocorrelation averaged over chains."""
    num_chains, num_draws = draws.shape[:2]
    total = num_chains * num_draws
    if num_draws < _FEWEST_LAGGED:
        return np.full(draws.shape[2:], np.nan)
    size = total / np.maximum(_correlation_time(_autocorrelation(draws)), 1 / np.log10(total))
    return np.where(_varies(draws, axis=(0, 1)), size, total)


def _autocovariance(centred: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of every chain by lag, [chains, draws, ...]."""
    num_draws = centred.shape[1]
    length = 2 ** int(np.ceil(np.log2(2 * num_draws)))
    spectrum = np.fft.rfft(centred, n=length, axis=1)
    return np.fft.irfft(np.abs(spectrum) ** 2, n=length, axis=1)[:, :num_draws] / num_draws


def _autocorrelation(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """By lag, [draws, ...], averaged over chains and lower by as much as the chains differ in their mean."""
    num_chains, num_draws = draws.shape[:2]
    covariance = _autocovariance(draws - draws.mean(axis=1, keepdims=True)).mean(axis=0)
    within = covariance[0] * num_draws / (num_draws - 1)
    pooled = covariance[0] + (draws.mean(axis=1).var(axis=0, ddof=1) if num_chains > 1 else 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1 - (within - covariance) / pooled
    rho[0] = 1.0
    return rho


def _pair_sums(rho: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the pairs of lags (0, 1), (2, 3) … that are looked at."""
    num_pairs = (len(rho) - 1) // 2
    return rho[: 2 * num_pairs].reshape(num_pairs, 2, *rho.shape[1:]).sum(axis=1)


def _num_pairs(rho: NDArray[np.float64]) -> NDArray[np.intp]:
    """How many pairs there are before the first that is not positive."""
    positive = np.cumprod(_pair_sums(rho) > 0, axis=0).astype(bool)
    positive[0], positive[-1] = True, len(positive) == 1
    return positive.sum(axis=0)


def _correlation_time(rho: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of autocorrelations [draws, ...] until their pairs turn negative, made monotone."""
    pairs, number = _pair_sums(rho), _num_pairs(rho)
    counted = np.arange(len(pairs)).reshape(-1, *[1] * number.ndim) < number
    monotone = np.where(counted, np.minimum.accumulate(pairs, axis=0), 0.0).sum(axis=0)
    # Of the pair at which the sum stops, the first half counts once where it is positive.
    following = np.minimum(2 * number, len(rho) - 1)
    last = np.take_along_axis(rho, following[None], axis=0)[0]
    return -1 + 2 * monotone + np.maximum(last, 0.0)


def _varies(draws: NDArray[np.float64], axis: int | tuple[int, int]) -> NDArray[np.bool_]:
    """Whether draws differ by more than rounding."""
    return np.ptp(draws, axis=axis) > _ROUNDING * np.maximum(np.abs(draws).max(axis=(0, 1)), 1e-300)
