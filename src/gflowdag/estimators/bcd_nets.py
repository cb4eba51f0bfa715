"""BCD Nets: a variational posterior over the order of the variables and the weights of a linear model."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from gflowdag.baselines import bcd_nets
from gflowdag.errors import TrainingError
from gflowdag.estimators.base import SHARE_OF_SEARCH, StructureLearner
from gflowdag.estimators.method import Method, mebibytes, power_law
from gflowdag.estimators.parameters import keyword_parameters, positive, whole
from gflowdag.graph.bits import graph_keys
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.progress import Progress
from gflowdag.score import Score


@keyword_parameters
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

    The other parameters are those of `StructureLearner`.
    """

    record = Method(
        name="bcd-nets",
        rank=120,
        label="variational orders and weights",
        answer="unverified",
        gives="variational samples",
        assumes="a linear Gaussian model of its own, with a horseshoe prior on the weights; "
        "the prior of the graphs is not used",
        use_when="comparison with the literature",
        takes_discrete=False,
        uses_interventions=False,
        uses_known_edges=False,  # an order and a triangular matrix cannot keep or leave out one edge
        uses_max_parents=False,
        uses_prior=False,
        seconds=power_law({11: 48, 20: 60}),
        num_bytes=mebibytes({5: 458, 11: 474}),
    )

    equal_variances: bool = False
    num_steps: int = whole(20_000)
    batch_size: int = whole(16)
    num_permutations: int = whole(4, least=2)
    learning_rate: float = positive(1e-3)
    degree: float = positive(2.0)
    threshold: float = positive(0.3, zero=True)

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
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
        chunk = 50 if self._deadline.is_set else 500
        params, bounds = bcd_nets.run(
            fit_key[None],
            data,
            config,
            chunk=chunk,
            deadline=self._deadline.share(SHARE_OF_SEARCH),
            progress=progress,
        )
        (weights,) = bcd_nets.sample_weights(
            sample_key[None], params, config, score.num_variables, self.num_samples
        )
        posterior = bcd_posterior(score, np.asarray(weights), bounds[:, 0], self.threshold)
        done = min(len(bounds) * chunk, self.num_steps) / self.num_steps
        return posterior.with_diagnostics(share_done=done)


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
