"""The DAG-GFlowNet with fewer graphs behind its diagnostics, where the paper's network is slow to sample."""

from __future__ import annotations

from typing import Any

import jax

from gflowdag.estimators.dag_gflownet import DAGGFlowNet, weighted_posterior
from gflowdag.gflownet.rollout import sample_dags
from gflowdag.gflownet.trainer import train
from gflowdag.posterior import Posterior
from gflowdag.progress import Progress
from gflowdag.score import Score


class BriefDAGGFlowNet(DAGGFlowNet):
    """`DAGGFlowNet` with a choice of how many graphs are drawn, and in batches of which size.

    A forward pass of the paper's network costs 10 million operations per pair of variables: 10,000 graphs of
    20 variables would take hours on a processor core.

    Args:
        num_weighted: graphs behind the evidence, the diagnostics and the edge marginals.
        sampling_batch: graphs that are drawn side by side.
        options: of `DAGGFlowNet`.
    """

    def __init__(self, *, num_weighted: int = 10_000, sampling_batch: int = 1000, **options: Any) -> None:
        super().__init__(**options)
        self.num_weighted = num_weighted
        self.sampling_batch = sampling_batch

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
        preset = self._preset()
        learner = self._learner(score, preset)
        train_key, sample_key = jax.random.split(jax.random.key(seed))
        trained = train(
            learner,
            train_key,
            iterations=preset.iterations if self.budget is None else None,
            budget=self.budget,
            options=preset.options,
            progress=progress,
        )
        count = max(self.num_weighted, self.num_samples)
        samples = sample_dags(learner.space, trained.params, sample_key, count, batch=self.sampling_batch)
        posterior = weighted_posterior(score, samples, self.num_samples)
        posterior.details.update(preset=self.preset, iterations=trained.iterations)  # pyright: ignore
        return posterior
