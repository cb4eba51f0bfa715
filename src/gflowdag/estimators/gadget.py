"""The estimator of Gadget, partition MCMC by sumu."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gflowdag.baselines import gadget
from gflowdag.errors import GFlowDAGError, TooLargeError
from gflowdag.estimators.base import SHARE_OF_SEARCH, StructureLearner
from gflowdag.estimators.chain_verdict import chain_verdict
from gflowdag.estimators.method import Method, mebibytes, power_law
from gflowdag.estimators.parameters import keyword_parameters, whole
from gflowdag.estimators.precise import downgrade_if_imprecise
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.progress import Progress
from gflowdag.score import Score

MOST_VARIABLES = 60  # the splits of one part are counted in 64-bit integers


@keyword_parameters
class Gadget(StructureLearner):
    """Partition MCMC with candidate parents (Viinikka et al. 2020), by sumu.

    sumu's own structure prior is `"fair"`; here the sampler is given the score, structure prior,
    interventions and knowledge of this library, so it needs no reweighting (`prior="fair"` is its original
    setting). What remains of the original is the restriction: all subsets of `num_candidates` candidate
    parents of each node, and beyond them only sets of at most `max_outsiders` parents. Where the posterior is
    dense this hurts, and no diagnostic sees it.

    Args:
        num_candidates: candidate parents of each node (K of the paper).
        max_outsiders: size of the largest parent set that holds a node outside of the candidates.
        num_runs: independent runs, which are compared to judge convergence.
        num_temperatures: tempered chains of each run.
        burn_in: steps of each run that are thrown away.
        num_steps: steps of each run after that.
        thinning: a graph is drawn every so many steps.
        n_jobs: number of processes; None is one for each core.

    The other parameters are those of `StructureLearner`.
    """

    record = Method(
        name="gadget",
        rank=80,
        label="partition MCMC",
        answer="chains, checks itself",
        gives="marginals, by another implementation",
        checked_by="R-hat of independent runs",
        assumes="parents lie among the candidates, or are few",
        use_when="an independent second opinion",
        extra="gadget",
        most_variables=MOST_VARIABLES,
        seconds=power_law({11: 17, 20: 19}),
        num_bytes=mebibytes({11: 159, 20: 164}),
    )

    num_candidates: int = whole(10)
    max_outsiders: int = whole(3)
    num_runs: int = whole(4)
    num_temperatures: int = whole(8)
    burn_in: int = whole(1000, least=0)
    num_steps: int = whole(4000)
    thinning: int = whole(4)
    n_jobs: int | None = None

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
        if score.num_variables > MOST_VARIABLES:
            raise TooLargeError(f"Gadget takes at most {MOST_VARIABLES} variables; use OrderMCMC or MC3")
        if self.num_steps < 4 * self.thinning:
            raise GFlowDAGError("Gadget needs num_steps of at least 4 × thinning to judge convergence")
        options = gadget.Options(
            self.num_candidates,
            self.max_outsiders,
            self.num_temperatures,
            self.burn_in,
            self.num_steps,
            self.thinning,
        )
        runs = gadget.run(
            score,
            options,
            num_runs=self.num_runs,
            seed=seed,
            n_jobs=self.n_jobs,
            deadline=self._deadline.share(SHARE_OF_SEARCH),
            progress=progress,
        )
        fewest = min(len(run.graphs) for run in runs)  # a budget may stop them at different steps
        graphs = np.stack([run.graphs[-fewest:] for run in runs])  # [runs, draws, d, d]
        log_scores = np.stack([run.log_scores[-fewest:] for run in runs])
        is_burnt_in = all(run.is_burnt_in for run in runs)
        diagnostics, edge_ess = chain_verdict(graphs, log_scores, is_burnt_in=is_burnt_in)
        done = float(np.mean([run.share_done for run in runs]))
        steps = round(done * (self.burn_in + self.num_steps))
        diagnostics = replace(diagnostics, share_done=done, iterations=steps)
        d = score.num_variables
        return self._posterior(score, graphs.reshape(-1, d, d), diagnostics, edge_ess, seed)

    def _posterior(
        self, score: Score, graphs: np.ndarray, diagnostics: Diagnostics, edge_ess: np.ndarray, seed: int
    ) -> Posterior:
        log_scores = score.log_score(graphs)
        legal = np.isfinite(log_scores)
        if not legal.any():
            raise GFlowDAGError(
                "Gadget found no graph that the knowledge allows: raise num_candidates or burn_in"
            )
        d = score.num_variables
        marginals = graphs[legal].mean(axis=0)
        diagnostics = downgrade_if_imprecise(diagnostics, np.sqrt(marginals * (1 - marginals) / edge_ess))
        explanation, verdict = diagnostics.explanation, diagnostics.verdict
        if self.num_candidates < d - 1:
            verdict = "unverified" if verdict == "trusted" else verdict
            explanation += (
                f" Only {self.num_candidates} candidate parents of {d - 1} were combined freely; "
                "how much of the posterior this hides is not known."
            )
        pool = np.flatnonzero(legal)
        kept = np.random.default_rng(seed).choice(
            pool, self.num_samples, replace=self.num_samples > len(pool)
        )
        return Posterior(
            samples=graphs[kept],
            names=score.names,
            method=self.method,
            log_scores=log_scores[kept],
            marginals=marginals,
            best_graph=graphs[np.argmax(log_scores)],
            diagnosis=replace(
                diagnostics,
                verdict=verdict if legal.all() else "not converged",
                explanation=explanation,
                extra={
                    "sampled_prior": type(score.prior).__name__,
                    "num_against_knowledge": int((~legal).sum()),
                    "num_candidates": min(self.num_candidates, d - 1),
                },
            ),
        )
