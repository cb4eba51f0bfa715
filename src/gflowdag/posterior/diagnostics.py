"""How far an answer can be trusted: importance weights and parallel chains, as plain NumPy statistics."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

# Below these, importance weights vouch for nothing (Vehtari et al. 2024 for k-hat).
MINIMAL_ESS = 0.01
MAXIMAL_PARETO_K = 0.7
# Chains have not mixed above this (Gelman et al., Bayesian Data Analysis, and Vehtari et al. 2021).
MAXIMAL_R_HAT = 1.05
MINIMAL_EFFECTIVE_SAMPLES = 400  # below this R-hat and ESS themselves are noise


def relative_ess(log_weights: ArrayLike) -> float:
    """Kish's effective sample size of importance weights, as a fraction of their number, in (0, 1]."""
    log_weights = np.asarray(log_weights, dtype=np.float64)
    total, total_of_squares = np.asarray(logsumexp(log_weights)), np.asarray(logsumexp(2 * log_weights))
    return float(np.exp(2 * total - total_of_squares) / log_weights.size)


def pareto_k(log_weights: ArrayLike) -> float:
    """Shape of the generalised Pareto distribution fitted to the largest weights.

    Above 0.7 the weighted estimates are dominated by a few samples and cannot be trusted. Where even the
    largest weight is less than twice the mean there is no tail to speak of, and the answer is −inf. Fitted as
    in Pareto-smoothed importance sampling (Vehtari et al. 2024), by the quasi-Bayesian estimator of Zhang &
    Stephens (2009).
    """
    log_weights = np.sort(np.asarray(log_weights, dtype=np.float64))
    n = log_weights.size
    tail = int(min(np.floor(0.2 * n), np.ceil(3 * np.sqrt(n))))
    if tail < 5 or not np.isfinite(log_weights[-1]):
        return float("nan")
    scaled = np.exp(log_weights - log_weights[-1])
    if scaled.mean() > 0.5:
        return float("-inf")
    exceedances = scaled[-tail:] - scaled[-tail - 1]
    return _generalised_pareto_shape(np.maximum(exceedances, 1e-300))


def _generalised_pareto_shape(x: np.ndarray) -> float:
    n = x.size
    num_grid = 30 + int(np.sqrt(n))
    quartile = x[int(n / 4 + 0.5) - 1]
    grid = 1 - np.sqrt(num_grid / (np.arange(1, num_grid + 1) - 0.5))
    theta = 1 / x[-1] + grid / (3 * quartile)
    shape = np.log1p(-theta[:, None] * x).mean(axis=1)
    log_profile = n * (np.log(-theta / shape) - shape - 1)
    weights = np.exp(log_profile - logsumexp(log_profile))
    best = np.log1p(-np.sum(theta * weights) * x).mean()
    return float((best * n + 0.5 * 10) / (n + 10))  # weak prior towards 0.5, as in PSIS


def importance_summary(log_weights: ArrayLike) -> dict[str, float]:
    """Evidence, its error, effective sample size and Pareto k of unnormalised importance weights.

    Args:
        log_weights: log of target over proposal, shape [n]; −inf for samples of weight zero.

    Returns:
        `log_evidence`, its standard error `log_evidence_error` (delta method), `ess` as a fraction of n, and
        `pareto_k`.
    """
    log_weights = np.asarray(log_weights, dtype=np.float64)
    n = log_weights.size
    ess = relative_ess(log_weights)
    return {
        "log_evidence": float(logsumexp(log_weights) - np.log(n)),
        "log_evidence_error": float(np.sqrt(max(1 / ess - 1, 0.0) / n)),
        "ess": ess,
        "pareto_k": pareto_k(log_weights),
    }


def weights_vouch(ess: float, k: float) -> bool:
    """Whether importance weights with this effective sample size and Pareto k vouch for an estimate."""
    return bool(ess >= MINIMAL_ESS and k <= MAXIMAL_PARETO_K)


def importance_verdict(summary: dict[str, float]) -> dict[str, str]:
    """`verdict` and `explanation` for an importance-weighted posterior."""
    ess, k = summary["ess"], summary["pareto_k"]
    tail = "weights without a tail" if np.isneginf(k) else f"Pareto k {k:.2f}"
    figures = f"effective sample size {ess:.1%}, {tail}"
    if weights_vouch(ess, k):
        return {
            "verdict": "trusted",
            "explanation": f"The importance weights confirm the weighted estimates ({figures}).",
        }
    return {
        "verdict": "not converged",
        "explanation": f"The importance weights vouch for nothing ({figures}): "
        "train longer or use another method.",
    }


def split_r_hat(chains: ArrayLike) -> np.ndarray:
    """Split R-hat of parallel chains.

    Args:
        chains: draws, shape [chains, draws, ...].

    Returns:
        R-hat for each trailing entry; 1 where all draws are equal.
    """
    halves = _split(np.asarray(chains, dtype=np.float64))
    draws = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = np.sqrt((draws - 1) / draws + between / within)
    # Constant within every chain: fine if all chains agree, hopeless if they do not.
    return np.where(_varies(halves, axis=1).any(axis=0), r_hat, np.where(_varies(halves), np.inf, 1.0))


def chain_ess(chains: ArrayLike) -> np.ndarray:
    """Effective number of independent draws in parallel chains, for each trailing entry.

    Geyer's initial monotone sequence on the autocorrelation averaged over split chains
    (Vehtari et al. 2021). Constant entries count every draw.

    Args:
        chains: draws, shape [chains, draws, ...].
    """
    halves = _split(np.asarray(chains, dtype=np.float64))
    num_chains, draws = halves.shape[:2]
    total = num_chains * draws
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    pooled = (draws - 1) / draws * within + between
    centred = halves - halves.mean(axis=1, keepdims=True)
    size = 2 ** int(np.ceil(np.log2(2 * draws)))
    spectrum = np.fft.rfft(centred, n=size, axis=1)
    autocovariance = (
        np.fft.irfft(spectrum * np.conj(spectrum), n=size, axis=1)[:, :draws].mean(axis=0) / draws
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1 - (within - autocovariance * draws / (draws - 1)) / pooled
    rho[0] = 1.0
    pairs = rho[: 2 * (draws // 2)].reshape(draws // 2, 2, *rho.shape[1:]).sum(axis=1)
    positive = np.cumprod(pairs > 0, axis=0).astype(bool)
    monotone = np.where(positive, np.minimum.accumulate(pairs, axis=0), 0.0)
    time = np.maximum(2 * monotone.sum(axis=0) - 1, 1 / np.log10(max(total, 10)))
    return np.where(_varies(halves), np.minimum(total / time, total * np.log10(max(total, 10))), total)


def _varies(draws: np.ndarray, axis: int | tuple[int, int] = (0, 1)) -> np.ndarray:
    """Whether draws differ by more than rounding, which running sums leave in a constant."""
    return np.ptp(draws, axis=axis) > 1e-10 * np.abs(draws).max(axis=(0, 1))


def _split(chains: np.ndarray) -> np.ndarray:
    if chains.ndim < 2 or chains.shape[1] < 4:
        raise ValueError(f"need chains of at least 4 draws, shape [chains, draws, ...]; got {chains.shape}")
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, -half:]], axis=0)
