"""The estimators of the bootstrapped searches: GES and PC."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np

from gflowdag.baselines import bootstrap, pc
from gflowdag.baselines.causal_learn import import_causal_learn
from gflowdag.errors import GFlowDAGError
from gflowdag.estimators.base import SHARE_OF_SEARCH, StructureLearner
from gflowdag.estimators.method import Method, mebibytes, power_law
from gflowdag.estimators.parameters import fraction, keyword_parameters, positive, whole
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.place import typed
from gflowdag.runtime.progress import Progress
from gflowdag.score import Score
from gflowdag.score.registry import unbound_score
from gflowdag.search import ges

_SEARCHED_FASTER = ("auto", "bge", "bdeu", "bde")  # names in whose place GES takes the BIC or BDeu, by kind


@keyword_parameters
class _Bootstrap(StructureLearner):
    """What both share: resampling, orientation, and the record of what went wrong."""

    _without: ClassVar[str] = ", and uses neither the score nor the structure prior."

    num_bootstraps: int = whole(100)
    n_jobs: int | None = None

    def _search(self, score: Score) -> bootstrap.Search:
        raise NotImplementedError

    def _uses_score(self) -> bool:
        return False

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
        found = bootstrap.run(
            self._search(score),
            self._data.values,
            num_bootstraps=self.num_bootstraps,
            seed=seed,
            n_jobs=self.n_jobs,
            deadline=self._deadline.share(SHARE_OF_SEARCH),
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
                f"every graph that {self.method} found has more than {max_parents} parents somewhere: "
                + typed(
                    python="raise max_parents, lower alpha (PC), raise penalty (GES), or use OrderMCMC, MC3 "
                    "or ExactPosterior, which keep to it",
                    command_line="raise --max-parents, or use order-mcmc, mc3 or exact, which keep to it",
                )
            )
        kept = np.flatnonzero(~crowded)[: self.num_samples]
        return Posterior(
            samples=dags[kept],
            names=score.names,
            method=self.method,
            # Without the limit on cells, to which not every search keeps.
            log_scores=score.log_likelihood(dags[kept]) + score.structure_prior.of_graphs(dags[kept]),
            marginals=dags[~crowded].mean(axis=0),
            diagnosis=self._account(found, int(forced.sum()), int(crowded.sum())),
        )

    def _account(self, found: bootstrap.Resampled, num_forced: int, num_crowded: int) -> Diagnostics:
        searched = len(found.graphs) + len(found.failures)
        sentences = [
            "The bootstrap measures how stable the search is under resampling; it is not a posterior"
        ]
        sentences[0] += "." if self._uses_score() else self._without
        if found.failures:
            sentences.append(
                f"The search failed on {len(found.failures)} of {searched} data sets (left out)."
            )
        if num_forced:
            sentences.append(
                f"{num_forced} graphs had conflicting orientations, some of which were given up."
            )
        if num_crowded:
            sentences.append(f"{num_crowded} sampled graphs exceeded max_parents and are left out.")
        counts = {
            "num_bootstraps": searched,
            "num_failures": len(found.failures),
            "failures": sorted(set(found.failures))[:10],
            "num_conflicts": num_forced,
            "num_exceeding_max_parents": num_crowded,
        }
        done = searched / self.num_bootstraps
        return Diagnostics("unverified", " ".join(sentences), share_done=done, extra=counts)


@keyword_parameters
class BootstrapGES(_Bootstrap):
    """Greedy equivalence search (Chickering 2002) on resampled rows (Friedman et al. 1999).

    Each data set gives an equivalence class, of which members are drawn uniformly. Where `score` is
    `"auto"`, `"bge"`, `"bdeu"` or `"bde"`, continuous data are scored by the Gaussian BIC and discrete data
    by BDeu, and the prior is not used. Any other score, and every score object, `BGe()` or one of your own,
    is used as it is, together with the prior, as in tables with columns of both kinds; where it does not
    score equivalent graphs alike, or the prior is `"fair"`, each class counts as the member that the search
    happens to look at. The search cannot use required or forbidden edges and refuses them; interventional
    data are refused too.

    Args:
        num_bootstraps: number of resampled data sets.
        penalty: weight of the BIC's penalty (continuous data); larger gives sparser graphs.
        n_jobs: number of processes; None is one for each core.
        score, prior, knowledge, standardize, num_samples, random_state, verbose: see `StructureLearner`.
    """

    record = Method(
        name="bootstrap-ges",
        rank=90,
        label="bootstrapped greedy equivalence search",
        answer="no posterior",
        gives="frequencies under resampling, not a posterior",
        assumes="the Gaussian BIC or BDeu in place of `auto`, `bge`, `bdeu` and `bde`, without the prior; "
        "other scores, and score objects, together with the prior",
        use_when="comparison with the literature",
        uses_interventions=False,
        uses_known_edges=False,  # the search walks over whole equivalence classes
        uses_prior=False,
        seconds=power_law({11: 1.5, 20: 4.1}),
        num_bytes=mebibytes({11: 163, 20: 164}),
    )

    _without: ClassVar[str] = ", and does not use the structure prior."

    penalty: float = positive(1.0, zero=True)

    def _uses_score(self) -> bool:
        return not isinstance(self.score, str) or self.score not in _SEARCHED_FASTER or self._data.is_mixed

    def _uses_prior(self) -> bool:
        return self._uses_score()

    def _search(self, score: Score) -> bootstrap.Search:
        limit = score.constraints.max_parents
        if self._uses_score():
            return partial(
                ges.search_by,
                data=self._data,
                score=unbound_score(self._data, self.score),
                prior=score.structure_prior,
                max_parents=limit,
            )
        discrete = unbound_score(self._data, self.score) if self._data.is_discrete else None
        return partial(ges.search, discrete=discrete, max_parents=limit, penalty=self.penalty)


@keyword_parameters
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

    record = Method(
        name="bootstrap-pc",
        rank=100,
        label="bootstrapped PC algorithm",
        answer="no posterior",
        gives="frequencies under resampling, not a posterior",
        assumes="independence tests instead of the score; the prior is not used",
        use_when="comparison with the literature",
        extra="baselines",
        takes_mixed=False,
        uses_interventions=False,
        uses_prior=False,
        seconds=power_law({11: 2.6, 20: 13.6}),
        num_bytes=mebibytes({11: 208, 20: 209}),
    )

    alpha: float = fraction(0.05)

    def _score_notes(self, score: Score) -> tuple[str, ...]:
        return ()  # tests take its place

    def _search(self, score: Score) -> bootstrap.Search:
        import_causal_learn("graph")  # say here, not in the workers, that it is missing
        required, forbidden, _ = score.constraints
        return partial(
            pc.search,
            discrete=self._data.is_discrete,
            alpha=self.alpha,
            required=required,
            forbidden=forbidden,
        )
