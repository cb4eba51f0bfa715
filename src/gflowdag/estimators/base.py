"""What every estimator shares: the scikit-learn form, the way from a table to a score, seeds and progress."""

from __future__ import annotations

import hashlib
import time
import warnings
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from gflowdag.data import Constraints, Dataset, Knowledge
from gflowdag.data.description import TableDescription
from gflowdag.errors import DataError, KnowledgeError, MissingExtraError, ModelWarning, ScoreError
from gflowdag.estimators.method import (
    DISCRETE,
    INTERVENTIONS,
    KNOWN_EDGES,
    MAX_PARENTS,
    MIXED,
    Method,
    Problem,
)
from gflowdag.estimators.parameters import check_parameters, keyword_parameters, positive, whole
from gflowdag.estimators.registry import estimator_classes
from gflowdag.estimators.sklearn_form import SklearnForm
from gflowdag.posterior.assumed import assumed_directions
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.incomplete_table import IncompleteTable
from gflowdag.posterior.model_fit import check_residuals
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.host_calls import host_errors
from gflowdag.runtime.messages import counted, duration
from gflowdag.runtime.place import option, typed
from gflowdag.runtime.precision import double_precision_scope
from gflowdag.runtime.processes import agreed
from gflowdag.runtime.progress import Progress, progress_bar
from gflowdag.runtime.randomness import generator
from gflowdag.score import Prior, Score, UnboundScore, make_score

if TYPE_CHECKING:
    import pandas as pd
    from pgmpy.base import DAG
    from sklearn.utils import Tags

    from gflowdag.estimators.augmentation import Augmentation

SHARE_OF_SEARCH = 0.9  # of a budget, for chains or optimisation; the rest is for judging what they found
SHARE_OF_CHAINS = 0.4  # of a budget, at most, for the chains that a network learns from
_SHARE_OF_SAMPLING = 0.2  # of a budget is kept for drawing and weighing the samples
_LEAST_TRAINING = 0.1  # seconds, however little is left
_REMEDIES = {  # about data and knowledge that a method cannot use
    DISCRETE: "needs continuous columns: make them continuous",
    MIXED: "needs columns of one kind: cut the continuous ones into bins",
    INTERVENTIONS: "cannot use interventional data: drop the intervened rows",
    KNOWN_EDGES: "cannot use required or forbidden edges, nor tiers: leave them out of the knowledge",
    MAX_PARENTS: "cannot limit the number of parents: leave that limit out",
}


@keyword_parameters
class StructureLearner(SklearnForm):
    """Base of all methods: `fit` a table, then ask `posterior_`.

    A method is a dataclass with a `record`, its own parameters, and `_infer`.

    Args:
        score: `"auto"` (BGe for continuous, BDeu for discrete columns, the generalised linear score for both
            kinds), `"bge"`, `"bdeu"`, `"bde"` (BDeu with equivalent sample size 1 and no limit on the cells
            of a family), `"generalized-linear"`, `"conditional-gaussian"` or `"degenerate-gaussian"` (columns
            of both kinds), or a score object:
            `BGe(alpha_w=20)`, `BDeu(ess=10)`, a `LocalScore` of your own.
        prior: structure prior, `"auto"` (`"fair"`), `"fair"`, `"uniform"`, `"erdos-renyi"`, `"edge"`, or a
            prior object.
        knowledge: required and forbidden edges, tiers, maximum number of parents.
        standardize: scale continuous columns to mean 0 and standard deviation 1.
        num_samples: number of graphs to return.
        random_state: seed; the same seed gives the same samples.
        verbose: show progress.
        completions: number of completed tables, where cells are missing; by default as many as are needed for
            small errors, or 10 where each of them is fitted by itself.
        budget: seconds that `fit` may take. What has begun is finished: a step of the chains, one of the
            resampled searches, the table of local scores.
    """

    record: ClassVar[Method]
    method: ClassVar[str]  # the name in the record

    score: str | UnboundScore = "auto"
    prior: str | Prior = "auto"
    knowledge: Knowledge | None = None
    standardize: bool = True
    num_samples: int = whole(1000)
    random_state: int | np.random.Generator | None = None
    verbose: bool = False
    budget: float | None = positive(None)
    completions: int | None = whole(None)

    _deadline = Deadline()  # of the fit that is running

    @property
    def deadline(self) -> Deadline:
        """Of the fit that is running."""
        return self._deadline

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "record" in vars(cls):
            cls.method = cls.record.name

    def fit(self, X: Any, y: Any = None, *, interventions: Any = None) -> Self:
        """Infer the posterior over the graphs that could have produced `X`.

        Args:
            X: `Dataset`, pandas or polars DataFrame, or array, shape [rows, variables].
            y: ignored, present for scikit-learn.
            interventions: which variable was set from outside in which row; see `Dataset.from_frame`.
        """
        with double_precision_scope() if self._uses_jax() else nullcontext():
            return self._fit(X, interventions)

    def _fit(self, X: Any, interventions: Any) -> Self:
        check_parameters(self)
        self._deadline = Deadline.after(self.budget)
        if self.knowledge is not None and not isinstance(self.knowledge, Knowledge):
            raise KnowledgeError(
                f"knowledge must be a Knowledge object, not {type(self.knowledge).__name__}: "
                'Knowledge(forbidden=[("a", "b")])'
            )
        data = Dataset.as_dataset(
            X, interventions=interventions, knowledge=self.knowledge, standardize=self.standardize
        )
        self._check(data)
        augmentation = None if data.missing is None else self._augmentation(data)
        score = self._make_score(data) if augmentation is None else augmentation.score(augmentation.filled())
        for caution in score.likelihood.cautions:
            warnings.warn(caution, ModelWarning, stacklevel=3)
        if score.likelihood.forbidden_edges is not None and not self.record.uses_known_edges:
            raise ScoreError(
                f"{self._name()} cannot leave out edges, and {self.score!r} has no likelihood for some: use "
                f"{option('score', 'generalized-linear')}, or another method"
            )
        known = (data.knowledge or Knowledge()).resolve(data.names)
        seed = int(generator(self.random_state).integers(2**31))
        self._data = data
        started = time.perf_counter()
        with host_errors(), progress_bar(self.method, enabled=self.verbose) as progress:
            if augmentation is None:
                posterior = self._infer(score, seed, progress)
            else:
                posterior = self._infer_with_gaps(augmentation, seed, progress)
        seconds = time.perf_counter() - started
        parameters = None if data.missing is not None else score.likelihood.parameter_posterior
        incomplete = None if data.missing is None else IncompleteTable.of(data, self.score, score)
        posterior = replace(
            posterior, table=TableDescription.of(data), parameters=parameters, incomplete=incomplete
        )
        self.posterior_ = posterior.with_diagnostics(
            seconds=seconds,
            model_fit=check_residuals(posterior, data),
            notes=(*data.notes, *self._score_notes(score), *_limit_notes(known), *self._prior_notes()),
            assumed_directions=assumed_directions(posterior, _forced_directions(score, known)),
            interventional=True if data.intervened is not None else None,
            knowledge=True if known.rules_out_graphs else None,
            uses_prior=None if self._uses_prior() else False,
            share_done=None if self.budget is None else posterior.diagnosis.share_done,
            explanation=_explained(posterior.diagnosis, self.budget),
        )
        self.score_ = score
        self.n_features_in_ = data.num_variables
        self.feature_names_in_ = np.array(data.names, dtype=object)
        return self

    @property
    def adjacency_matrix_(self) -> pd.DataFrame:
        """The best graph, 0/1 [source, target], under the name that pgmpy gives it."""
        return self.posterior_.map_graph().astype(int)

    @property
    def causal_graph_(self) -> DAG:
        """The best graph as pgmpy has it, under its name there."""
        try:
            return self.posterior_.to_pgmpy()
        except MissingExtraError as error:  # scikit-learn's `dir` takes any other error for a crash
            raise AttributeError(str(error)) from error

    @property
    def structure_prior(self) -> str | Prior:
        """The structure prior, where the user named none the default."""
        return "fair" if self.prior == "auto" else self.prior

    def _prior_notes(self) -> tuple[str, ...]:
        """What is to be known of the structure prior."""
        return ()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True  # text columns are discrete variables
        tags.input_tags.allow_nan = True  # missing cells are imputed
        return tags

    @classmethod
    def _name(cls) -> str:
        """The method as the user calls it."""
        return typed(python=cls.__name__, command_line=cls.method)

    def _check(self, data: Dataset) -> None:
        """Refuse data and knowledge that this method cannot take, before anything is computed."""
        name, least = self._name(), self.record.least_variables
        if data.num_variables < least:
            raise DataError(
                f"{name} needs {least} variables, got "
                + typed(python=f"n_features={data.num_variables}", command_line=f"{data.num_variables}")
                + ": one variable alone has one graph, the empty one"
            )
        problem = Problem.of(data)
        for what in self.record.unusable(problem):
            error = DataError if what in (DISCRETE, MIXED, INTERVENTIONS) else KnowledgeError
            raise error(f"{name} {_REMEDIES[what]}, or use {_alternatives(problem)}")

    def _fingerprint(self, score: Score, seed: int, *settings: Any) -> str:
        """What a checkpoint must agree on: data, score, prior, knowledge, seed and `settings`."""
        constraints = [np.asarray(part).tolist() for part in score.constraints]
        asked = (self.method, self._data.sha256, self.score, score.prior, constraints, seed, settings)
        return hashlib.sha256(repr(asked).encode()).hexdigest()

    def _score_notes(self, score: Score) -> tuple[str, ...]:
        """What is to be known of the score."""
        return score.likelihood.notes

    def _uses_jax(self) -> bool:
        """Whether JAX may be called: by the method, or by a score or a prior of the user's own."""
        own = [part for part in (self.score, self.prior) if not isinstance(part, str)]
        return self.record.uses_jax or not all(type(part).__module__.startswith("gflowdag.") for part in own)

    def _uses_prior(self) -> bool:
        """Whether the structure prior enters the answer, with these parameters."""
        return self.record.uses_prior

    def for_completed_table(self, data: Dataset, share: float, num_tables: int) -> Self:
        """A copy that infers from one of several completed tables, in a share of the time that is left."""
        learner = self.unfitted()
        learner.set_params(num_samples=-(-self.num_samples // num_tables))
        if "folder" in self.parameter_names():
            learner.set_params(folder=None)
        learner._data, learner._deadline = data, self._deadline.share(share)
        return learner

    def _make_score(self, data: Dataset) -> Score:
        return make_score(data, score=self.score, prior=self.structure_prior, knowledge=data.knowledge)

    def _augmentation(self, data: Dataset) -> Augmentation:
        """What completes a table with gaps, or a refusal where the score does not know how."""
        from gflowdag.estimators.augmentation import Augmentation
        from gflowdag.score.missing_cells import cell_draws

        return Augmentation(data, cell_draws(data, self.score), self._make_score)

    def _infer_with_gaps(self, augmentation: Augmentation, seed: int, progress: Progress) -> Posterior:
        """The posterior of a table with gaps: here of some completed tables, each fitted by itself."""
        from gflowdag.estimators.completed_tables import fit_completed_tables

        return fit_completed_tables(self, augmentation, seed, progress)

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
        raise NotImplementedError


@keyword_parameters
class TrainedLearner(StructureLearner):
    """Base of the methods that train a network.

    Args:
        iterations: training steps.
        devices: number of devices that share each batch, or `"all"`; one by default.
        folder: where checkpoints and metrics are written.
        resume: continue from the checkpoint in `folder`.
    """

    iterations: int | None = whole(None)
    devices: int | str | None = None
    folder: str | Path | None = None
    resume: bool = False

    def _seconds_to_train(self, reserved: float = 0.0) -> float | None:
        """What the budget leaves for training, with time to draw the samples set aside; None without one.

        Args:
            reserved: seconds that something else will take after training.
        """
        if self.budget is None:
            return None
        left = (1 - _SHARE_OF_SAMPLING) * (self._deadline.seconds_left - reserved)
        return float(agreed(max(left, _LEAST_TRAINING)))


def _limit_notes(known: Constraints) -> tuple[str, ...]:
    """The limit on the parents that was in force; what the score limits, it says itself."""
    limit, d = known.max_parents, len(known.forbidden)
    if limit is None or limit >= d - 1:
        return ()
    return (f"No variable has more than {counted(limit, 'parent')}, as requested.",)


def _forced_directions(score: Score, known: Constraints) -> NDArray[np.bool_]:
    """Edges `i → j` whose reverse the score alone rules out, bool [d, d]."""
    excluded = score.likelihood.forbidden_edges
    if excluded is None:
        return np.zeros_like(known.forbidden)
    return (excluded & ~known.forbidden).T & ~score.constraints.forbidden


def _explained(diagnosis: Diagnostics, budget: float | None) -> str:
    """The explanation, with a sentence on the work that the budget left undone."""
    done = diagnosis.share_done
    if budget is None or done is None or done >= 1:
        return diagnosis.explanation
    ended = f" The budget of {duration(budget)} ended it after {done:.0%} of the planned work."
    return diagnosis.explanation + ended


def _alternatives(problem: Problem) -> str:
    """All methods that take a problem."""
    able = [kind._name() for kind in estimator_classes() if kind.record.refusal(problem) is None]
    return able[0] if len(able) == 1 else "one of " + ", ".join(able)
