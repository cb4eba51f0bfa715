"""One DAG-GFlowNet trained on several data sets of equal size at once, as one stack on one device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax import Array

from gflowdag.data import Dataset
from gflowdag.estimators.dag_gflownet import DAGGFlowNet
from gflowdag.gflownet.spaces import Policy, StateSpace
from gflowdag.gflownet.stacked import Stacked, stacked_optimizer, unstack
from gflowdag.gflownet.trainer import clipped_adam, train
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.randomness import generator
from gflowdag.score import Score, make_score


class TrainedStack(NamedTuple):
    """Policies of several data sets, trained at once."""

    estimator: DAGGFlowNet
    scores: list[Score]
    spaces: Sequence[StateSpace]
    params: Any  # leaves have a leading axis [data sets]
    iterations: int
    seed: int
    key: Array  # for sampling

    def policy(self, index: int) -> Policy:
        """The policy of one data set."""
        return unstack(self.params, index)

    def posterior(self, index: int) -> Posterior:
        """What the policy of one data set says."""
        return self.estimator.posterior_of(
            self.scores[index],
            self.seed + index,
            self.spaces[index],
            self.policy(index),
            jax.random.fold_in(self.key, index),
            self.iterations,
        )


def train_together(
    estimator: DAGGFlowNet,
    tables: Sequence[Dataset],
    progress: Progress = silent,
    folder: Path | None = None,
) -> TrainedStack:
    """Train on several data sets of equal size at once, with the settings of `estimator`.

    Call it in double precision (`runtime.double_precision`). With a `folder`, checkpoints are left there,
    and training goes on from the last of them.
    """
    seed = int(generator(estimator.random_state).integers(2**31))
    scores = [make_score(table, score=estimator.score, prior=estimator.structure_prior) for table in tables]
    estimator = estimator.for_score(scores[0])
    preset = estimator.training_preset(scores[0].num_variables)
    learners = [estimator.make_learner(score, preset, seed + index) for index, score in enumerate(scores)]
    train_key, sample_key = jax.random.split(jax.random.key(seed))
    trained = train(
        Stacked(learners),
        train_key,
        iterations=estimator.iterations if estimator.budget is not None else preset.iterations,
        budget=estimator.budget,
        options=preset.options,
        optimizer=stacked_optimizer(clipped_adam(preset.options)),
        folder=folder,
        resume=folder is not None,
        progress=progress,
    )
    spaces = [learner.space for learner in learners]
    return TrainedStack(estimator, scores, spaces, trained.params, trained.iterations, seed, sample_key)
