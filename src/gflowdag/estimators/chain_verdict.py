"""Whether parallel chains of graphs agree: the verdict that the structure samplers share."""

from __future__ import annotations

import numpy as np

from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.r_hat import MAXIMAL_R_HAT, MINIMAL_EFFECTIVE_SAMPLES, chain_ess, split_r_hat
from gflowdag.runtime.messages import counted

SHARE_OF_CHAINS = 0.9  # of a budget that the chains may take; the rest is for judging them
_FEWEST_DRAWS = 4  # of each chain, for R-hat
_SHOWN_CHAINS, _SHOWN_DRAWS = 8, 500  # of the score traces that go with a posterior


def chain_verdict(
    graphs: np.ndarray, log_scores: np.ndarray, *, is_burnt_in: bool = True
) -> tuple[Diagnostics, np.ndarray]:
    """Judge chains by split R-hat and effective sample size of every edge and of the score.

    Args:
        graphs: recorded graphs, bool [chains, draws, d, d].
        log_scores: score traces, float64 [chains, draws].
        is_burnt_in: whether the burn-in was over when the graphs were recorded.

    Returns:
        The diagnostics, and the effective number of samples behind each edge, float64 [d, d].
    """
    if graphs.shape[1] < _FEWEST_DRAWS:
        return _too_short(log_scores), np.ones(graphs.shape[2:])
    # One source at a time: all d² traces at once would be gigabytes in double precision.
    r_hat = np.array([split_r_hat(graphs[:, :, source]) for source in range(graphs.shape[2])])
    ess = np.array([chain_ess(graphs[:, :, source]) for source in range(graphs.shape[2])])
    worst = float(max(r_hat.max(), split_r_hat(log_scores)))
    fewest = float(min(ess.min(), chain_ess(log_scores)))
    trusted = is_burnt_in and worst <= MAXIMAL_R_HAT and fewest >= MINIMAL_EFFECTIVE_SAMPLES
    advice = "." if trusted else ": run longer chains, or use another method."
    explanation = (
        f"The largest split R-hat of any edge or of the score is {worst:.3f} ({MAXIMAL_R_HAT} or less is "
        f"needed) and the smallest effective sample size {fewest:.0f} "
        f"({MINIMAL_EFFECTIVE_SAMPLES} or more){advice}"
    )
    if not is_burnt_in:
        explanation = "The chains were stopped in their burn-in: they prove nothing. " + explanation
    diagnostics = Diagnostics(
        "trusted" if trusted else "not converged",
        explanation,
        r_hat=worst,
        ess=min(fewest / log_scores.size, 1.0),
        effective_samples=fewest,
        score_traces=_shown(log_scores),
    )
    return diagnostics, ess


def _too_short(log_scores: np.ndarray) -> Diagnostics:
    """What is told of chains that were stopped before anything could be said about them."""
    return Diagnostics(
        "not converged",
        f"The chains were stopped after {counted(log_scores.shape[1], 'draw')} each, too few to judge "
        "convergence: run longer chains, or use another method.",
        ess=1 / log_scores.size,
        effective_samples=1.0,
        score_traces=_shown(log_scores),
    )


def _shown(traces: np.ndarray) -> np.ndarray:
    """The first chains, at evenly spread draws with both ends among them, float64 [≤ 8, ≤ 500]."""
    draws = traces.shape[1]
    kept = np.linspace(0, draws - 1, min(draws, _SHOWN_DRAWS)).round().astype(int)
    return np.asarray(traces[:_SHOWN_CHAINS, kept], dtype=np.float64)
