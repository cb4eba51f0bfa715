"""Order MCMC as an estimator."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
from numpy.typing import NDArray

from gflowdag.estimators.base import SHARE_OF_SEARCH, StructureLearner
from gflowdag.estimators.chain_verdict import chain_verdict
from gflowdag.estimators.method import Method, mebibytes, power_law
from gflowdag.estimators.parameters import fraction, keyword_parameters, whole
from gflowdag.estimators.precise import downgrade_if_imprecise
from gflowdag.estimators.unrestricted_orders import judged, reweighed
from gflowdag.mcmc import order_chains
from gflowdag.orders.draws import draw_graphs
from gflowdag.orders.problem import OrderProblem, edge_probabilities_of_orders, order_problem
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.convergence import MOVING
from gflowdag.runtime.progress import Progress
from gflowdag.score import Score

_SHARE_OF_SCORES = 0.4  # of a budget, for the scores of parent sets
_SHARE_OF_SUMS = 0.5  # of what is left after the chains, for weighing their orders over all parent sets
TEMPERATURES = 10  # replicas of each chain beyond dense tables


@keyword_parameters
class OrderMCMC(StructureLearner):
    """Markov chains over canonical orders, with parent sets summed out: order MCMC without its bias.

    Between steps in the order the labels that make orders canonical are drawn anew, and edges of a drawn
    graph are reversed. Beyond 20 variables each chain has replicas at rising temperatures, with which it
    exchanges graphs (parallel tempering). These chains work on candidate parents; their orders are then
    weighed over all parent sets of a number of parents or beside the likely ones, and where these weights
    vouch for it, the answer is that for all DAGs.

    Args:
        iterations: steps of each chain in the order, a third of them burn-in; with each step go two proposed
            reversals for each variable, ten where the chains are tempered.
        num_chains: chains side by side, which are compared to judge convergence; by default 64, and 8 where
            they are tempered.
        num_temperatures: replicas of each chain; by default 1 up to 20 variables, else 10.
        hottest: inverse temperature of the hottest replica, between 0 and 1.
        num_records: orders kept from each chain.
        num_candidates: possible parents of each node; by default all up to 20 variables, else 14, or fewer
            where a budget is short and scores take long.

    The other parameters are those of `StructureLearner`.
    """

    record = Method(
        name="order-mcmc",
        rank=60,
        label="order MCMC without its bias",
        answer="chains, checks itself",
        gives="marginals",
        checked_by="R-hat of parallel chains",
        use_when="more than 20 variables",
        seconds=power_law({5: 7.3, 11: 18, 20: 30, 21: 53, 30: 117, 50: 250}),
        num_bytes=mebibytes({5: 322, 11: 343, 20: 2106, 50: 1465}),
    )

    iterations: int = whole(1000)
    num_chains: int | None = whole(None)
    num_temperatures: int | None = whole(None)
    hottest: float = fraction(0.25)
    num_records: int = whole(100, least=4)  # to judge convergence
    num_candidates: int | None = whole(None)

    def graphs(self, score: Score, seed: int, progress: Progress) -> NDArray[np.bool_]:
        """Graphs of the recorded orders, bool [num_samples, d, d], without what judging them takes."""
        problem, chains = self._recorded(score, seed, progress)
        return self._drawn(problem, chains, seed)

    def _recorded(
        self, score: Score, seed: int, progress: Progress
    ) -> tuple[OrderProblem, order_chains.Chains]:
        problem = order_problem(
            score,
            num_candidates=self.num_candidates,
            seed=seed,
            deadline=self._deadline.share(_SHARE_OF_SCORES),
        )
        ladder = order_chains.geometric_ladder(
            self.num_temperatures or (1 if problem.is_dense else TEMPERATURES), self.hottest
        )
        chains = order_chains.sample(
            problem,
            jax.random.key(seed),
            num_chains=self.num_chains or (64 if len(ladder) == 1 else 8),
            ladder=ladder,
            num_records=self.num_records,
            burn_in=self.num_records // 2,
            thinning=max(1, round(self.iterations / (1.5 * self.num_records))),
            deadline=self._deadline.share(SHARE_OF_SEARCH),
            progress=progress,
        )
        return problem, chains

    def _drawn(self, problem: OrderProblem, chains: order_chains.Chains, seed: int) -> NDArray[np.bool_]:
        flat, rng = chains.orders.reshape(-1, chains.orders.shape[-1]), np.random.default_rng(seed)
        chosen = rng.choice(len(flat), self.num_samples, replace=self.num_samples > len(flat))
        return draw_graphs(problem.weights, problem.table, flat[chosen], problem.labels, rng)

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
        problem, chains = self._recorded(score, seed, progress)
        flat = chains.orders.reshape(-1, score.num_variables)
        edges = edge_probabilities_of_orders(problem, flat)
        edges = edges.reshape(*chains.orders.shape[:2], *edges.shape[1:])
        diagnostics, errors = mixing(edges, chains.log_weights, is_burnt_in=chains.is_burnt_in)
        marginals, found = edges.mean(axis=(0, 1)), None
        if not problem.is_dense:
            ends = self._deadline.share(_SHARE_OF_SUMS)
            found = reweighed(score, problem, chains.orders, chains.log_weights, self.num_samples, seed, ends)
            errors = np.hypot(errors, found.errors)
            diagnostics = judged(downgrade_if_imprecise(diagnostics, errors), found, marginals)
        if found is not None and found.vouches:
            marginals, samples = found.edge_probabilities, found.samples
        else:
            samples = self._drawn(problem, chains, seed)
            diagnostics = downgrade_if_imprecise(diagnostics, errors) if found is None else diagnostics
        return Posterior(
            samples,
            score.names,
            method=self.method,
            log_scores=score.log_score(samples),
            marginals=marginals,
            diagnosis=replace(
                diagnostics,
                acceptance=chains.acceptance(),
                iterations=round(chains.share_done * self.iterations),
                share_done=chains.share_done,
            ),
        )


def mixing(
    edges: np.ndarray, log_weights: np.ndarray, *, is_burnt_in: bool = True
) -> tuple[Diagnostics, np.ndarray]:
    """Verdict on chains of orders, and the Monte-Carlo error of each mean edge probability.

    Args:
        edges: edge probabilities given each recorded order, float64 [chains, draws, d, d].
        log_weights: of the orders, float64 [chains, draws].
        is_burnt_in: whether the orders come after the burn-in.

    Returns:
        The diagnostics, and the errors, float64 [d, d].
    """
    spread = edges.std(axis=(0, 1))
    moving = np.where(spread > MOVING, edges, 0.0)
    diagnostics, effective = chain_verdict(moving, log_weights, is_burnt_in=is_burnt_in)
    fewest = diagnostics.effective_samples or 0.0
    return diagnostics, spread / np.sqrt(np.where(spread > MOVING, effective, fewest))
