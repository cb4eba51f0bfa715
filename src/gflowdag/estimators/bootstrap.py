"""The estimators of the bootstrapped searches: GES and PC."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from gflowdag.baselines import bootstrap, pc
from gflowdag.baselines.causal_learn import import_causal_learn
from gflowdag.errors import GFlowDAGError, KnowledgeError
from gflowdag.estimators.base import StructureLearner
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.progress import Progress
from gflowdag.score import Score
from gflowdag.search import ges


class _Bootstrap(StructureLearner):
    """What both share: resampling, orientation, and the account of what went wrong."""

    supports_interventions = False

    def __init__(self, *, num_bootstraps: int, n_jobs: int | None, **shared: Any) -> None:
        super().__init__(**shared)
        self.num_bootstraps = num_bootstraps
        self.n_jobs = n_jobs

    def _search(self, score: Score) -> bootstrap.Search:
        raise NotImplementedError

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
        self._check_counts("num_bootstraps")
        found = bootstrap.run(
            self._search(score),
            self._data.values,
            num_bootstraps=self.num_bootstraps,
            seed=seed,
            n_jobs=self.n_jobs,
            progress=progress,
        )
        if not len(found.graphs):
            raise GFlowDAGError(
                f"{self.method} failed on every resampled data set; the first: {found.failures[0]}"
            )
        required, forbidden, max_parents = score.constraints
        rng = np.random.default_rng(seed)
        # Every graph found contributes the same number of members of its class, up to one.
        drawn = [
            bootstrap.draw_dag(found.graphs[k % len(found.graphs)], required, forbidden, rng)
            for k in range(max(self.num_samples, len(found.graphs)))
        ]
        dags = np.array([orientation.dag for orientation in drawn])
        forced = np.array([orientation.is_forced for orientation in drawn[: len(found.graphs)]])
        crowded = np.zeros(len(dags), bool) if max_parents is None else (dags.sum(1) > max_parents).any(1)
        if crowded.all():
            raise GFlowDAGError(
                f"every graph that {self.method} found has more than max_parents = {max_parents} parents: "
                "raise max_parents, lower alpha (PC), raise penalty (GES), or use OrderMCMC, MC3 or "
                "ExactPosterior, which keep to it"
            )
        kept = np.flatnonzero(~crowded)[: self.num_samples]
        return Posterior(
            samples=dags[kept],
            names=score.names,
            method=self.method,
            log_scores=score.log_score(dags[kept]),
            marginals=dags[~crowded].mean(axis=0),
            diagnosis=self._account(found, int(forced.sum()), int(crowded.sum())),
        )

    def _account(self, found: bootstrap.Resampled, num_forced: int, num_crowded: int) -> Diagnostics:
        sentences = [
            "The bootstrap measures how stable the search is under resampling; it is no posterior, and uses "
            "neither the score nor the structure prior."
        ]
        if found.failures:
            sentences.append(
                f"The search failed on {len(found.failures)} of {self.num_bootstraps} data sets (left out)."
            )
        if num_forced:
            sentences.append(
                f"{num_forced} graphs had conflicting orientations, some of which were given up."
            )
        if num_crowded:
            sentences.append(f"{num_crowded} sampled graphs exceeded max_parents and are left out.")
        counts = {
            "num_bootstraps": self.num_bootstraps,
            "num_failures": len(found.failures),
            "failures": sorted(set(found.failures))[:10],
            "num_conflicts": num_forced,
            "num_exceeding_max_parents": num_crowded,
        }
        return Diagnostics("unverified", " ".join(sentences), extra=counts)


class BootstrapGES(_Bootstrap):
    """Greedy equivalence search (Chickering 2002) on resampled rows (Friedman et al. 1999).

    Each data set gives an equivalence class, of which members are drawn uniformly. Continuous data are scored
    by the Gaussian BIC, discrete data by BDeu, whatever `score` and `prior` say. The search cannot use
    required or forbidden edges and refuses them; interventional data are refused too, and more than 62
    variables.

    Args:
        num_bootstraps: number of resampled data sets.
        penalty: weight of the BIC's penalty (continuous data); larger gives sparser graphs.
        n_jobs: number of processes; None is one for each core.
        score, prior, knowledge, standardize, num_samples, random_state, verbose: see `StructureLearner`.
    """

    method = "bootstrap-ges"

    def __init__(
        self,
        *,
        score: str = "auto",
        prior: Any = "uniform",
        knowledge: Any = None,
        standardize: bool = True,
        num_samples: int = 1000,
        random_state: Any = None,
        verbose: bool = False,
        num_bootstraps: int = 100,
        penalty: float = 1.0,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            score=score,
            prior=prior,
            knowledge=knowledge,
            standardize=standardize,
            num_samples=num_samples,
            random_state=random_state,
            verbose=verbose,
            num_bootstraps=num_bootstraps,
            n_jobs=n_jobs,
        )
        self.penalty = penalty

    def _search(self, score: Score) -> bootstrap.Search:
        required, forbidden, max_parents = score.constraints
        if required.any() or (forbidden & ~np.eye(len(forbidden), dtype=bool)).any():
            raise KnowledgeError(
                "BootstrapGES cannot use required edges, forbidden edges or tiers: greedy equivalence search "
                "walks over whole equivalence classes. Use BootstrapPC, MC3, OrderMCMC or ExactPosterior."
            )
        self._check_numbers("penalty", zero=True)
        discrete = self._data.is_discrete
        return partial(ges.search, discrete=discrete, max_parents=max_parents, penalty=self.penalty)


class BootstrapPC(_Bootstrap):
    """The PC algorithm on resampled rows, by causal-learn.

    Each data set gives a partly directed graph, of which DAGs are drawn: uniformly from its equivalence
    class where it is one. Continuous data are tested by Fisher's z, discrete data by χ². Required and
    forbidden edges hold in every graph; interventional data are refused.

    Args:
        num_bootstraps: number of resampled data sets.
        alpha: significance level of the independence tests.
        n_jobs: number of processes; None is one for each core.
        score, prior, knowledge, standardize, num_samples, random_state, verbose: see `StructureLearner`.
    """

    method = "bootstrap-pc"

    def __init__(
        self,
        *,
        score: str = "auto",
        prior: Any = "uniform",
        knowledge: Any = None,
        standardize: bool = True,
        num_samples: int = 1000,
        random_state: Any = None,
        verbose: bool = False,
        num_bootstraps: int = 100,
        alpha: float = 0.05,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            score=score,
            prior=prior,
            knowledge=knowledge,
            standardize=standardize,
            num_samples=num_samples,
            random_state=random_state,
            verbose=verbose,
            num_bootstraps=num_bootstraps,
            n_jobs=n_jobs,
        )
        self.alpha = alpha

    def _search(self, score: Score) -> bootstrap.Search:
        if not (isinstance(self.alpha, Real) and 0 < float(self.alpha) < 1):
            raise GFlowDAGError(f"alpha is a significance level between 0 and 1, got {self.alpha!r}")
        import_causal_learn("graph")  # say here, not in the workers, that it is missing
        required, forbidden, _ = score.constraints
        return partial(
            pc.search,
            discrete=self._data.is_discrete,
            alpha=self.alpha,
            required=required,
            forbidden=forbidden,
        )
