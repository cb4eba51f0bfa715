"""Whether parallel chains agree: split R-hat and effective sample size, as plain NumPy statistics."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

# Chains have not mixed above this (Gelman et al., Bayesian Data Analysis, and Vehtari et al. 2021).
MAXIMAL_R_HAT = 1.05
MINIMAL_EFFECTIVE_SAMPLES = 400  # below this R-hat and ESS themselves are noise


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
