"""What every estimator shares: the scikit-learn form, the way from a table to a score, seeds and progress."""

from __future__ import annotations

import hashlib
import math
import time
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from gflowdag.data import Dataset, Knowledge
from gflowdag.errors import DataError, GFlowDAGError, KnowledgeError
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.precision import double_precision
from gflowdag.runtime.progress import Progress, progress_bar
from gflowdag.score import Score, make_score


class StructureLearner(BaseEstimator):
    """Base of all methods: `fit` a table, then ask `posterior_`.

    A method is a subclass with `method`, its own parameters, and `_infer`.

    Args:
        score: `"auto"` (BGe for continuous, BDeu for discrete data), `"bge"` or `"bde"`.
        prior: structure prior, `"uniform"`, `"erdos-renyi"`, `"edge"`, `"fair"`, or a prior object.
        knowledge: required and forbidden edges, tiers, maximum number of parents.
        standardize: scale continuous columns to mean 0 and standard deviation 1.
        num_samples: number of graphs to return.
        random_state: seed; the same seed gives the same samples.
        verbose: show progress.
    """

    method: str = "abstract"
    supports_interventions: bool = True
    least_variables: int = 2

    def __init__(
        self,
        *,
        score: str = "auto",
        prior: Any = "uniform",
        knowledge: Knowledge | None = None,
        standardize: bool = True,
        num_samples: int = 1000,
        random_state: int | np.random.Generator | None = None,
        verbose: bool = False,
    ) -> None:
        self.score = score
        self.prior = prior
        self.knowledge = knowledge
        self.standardize = standardize
        self.num_samples = num_samples
        self.random_state = random_state
        self.verbose = verbose

    @double_precision
    def fit(self, X: Any, y: Any = None, *, interventions: Any = None) -> Self:
        """Infer the posterior over the graphs that could have produced `X`.

        Args:
            X: `Dataset`, pandas or polars DataFrame, or array, shape [rows, variables].
            y: ignored, present for scikit-learn.
            interventions: which variable was set from outside in which row; see `Dataset.from_frame`.
        """
        self._check_counts("num_samples")
        if self.knowledge is not None and not isinstance(self.knowledge, Knowledge):
            raise KnowledgeError(
                f"knowledge must be a Knowledge object, not {type(self.knowledge).__name__}: "
                'Knowledge(forbidden=[("a", "b")])'
            )
        data = Dataset.as_dataset(
            X, interventions=interventions, knowledge=self.knowledge, standardize=self.standardize
        )
        self._check(data)
        score = make_score(data, score=self.score, prior=self.prior, knowledge=data.knowledge)
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        self._data = data
        started = time.perf_counter()
        with progress_bar(self.method, enabled=self.verbose) as progress:
            posterior = self._infer(score, seed, progress)
        self.posterior_ = posterior.with_diagnostics(
            seconds=time.perf_counter() - started,
            notes=data.notes,
            interventional=True if data.intervened is not None else None,
            knowledge=True if score.constraints.rules_out_graphs else None,
        )
        self.score_ = score
        self.n_features_in_ = data.num_variables
        self.feature_names_in_ = np.array(data.names, dtype=object)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True  # text columns are discrete variables
        return tags

    def _check_counts(self, *options: str, least: int = 1) -> None:
        """Refuse options that are no whole number, or below `least`."""
        for name in options:
            value = getattr(self, name)
            if not isinstance(value, Integral) or int(value) < least:
                raise GFlowDAGError(f"{name} must be {least} or more, got {value!r} (whole numbers only)")

    def _check_numbers(self, *options: str, zero: bool = False) -> None:
        """Refuse options that are no finite positive number; `zero` is allowed where it means something."""
        for name in options:
            value = getattr(self, name)
            number = float(value) if isinstance(value, Real) else math.nan
            if not (0 < number < math.inf or (zero and number == 0)):
                kind = "0 or a positive number" if zero else "a positive number"
                raise GFlowDAGError(f"{name} must be {kind}, got {value!r}")

    def _check(self, data: Dataset) -> None:
        """Refuse data that this method cannot take, before anything is computed."""
        if data.num_variables < self.least_variables:
            raise DataError(
                f"{type(self).__name__} needs {self.least_variables} variables, got n_features="
                f"{data.num_variables}: one variable alone has one graph, the empty one"
            )
        if data.intervened is not None and not self.supports_interventions:
            raise DataError(
                f"{type(self).__name__} cannot use interventional data: drop the intervened rows, or use a "
                "method that can (ExactPosterior, OrderGFlowNet, DAGGFlowNet, OrderMCMC, MC3, DiBS)"
            )

    def _fingerprint(self, score: Score, seed: int, *settings: Any) -> str:
        """What a checkpoint must agree on: data, score, prior, knowledge, seed and `settings`."""
        constraints = [np.asarray(part).tolist() for part in score.constraints]
        asked = (self.method, self._data.sha256, self.score, score.prior, constraints, seed, settings)
        return hashlib.sha256(repr(asked).encode()).hexdigest()

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
        raise NotImplementedError
