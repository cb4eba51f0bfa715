"""Held-out graphs of another sampler, which show whether a policy knows the whole posterior.

The importance weights of a policy's own samples are blind to what it never draws: a policy that has settled
on a wrong graph gives all its samples the same weight. Short Markov chains over orders know nothing of the
policy. Their graphs, walked back to the start, carry weights on the same scale; where these lie beyond all
that the policy has seen in its own samples, there is a part of the posterior that it does not visit.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
from numpy.typing import NDArray

from gflowdag.estimators.order_mcmc import OrderMCMC
from gflowdag.estimators.unseen import TOLERATED_UNSEEN
from gflowdag.estimators.unseen import unseen_share as unseen_share
from gflowdag.gflownet.retrace import weigh
from gflowdag.gflownet.spaces import Policy, StateSpace
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.progress import Progress, silent
from gflowdag.score import Score
from gflowdag.score.local_score import LocalScore

_FEWER_CANDIDATES = 10  # of each node, where their subsets are scored one after another


def order_chains(
    score: Score,
    seed: int,
    num_graphs: int,
    *,
    num_chains: int,
    iterations: int,
    deadline: Deadline = Deadline(),  # noqa: B008 (immutable)
    progress: Progress = silent,
) -> Posterior:
    """Graphs from Markov chains over orders, with parent sets drawn exactly."""
    chains = OrderMCMC(
        num_samples=num_graphs,
        num_chains=num_chains,
        iterations=iterations,
        num_candidates=None if deadline.is_set else _candidates(score),
    )
    chains._deadline = deadline
    samples = chains.graphs(score, seed, progress)
    return Posterior(samples, score.names, method=chains.method, log_scores=score.log_score(samples))


def _candidates(score: Score) -> int | None:
    """Candidate parents in chains that no deadline ends; None: as many as elsewhere.

    All subsets of a node's candidates are scored before the first step. Where the score knows no faster way
    than set after set, as most scores in Python, the usual 14 candidates take minutes or hours.
    """
    if score.has_small_table or type(score.likelihood).local_subsets is not LocalScore.local_subsets:
        return None
    return max(_FEWER_CANDIDATES, int(score.constraints.required.sum(axis=0).max(initial=0)))


def short_chains(score: Score, seed: int, num_graphs: int, progress: Progress = silent) -> Posterior:
    """Graphs from chains that are long enough to find the modes, not to weigh them."""
    return order_chains(score, seed, num_graphs, num_chains=16, iterations=200, progress=progress)


def held_out_log_weights(
    score: Score, seed: int, num_held_out_graphs: int, space: StateSpace, policy: Policy
) -> NDArray[np.float64]:
    """Log importance weights of graphs that the policy did not draw, [num_held_out_graphs]."""
    if not num_held_out_graphs:
        return np.zeros(0)
    chains = short_chains(score, seed, num_held_out_graphs)
    start = score.log_score(score.constraints.required[None])[0]
    return start + np.asarray(weigh(space, policy, jax.random.key(seed), chains.samples).log_weights)


def downgrade_if_unseen(diagnostics: Diagnostics, unseen: float | None) -> Diagnostics:
    """Lower the verdict if held-out graphs are unknown to the policy; None: there were no such graphs."""
    diagnostics = replace(diagnostics, unseen_share=unseen)
    if unseen is None or unseen <= TOLERATED_UNSEEN:
        return diagnostics
    return replace(
        diagnostics,
        verdict="not converged",
        explanation=f"The policy hardly ever draws {unseen:.0%} of the graphs that Markov chains over orders "
        "visit: it has missed a part of the posterior, or the chains have left it. Train longer, or use "
        "another method.",
    )
