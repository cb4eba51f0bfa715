"""DiBS: particles in a latent space of graphs, moved by Stein variational gradient descent."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from gflowdag.baselines import dibs
from gflowdag.baselines.graph_score import graph_score
from gflowdag.errors import TrainingError
from gflowdag.estimators.base import SHARE_OF_SEARCH, StructureLearner
from gflowdag.estimators.method import Method, mebibytes, power_law
from gflowdag.estimators.parameters import keyword_parameters, one_of, positive, whole
from gflowdag.graph.bits import graph_keys
from gflowdag.graph.closure import is_acyclic
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.progress import Progress
from gflowdag.score import Score
from gflowdag.score.base import MAX_TABLE_VARIABLES


@keyword_parameters
class DiBS(StructureLearner):
    """Marginal DiBS (Lorch et al. 2021) with the score and structure prior of this library.

    Every particle ends as one graph. Cyclic ones (the method only discourages cycles) are counted and left
    out; the samples are `num_samples` systematic draws from the mixture of the others, so with more samples
    than particles graphs repeat.

    Forbidden and required edges are kept out of, or in, every graph; graphs with more than the allowed number
    of parents are penalised while particles move, and left out at the end. Interventions work through the
    score.

    Args:
        num_particles: particles, hence the largest number of distinct graphs.
        num_steps: updates of all particles; sharpness and cycle cost grow in proportion to the step.
        weighting: `"equal"`, every particle counts alike ("DiBS"), or `"score"`, every distinct graph counts
            in proportion to its posterior probability ("DiBS+").
        learning_rate: of RMSProp.
        num_graphs: graphs per particle and step from which the gradient of the score is estimated.
        sharpness: α at step t is `sharpness · t`.
        cycle_cost: β at step t is `cycle_cost · t`.
        bandwidth: of the Stein kernel.

    The other parameters are those of `StructureLearner`.
    """

    record = Method(
        name="dibs",
        rank=110,
        label="Stein variational particles",
        answer="unverified",
        gives="variational samples",
        use_when="comparison with the literature",
        discrete_measured=MAX_TABLE_VARIABLES,  # beyond, scores are computed on demand
        seconds=power_law({5: 16, 11: 65, 20: 136}),
        num_bytes=mebibytes({5: 278, 11: 278, 20: 785}),
    )

    num_particles: int = whole(30)
    num_steps: int = whole(3000)
    weighting: str = one_of("equal", ("equal", "score"))
    learning_rate: float = positive(0.005)
    num_graphs: int = whole(128)
    sharpness: float = positive(1.0)
    cycle_cost: float = positive(1.0, zero=True)
    bandwidth: float = positive(5.0)

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
        target = dibs_target(score)
        config = dibs.Config(
            num_particles=self.num_particles,
            num_steps=self.num_steps,
            learning_rate=self.learning_rate,
            sharpness=self.sharpness,
            cycle_cost=self.cycle_cost,
            bandwidth=self.bandwidth,
            num_graphs=self.num_graphs,
        )
        batched = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], target)
        (latents,), done = dibs.run(
            jax.random.key(seed)[None],
            batched,
            config,
            chunk=10 if self._deadline.is_set else 100,
            deadline=self._deadline.share(SHARE_OF_SEARCH),
            progress=progress,
        )
        rng = np.random.default_rng(seed)
        posterior = dibs_posterior(score, latents, self.weighting, self.num_samples, rng)
        return posterior.with_diagnostics(share_done=done / self.num_steps)


def dibs_target(score: Score) -> dibs.Target:
    """Score and free edges as DiBS takes them; NumPy leaves, to be stacked over data sets."""
    constraints = score.constraints
    forbidden = constraints.forbidden | np.eye(score.num_variables, dtype=bool)
    return dibs.Target(graph_score(score), constraints.required, forbidden)


def dibs_posterior(
    score: Score, latents: np.ndarray, weighting: str, num_samples: int, rng: np.random.Generator
) -> Posterior:
    """The posterior that trained particles stand for.

    Args:
        score: score of the data set.
        latents: particles, float [m, 2, d, k].
        weighting: `"equal"` or `"score"`.
        num_samples: number of graphs to draw from the mixture.
        rng: source of randomness.
    """
    if not np.isfinite(latents).all():
        raise TrainingError("DiBS diverged: lower learning_rate, or standardize the table")
    target = dibs_target(score)
    particles = dibs.particle_graphs(latents, np.asarray(target.required), np.asarray(target.forbidden))
    acyclic = is_acyclic(particles)
    if not acyclic.any():
        raise TrainingError(
            "every DiBS particle ended in a cyclic graph: raise num_steps, cycle_cost or the budget"
        )
    graphs, counts = _distinct(particles[acyclic])
    log_scores = score.log_score(graphs)
    allowed = np.isfinite(log_scores)
    if not allowed.any():
        raise TrainingError("every DiBS particle breaks the prior knowledge: raise num_steps or max_parents")
    masses = counts if weighting == "equal" else np.exp(log_scores - log_scores.max())
    masses = np.where(allowed, masses, 0.0) / masses[allowed].sum()
    positions = (np.arange(num_samples) + rng.random()) / num_samples
    index = np.minimum(np.searchsorted(np.cumsum(masses), positions), len(graphs) - 1)
    num_cyclic = int((~acyclic).sum())
    num_breaking = int(counts[~allowed].sum())
    return Posterior(
        samples=graphs[index],
        names=score.names,
        method="dibs",
        log_scores=log_scores[index],
        marginals=np.tensordot(masses, graphs, axes=1),
        diagnosis=Diagnostics(
            "unverified",
            (
                f"DiBS cannot tell how close its {len(particles)} particles are to the posterior. "
                f"{num_cyclic} ended in cyclic graphs and {num_breaking} broke the prior knowledge; "
                "they are left out."
            ),
            extra={
                "num_particles": len(particles),
                "num_cyclic": num_cyclic,
                "cyclic_fraction": num_cyclic / len(particles),
                "num_breaking_knowledge": num_breaking,
                "num_distinct": int(allowed.sum()),
                "weighting": weighting,
            },
        ),
    )


def _distinct(graphs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct graphs [u, d, d] and how often each occurs [u]."""
    _, first, counts = np.unique(graph_keys(graphs), return_index=True, return_counts=True)
    return graphs[first], counts
