"""Whether parallel chains of graphs agree: the verdict that the structure samplers share."""

from __future__ import annotations

import numpy as np

from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.runtime.convergence import (
    FEWEST_CHAINS,
    FEWEST_DRAWS,
    FEWEST_SCATTERED_CHAINS,
    MAXIMAL_R_HAT,
    MINIMAL_EFFECTIVE_SAMPLES,
    bulk_ess,
    rank_r_hat,
    tail_ess,
    varies,
)
from gflowdag.runtime.messages import counted

_SHOWN_CHAINS, _SHOWN_DRAWS = 8, 500  # of the score traces that go with a posterior


def chain_verdict(
    graphs: np.ndarray,
    log_scores: np.ndarray,
    *,
    is_burnt_in: bool = True,
    fewest_chains: int = FEWEST_CHAINS,
) -> tuple[Diagnostics, np.ndarray]:
    """Judge chains from scattered starts by R-hat and effective sample size of every edge and of the score.

    Edges that no chain ever changes say nothing against them. Chains that never move at all are each one
    sample, wherever they began: many have to end at one graph before that says where the posterior is.

    Args:
        graphs: recorded graphs, bool [chains, draws, d, d], or edge probabilities given what was recorded.
        log_scores: score traces, float64 [chains, draws].
        is_burnt_in: whether the burn-in was over when the graphs were recorded.
        fewest_chains: with fewer, nothing is trusted; more where chains hardly leave the mode they start in.

    Returns:
        The diagnostics, and the effective number of samples behind each edge, float64 [d, d].
    """
    num_chains, num_draws = log_scores.shape
    if num_draws < FEWEST_DRAWS:
        return _too_short(log_scores), np.ones(graphs.shape[2:])
    # One source at a time: all d² traces at once would be gigabytes in double precision.
    sources = range(graphs.shape[2])
    r_hat = np.array([rank_r_hat(graphs[:, :, source]) for source in sources])
    ess = np.array([bulk_ess(graphs[:, :, source]) for source in sources])
    changes = np.array([varies(graphs[:, :, source]) for source in sources])
    worst = float(max(r_hat.max(), rank_r_hat(log_scores)))
    counts = [ess[changes]]
    if varies(log_scores):
        counts += [bulk_ess(log_scores)[None], tail_ess(log_scores)[None]]
        is_enough = num_chains >= fewest_chains
    else:  # one class of graphs, or one graph: were there another, how many chains would have ended there?
        is_enough = num_chains >= FEWEST_SCATTERED_CHAINS
    fewest = float(np.concatenate(counts).min(initial=np.inf))
    moves = np.isfinite(fewest)
    is_enough &= not moves or fewest >= MINIMAL_EFFECTIVE_SAMPLES
    fewest = fewest if moves else float(num_chains)
    trusted = is_burnt_in and worst <= MAXIMAL_R_HAT and is_enough
    advice = "." if trusted else ": run longer chains, or use another method."
    explanation = (
        f"The largest rank-normalised R-hat of any edge or of the score is {worst:.3f} ({MAXIMAL_R_HAT} or "
        f"less is needed) and the smallest effective sample size {fewest:.0f} "
        f"({MINIMAL_EFFECTIVE_SAMPLES} or more){advice}"
    )
    if not varies(log_scores):
        explanation = (
            f"All {num_chains} chains keep the same score, which is trusted only with "
            f"{FEWEST_SCATTERED_CHAINS} chains or more. {explanation}"
        )
    elif num_chains < fewest_chains:
        explanation = (
            f"To judge whether chains agree takes at least {fewest_chains} of them, and there "
            f"{'is' if num_chains == 1 else 'are'} {num_chains}. {explanation}"
        )
    if not is_burnt_in:
        explanation = "The chains were stopped in their burn-in and show nothing yet. " + explanation
    diagnostics = Diagnostics(
        "trusted" if trusted else "not converged",
        explanation,
        r_hat=worst,
        ess=min(fewest / log_scores.size, 1.0),
        effective_samples=fewest,
        score_traces=shown_traces(log_scores),
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
        score_traces=shown_traces(log_scores),
    )


def shown_traces(traces: np.ndarray) -> np.ndarray:
    """The first chains, at evenly spread draws with both ends among them, float64 [≤ 8, ≤ 500]."""
    draws = traces.shape[1]
    kept = np.linspace(0, draws - 1, min(draws, _SHOWN_DRAWS)).round().astype(int)
    return np.asarray(traces[:_SHOWN_CHAINS, kept], dtype=np.float64)
