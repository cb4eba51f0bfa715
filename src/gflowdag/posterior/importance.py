"""How far importance weights can be trusted: effective sample size and the tail of the weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from gflowdag.posterior.diagnostics import Diagnostics

# Beyond these, importance weights confirm nothing (Vehtari et al. 2024 for k-hat).
MINIMAL_ESS = 0.01
MAXIMAL_PARETO_K = 0.7


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


class ImportanceSummary(NamedTuple):
    """What unnormalised importance weights say about the evidence and about themselves."""

    log_evidence: float
    log_evidence_error: float  # standard error, by the delta method
    ess: float  # as a share of the samples
    pareto_k: float


def importance_summary(log_weights: ArrayLike) -> ImportanceSummary:
    """Evidence, its error, effective sample size and Pareto k of unnormalised importance weights.

    Args:
        log_weights: log of target over proposal, shape [n]; −inf for samples of weight zero.
    """
    log_weights = np.asarray(log_weights, dtype=np.float64)
    n = log_weights.size
    ess = relative_ess(log_weights)
    return ImportanceSummary(
        log_evidence=float(logsumexp(log_weights) - np.log(n)),
        log_evidence_error=float(np.sqrt(max(1 / ess - 1, 0.0) / n)),
        ess=ess,
        pareto_k=pareto_k(log_weights),
    )


def weights_vouch(ess: float, k: float) -> bool:
    """Whether importance weights with this effective sample size and Pareto k vouch for an estimate."""
    return bool(ess >= MINIMAL_ESS and k <= MAXIMAL_PARETO_K)


def importance_diagnostics(summary: ImportanceSummary) -> Diagnostics:
    """The diagnostics of an importance-weighted posterior."""
    ess, k = summary.ess, summary.pareto_k
    tail = "no tail of large weights" if np.isneginf(k) else f"Pareto k {k:.2f}"
    values = f"effective sample size {ess:.1%}, {tail}"
    if weights_vouch(ess, k):
        explanation = f"The importance weights confirm the weighted estimates ({values})."
        return Diagnostics("trusted", explanation, ess=ess, pareto_k=k)
    explanation = (
        f"The importance weights do not confirm the estimates ({values}): train longer or use another method."
    )
    return Diagnostics("not converged", explanation, ess=ess, pareto_k=k)
