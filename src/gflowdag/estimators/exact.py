"""The exact posterior as an estimator."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from gflowdag import exact
from gflowdag.data import Dataset
from gflowdag.errors import TooLargeError
from gflowdag.estimators.augmentation import Augmentation, Step
from gflowdag.estimators.base import StructureLearner
from gflowdag.estimators.cost import expected_rounds, seconds_of
from gflowdag.estimators.imputed_posterior import augmented_posterior
from gflowdag.estimators.method import Method, Problem
from gflowdag.estimators.parameters import keyword_parameters, whole
from gflowdag.exact.size import estimated_bytes, estimated_seconds
from gflowdag.graph.bits import compress, parent_masks
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.messages import counted, duration, memory
from gflowdag.runtime.progress import Progress
from gflowdag.runtime.threads import one_thread
from gflowdag.score import Score

_TABLES_WITH_SAMPLES = 100  # completed tables at least that samples are drawn from, where cells are missing

_SHORT = 12  # variables, up to which starting threads takes longer than they save


@keyword_parameters
class ExactPosterior(StructureLearner):
    """The posterior summed over all DAGs: exact evidence and marginals, independent samples, the best graph.

    Time grows as 3^d, memory as d 2^d.

    Args:
        max_variables: refuse more variables than this, with the time and memory that they would take; by
            default those that need more memory than there is.
        folder: where the state of a long computation is kept, in at most a fiftieth of its time.
        resume: continue the computation in `folder`.

    The other parameters are those of `StructureLearner`.
    """

    record = Method(
        name="exact",
        rank=20,
        label="exact posterior",
        answer="exact",
        gives="everything, exactly",
        checked_by="its sums run over all graphs",
        use_when="23 variables or fewer (seconds to 20, a minute or two at 23); each more takes three times "
        "as long and twice the memory",
        least_variables=1,
        seconds=estimated_seconds,
        num_bytes=estimated_bytes,
        needs_its_memory=True,
        uses_jax=False,
    )

    max_variables: int | None = whole(None)
    folder: str | Path | None = None
    resume: bool = False

    def _check(self, data: Dataset) -> None:
        super()._check(data)
        d = data.num_variables
        exact.check_size(d, self.max_variables)
        seconds = seconds_of_exact(data) * expected_rounds(data, self.completions)
        if self.budget is not None and seconds > self.budget:
            raise TooLargeError(
                f"the exact posterior of this table takes about {duration(seconds)}, more than the budget of "
                f"{duration(self.budget)}: raise the budget, or use auto or parent-set-mcmc, which keep to it"
            )
        if d > exact.MAX_VARIABLES:
            cost = f"{duration(seconds)} on two cores and {memory(estimated_bytes(d))}"
            warnings.warn(f"the exact posterior over {d} variables takes about {cost}", stacklevel=4)

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
        d = score.num_variables
        table = score.dense_table(memory_limit=exact.estimated_bytes(d))
        saved = None
        if self.folder is not None:
            saved = exact.Saved(self.folder, self._fingerprint(score, 0), d, resume=self.resume)
        answer = exact.posterior(table, progress=progress, max_variables=d, saved=saved)
        samples = exact.sample(table, self.num_samples, np.random.default_rng(seed), exact=answer)
        best, best_log_score = exact.map_graph(table)
        if saved is not None:
            saved.discard()
        nodes = np.arange(d)
        return Posterior(
            samples,
            score.names,
            method=self.method,
            log_scores=table[nodes, compress(parent_masks(samples), nodes)].sum(axis=1),
            marginals=answer.edge_probabilities,
            path_marginals=answer.path_probabilities,
            best_graph=best,
            log_evidence=answer.log_evidence,
            log_evidence_error=0.0,
            local_scores=table if d <= exact.MAX_VARIABLES else None,
            diagnosis=Diagnostics(
                "exact",
                f"All DAGs on {counted(d, 'variable')} were summed; the samples are independent draws.",
                ess=1.0,
                best_log_score=best_log_score,
                extra={"rounding": answer.discrepancy},
            ),
        )

    def _infer_with_gaps(self, augmentation: Augmentation, seed: int, progress: Progress) -> Posterior:
        per_table = -(-self.num_samples // _TABLES_WITH_SAMPLES)

        def draw_graphs(score: Score, number: int, rng: np.random.Generator) -> Step:
            d = score.num_variables
            with one_thread() if d <= _SHORT else nullcontext():
                table = score.dense_table(memory_limit=exact.estimated_bytes(d))
                answer = exact.posterior(table, max_variables=d)
                graphs = exact.sample(table, per_table, rng, exact=answer)
            return Step(graphs, answer.edge_probabilities, answer.log_evidence, answer.path_probabilities)

        return augmented_posterior(self, augmentation, draw_graphs, seed=seed, progress=progress)


def seconds_of_exact(data: Dataset) -> float:
    """Rough time that the exact posterior of a table takes."""
    return seconds_of(ExactPosterior.record, Problem.of(data), data.num_rows) or 0.0
