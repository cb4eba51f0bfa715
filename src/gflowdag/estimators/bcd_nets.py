"""BCD Nets: a variational posterior over the order of the variables and the weights of a linear model."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gflowdag.baselines import bcd_nets
from gflowdag.data import Constraints, Knowledge
from gflowdag.errors import DataError, KnowledgeError, TrainingError
from gflowdag.estimators.base import StructureLearner
from gflowdag.graph.bits import graph_keys
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.progress import Progress
from gflowdag.score import Score


class BCDNets(StructureLearner):
    """BCD Nets (Cundy, Grover & Ermon 2021) for continuous, observational data.

    The method has a model of its own: linear-Gaussian with a horseshoe prior on the weights. `score` and
    `prior` only give the `log_scores` of the sampled graphs. Knowledge and interventions are refused: a
    permutation and a triangular matrix cannot be told to keep or leave out one edge.

    A graph has the edges whose weight exceeds `threshold`, in the units of the table: with
    `standardize=False` the scale of the columns matters, and with equal variances their order is nearly given
    by it.

    Args:
        equal_variances: whether the noise of all variables has one variance.
        num_steps: gradient steps.
        batch_size: draws of weights and noise per step.
        num_permutations: permutations for each of them, at least 2.
        learning_rate: of AdaBelief.
        degree: expected number of edges per node, sets the scale of the horseshoe prior.
        threshold: smallest absolute weight that counts as an edge.

    The other parameters are those of every estimator, see `StructureLearner`.
    """

    method = "bcd-nets"
    supports_interventions = False

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
        equal_variances: bool = False,
        num_steps: int = 20_000,
        batch_size: int = 16,
        num_permutations: int = 4,
        learning_rate: float = 1e-3,
        degree: float = 2.0,
        threshold: float = 0.3,
    ) -> None:
        super().__init__(
            score=score,
            prior=prior,
            knowledge=knowledge,
            standardize=standardize,
            num_samples=num_samples,
            random_state=random_state,
            verbose=verbose,
        )
        self.equal_variances = equal_variances
        self.num_steps = num_steps
        self.batch_size = batch_size
        self.num_permutations = num_permutations
        self.learning_rate = learning_rate
        self.degree = degree
        self.threshold = threshold

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
        self._check_counts("num_steps", "batch_size")
        self._check_counts("num_permutations", least=2)
        self._check_numbers("learning_rate", "degree")
        self._check_numbers("threshold", zero=True)
        if not self._data.is_continuous:
            raise DataError(
                "BCDNets needs continuous columns: use DiBS, OrderMCMC or ExactPosterior on discrete data"
            )
        _refuse_knowledge(score.constraints)
        config = bcd_nets.Config(
            equal_variances=self.equal_variances,
            num_steps=self.num_steps,
            batch_size=self.batch_size,
            num_permutations=self.num_permutations,
            learning_rate=self.learning_rate,
            degree=self.degree,
        )
        data = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], bcd_nets.moments(self._data.values))
        fit_key, sample_key = jax.random.split(jax.random.key(seed))
        params, bounds = bcd_nets.run(fit_key[None], data, config, progress=progress)
        (weights,) = bcd_nets.sample_weights(
            sample_key[None], params, config, score.num_variables, self.num_samples
        )
        return bcd_posterior(score, np.asarray(weights), bounds[:, 0], self.threshold)


def bcd_posterior(score: Score, weights: np.ndarray, bounds: np.ndarray, threshold: float) -> Posterior:
    """The posterior that sampled weighted DAGs stand for.

    Args:
        score: score of the data set, for `log_scores`.
        weights: float [n, d, d], rows are sources.
        bounds: mean evidence lower bound of each stretch of training, float [chunks].
        threshold: smallest absolute weight that counts as an edge.
    """
    if not (np.isfinite(bounds[-1]) and np.isfinite(weights).all()):
        raise TrainingError("BCD Nets diverged: lower learning_rate, or standardize the table")
    samples = np.abs(weights) > threshold
    return Posterior(
        samples=samples,
        names=score.names,
        method="bcd-nets",
        log_scores=score.log_score(samples),
        diagnosis=Diagnostics(
            "unverified",
            (
                "BCD Nets maximise a lower bound under a model of their own (horseshoe prior on the weights, "
                f"edges above {threshold:g}); nothing measures how close that is to the posterior of the "
                "score, and the structure prior is not used."
            ),
            extra={
                "elbo": float(bounds[-1]),
                "elbo_gain": float(bounds[-1] - bounds[-2]) if len(bounds) > 1 else None,
                "num_distinct": len(np.unique(graph_keys(samples))),
                "threshold": threshold,
            },
        ),
    )


def _refuse_knowledge(constraints: Constraints) -> None:
    """Knowledge that BCD Nets cannot honour is an error, not a silence."""
    forbidden = constraints.forbidden & ~np.eye(len(constraints.forbidden), dtype=bool)
    if constraints.required.any() or forbidden.any() or constraints.max_parents is not None:
        raise KnowledgeError(
            "BCDNets cannot honour required or forbidden edges, tiers or max_parents: it draws an order and "
            "a full triangular matrix of weights. Use DiBS, MC3, OrderMCMC or ExactPosterior"
        )
