"""The estimator of structure MCMC (MC3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gflowdag.data import Dataset
from gflowdag.errors import GFlowDAGError, TooLargeError
from gflowdag.estimators.base import SHARE_OF_SEARCH, StructureLearner
from gflowdag.estimators.chain_verdict import chain_verdict
from gflowdag.estimators.method import Method, mebibytes, power_law
from gflowdag.estimators.parameters import keyword_parameters, whole
from gflowdag.estimators.precise import downgrade_if_imprecise
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.convergence import FEWEST_SCATTERED_CHAINS
from gflowdag.runtime.memory import total_memory
from gflowdag.runtime.messages import memory
from gflowdag.runtime.place import option
from gflowdag.runtime.progress import Progress
from gflowdag.score import Score
from gflowdag.score.base import MAX_TABLE_VARIABLES

LEAST_BURN_IN = 0.2  # of num_steps
_FEWEST_CHAINS = 4
_CHAIN_BYTES = 2**30  # bytes for what the chains keep besides their graphs


@keyword_parameters
class MC3(StructureLearner):
    """Structure MCMC: chains that add, remove and reverse single edges (Madigan & York 1995).

    Chains start at scattered graphs and are cooled to the posterior during the first half of the burn-in.
    They are trusted when they agree: 60 chains or more, a burn-in of a fifth of `num_steps` or more,
    rank-normalised R-hat of every edge and of the score at most 1.05, 400 effective samples or more, and no
    Monte-Carlo error of an edge probability above 0.01.

    Args:
        num_chains: chains that run side by side. None is 256, fewer where their memory (8 d³ bytes each
            beyond 20 variables) would exceed 1 GiB.
        burn_in: steps of each chain that are thrown away.
        num_steps: steps of each chain after that.
        thinning: a graph is recorded every so many steps.

    The other parameters are those of `StructureLearner`.
    """

    record = Method(
        name="mc3",
        rank=70,
        label="structure MCMC",
        answer="chains, checks itself",
        gives="marginals",
        checked_by="R-hat of parallel chains",
        use_when="a baseline; mixes slowly on large or peaked posteriors",
        discrete_measured=MAX_TABLE_VARIABLES,  # beyond, scores are computed on demand
        seconds=power_law({5: 8.4, 11: 15.7, 20: 16.1, 21: 250, 30: 340, 50: 1800}),
        num_bytes=mebibytes({5: 464, 11: 500, 20: 720}),
    )

    num_chains: int | None = whole(None)
    burn_in: int = whole(20_000, least=0)
    num_steps: int = whole(50_000)
    thinning: int = whole(250)

    def _check(self, data: Dataset) -> None:
        super()._check(data)
        d = data.num_variables
        if d <= MAX_TABLE_VARIABLES or set(data.kinds) != {"continuous"} or not isinstance(self.score, str):
            return  # their scores are in a table, or computed when a chain asks for them
        num_chains = self.num_chains or _FEWEST_CHAINS
        needed, there = num_chains * 8 * d**3, total_memory()  # the inverse of a matrix for each variable
        if needed > there:
            raise TooLargeError(
                f"{num_chains} chains of {d:,} variables take {memory(needed)}, and this machine has "
                f"{memory(there)}: use {option('method', 'parent-set-mcmc')}, or leave columns out "
                f"({option('drop')})"
            )

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
        import jax

        from gflowdag.mcmc.changes import make_changes, memory_per_chain
        from gflowdag.mcmc.moves import limits_from_constraints
        from gflowdag.mcmc.scattered import scattered_graphs
        from gflowdag.mcmc.structure import init, run

        if self.num_steps < 4 * self.thinning:
            raise GFlowDAGError(
                "to judge convergence MC3 needs num_steps of at least 4 × thinning, got "
                f"num_steps={self.num_steps} and thinning={self.thinning}"
            )
        deltas = score.deltas()
        num_chains = self.num_chains or _affordable_chains(memory_per_chain(deltas, score.num_variables))
        changes, limits = make_changes(deltas), limits_from_constraints(*score.constraints, score.cell_limit)
        start = scattered_graphs(score, num_chains, seed)
        chains = run(
            jax.random.key(seed),
            init(start, score.log_score(start), changes, limits),
            changes,
            limits,
            burn_in=self.burn_in,
            num_steps=self.num_steps,
            thinning=self.thinning,
            deadline=self._deadline.share(SHARE_OF_SEARCH),
            progress=progress,
        )
        graphs, log_scores = chains.graphs().swapaxes(0, 1), chains.log_scores.T  # [C, T, ...]
        diagnostics, edge_ess = chain_verdict(
            graphs,
            log_scores,
            is_burnt_in=chains.is_burnt_in,
            fewest_chains=FEWEST_SCATTERED_CHAINS,
        )
        diagnostics = self._downgrade_if_hardly_scattered(diagnostics)
        d = score.num_variables
        graphs, log_scores = graphs.reshape(-1, d, d), log_scores.ravel()
        kept = np.random.default_rng(seed).choice(
            len(graphs), self.num_samples, replace=self.num_samples > len(graphs)
        )
        marginals = chains.edge_probabilities.mean(axis=0)
        return Posterior(
            samples=graphs[kept],
            names=score.names,
            method=self.method,
            log_scores=log_scores[kept],
            marginals=marginals,
            best_graph=graphs[np.argmax(log_scores)],
            diagnosis=replace(
                downgrade_if_imprecise(diagnostics, np.sqrt(marginals * (1 - marginals) / edge_ess)),
                acceptance=chains.acceptance(),
                iterations=round(chains.share_done * (self.burn_in + self.num_steps)),
                share_done=chains.share_done,
                extra={"num_chains": num_chains},
            ),
        )

    def _downgrade_if_hardly_scattered(self, diagnostics: Diagnostics) -> Diagnostics:
        """Lower the verdict if the burn-in is too short to scatter the chains and to cool them."""
        least = LEAST_BURN_IN * self.num_steps
        if diagnostics.verdict != "trusted" or self.burn_in >= least:
            return diagnostics
        return replace(
            diagnostics,
            verdict="not converged",
            explanation=f"A burn-in of {self.burn_in} steps is too short to scatter the chains: give it "
            f"{least:.0f} or more. {diagnostics.explanation}",
        )


def _affordable_chains(bytes_per_chain: int) -> int:
    return int(np.clip(_CHAIN_BYTES // max(bytes_per_chain, 1), _FEWEST_CHAINS, 256))
