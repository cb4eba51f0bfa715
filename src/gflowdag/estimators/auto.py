"""`method="auto"`: the best answer that is within reach, and which one that was."""

from __future__ import annotations

from pathlib import Path

from gflowdag.estimators.augmentation import Augmentation
from gflowdag.estimators.base import StructureLearner
from gflowdag.estimators.cost import automatic_choice, expected_rounds
from gflowdag.estimators.method import Method, Problem
from gflowdag.estimators.parameters import check_parameters, keyword_parameters, whole
from gflowdag.estimators.registry import estimator_class
from gflowdag.exact.saved import METHOD as EXACT
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.checkpoints import CHECKPOINT, header_of
from gflowdag.runtime.progress import Progress, begin_phase
from gflowdag.score import Score


@keyword_parameters
class AutoPosterior(StructureLearner):
    """Exact where that takes about two minutes or less, or no more than the budget; else parent-set MCMC.

    One method answers, and the diagnostics say which and why (`chosen`).

    Args:
        budget: seconds that `fit` may take.
        iterations: sweeps of each chain at most, where chains answer.
        folder: where the state of a long computation is kept.
        resume: continue what `folder` holds.

    The other parameters are those of `StructureLearner`.
    """

    record = Method(
        name="auto",
        rank=10,
        label="automatic choice",
        answer="of the method chosen",
        gives="the answer of the method that it chooses",
        checked_by="what checks that method",
        use_when="the best answer within reach",
        least_variables=1,
        delegates=True,
        uses_jax=False,
        continues=True,
    )

    iterations: int | None = whole(None)
    folder: str | Path | None = None
    resume: bool = False

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
        method, chosen = self._chosen(progress)
        return method._infer(score, seed, progress).with_diagnostics(chosen=chosen)

    def _infer_with_gaps(self, augmentation: Augmentation, seed: int, progress: Progress) -> Posterior:
        method, chosen = self._chosen(progress)
        return method._infer_with_gaps(augmentation, seed, progress).with_diagnostics(chosen=chosen)

    def _chosen(self, progress: Progress) -> tuple[StructureLearner, str]:
        """The method, ready to infer, and why."""
        data = self._data
        rounds = expected_rounds(data, self.completions)
        name, why = automatic_choice(Problem.of(data), data.num_rows, self.budget, rounds=rounds)
        if self.resume and self.folder is not None and (Path(self.folder) / CHECKPOINT).exists():
            if header_of(self.folder).get("method") == EXACT:
                name, why = "exact", "the folder holds its sums to continue"
            else:
                name, why = "parent-set-mcmc", "the folder holds chains to continue"
        chosen = estimator_class(name)
        known = set(chosen.parameter_names())
        method = chosen(**{name: value for name, value in self.get_params().items() if name in known})
        check_parameters(method)
        method._data, method._deadline = data, self._deadline
        begin_phase(progress, name)
        return method, f"{name}: {why}"
