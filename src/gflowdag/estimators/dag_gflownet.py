"""DAG-GFlowNet as an estimator: the paper's method, edge by edge."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.special import softmax

from gflowdag.errors import GFlowDAGError, TooLargeError
from gflowdag.estimators.base import SHARE_OF_CHAINS, TrainedLearner
from gflowdag.estimators.held_out import (
    downgrade_if_unseen,
    held_out_log_weights,
    order_chains,
    short_chains,
    unseen_share,
)
from gflowdag.estimators.method import Method, mebibytes, power_law
from gflowdag.estimators.paper_recipe import RETUNED, PaperRecipe
from gflowdag.estimators.parameters import keyword_parameters, one_of, positive, whole
from gflowdag.estimators.precise import downgrade_if_imprecise
from gflowdag.gflownet.balanced import balanced_dags
from gflowdag.gflownet.learners.edges import EdgeLearner
from gflowdag.gflownet.learners.likelihood import LikelihoodLearner
from gflowdag.gflownet.learners.paper import PaperLearner
from gflowdag.gflownet.objectives import OBJECTIVES
from gflowdag.gflownet.policies.canonical import CanonicalPolicy
from gflowdag.gflownet.policies.pairs import PairPolicy, default_width
from gflowdag.gflownet.sampling import Samples, sample
from gflowdag.gflownet.spaces import Policy, StateSpace
from gflowdag.gflownet.spaces.canonical import CanonicalSpace, canonical_space
from gflowdag.gflownet.spaces.edges import MAX_MEMORY, EdgeSpace, check_memory, edge_space
from gflowdag.gflownet.trainer import Options, train
from gflowdag.orders.candidates import dense_candidates
from gflowdag.orders.labels import likely_order
from gflowdag.posterior.importance import importance_diagnostics, importance_summary
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.devices import count_devices, data_parallel
from gflowdag.runtime.place import option
from gflowdag.runtime.progress import Progress, begin_phase, silent
from gflowdag.score import Prior, Score
from gflowdag.score.base import MAX_TABLE_VARIABLES

_NUM_CLONED = 100_000  # graphs of chains that the presets `canonical` and `chains` learn from
PAPERS_NETWORK = "0.2.0"  # version that last changed it: checkpoints of another network are refused


class Preset(NamedTuple):
    """Everything about training that the user did not set."""

    iterations: int
    batch_size: int
    options: Options


PRESETS = {
    "fast": Preset(2000, 128, Options(learning_rate=1e-3)),
    "paper": Preset(100_000, PaperRecipe().batch_size, PaperRecipe().options()),
    "retuned": Preset(12_000, RETUNED.batch_size, RETUNED.options()),
    "chains": Preset(10_000, 2048, Options(learning_rate=1e-3)),
    "canonical": Preset(4000, 1024, Options(learning_rate=1e-3)),
}
_AUTO = "auto"
_RECIPES = {"paper": PaperRecipe(), "retuned": RETUNED}
_MOST_FAST = 12  # variables up to which `fast` reaches the posterior in minutes
_FEW = 6  # variables up to which `fast` has soon tempered its reward; cooling down is then what is left to do


def preset_for(name: str, num_variables: int) -> Preset:
    """A preset's settings for so many variables."""
    preset = PRESETS[name]
    if name == "fast" and num_variables <= _FEW:
        return preset._replace(options=Options(learning_rate=2e-3, cooldown=0.75))
    return preset


@keyword_parameters
class DAGGFlowNet(TrainedLearner):
    """A GFlowNet that builds DAGs one edge at a time (Deleu et al. 2022).

    Samples are independent draws from the learnt policy. Every one carries the importance weight of its
    trajectory, which gives an estimate of the evidence and says how far the approximation can be trusted;
    where the weights can be trusted, they also correct the marginals.

    Args:
        preset: `"auto"` (default) takes `"fast"` up to 6 variables, `"canonical"` up to 20, then `"chains"`;
            with required edges, an `objective` or balanced draws, `"fast"` up to 12, then `"chains"`.
            `"canonical"`: nodes get their parents one after another, along the canonical order of each graph;
            learns from the graphs of Markov chains over orders. `"chains"`: the same, with edges in any
            order. `"fast"`: learns from its own trajectories. `"paper"`: the network, the recipe and (unless
            `prior` names another) the structure prior of the paper. `"retuned"`: the same method with a
            smaller network and a recipe of our own.
        recipe: constants of the preset `paper`, by default those of the official implementation. What is
            also set here (`batch_size`, `learning_rate`) is taken from here.
        iterations: training steps; by default those of the preset.
        budget: seconds that `fit` may take, which end the training; given with `iterations`, the first of the
            two ends it.
        objective: `"trajectory"` (default of `fast`), `"subtrajectory"` or `"detailed"` balance (the only
            one of `paper` and `retuned`).
        batch_size: trajectories (`fast`), transitions (`paper`, `retuned`) or states (`canonical`, `chains`)
            in a training step.
        learning_rate: of Adam; by default that of the preset.
        chain_steps: steps of the Markov chains that the presets `canonical` and `chains` learn from, a third
            of them burn-in.
        num_chains: chains side by side.
        num_weighted: graphs behind the evidence, the diagnostics and the edge marginals.
        sampling_batch: graphs that are drawn side by side, by default 250 on a CPU and 1000 on a GPU. It
            matters for speed alone: which graphs are drawn does not depend on it.
        draws: `"iid"` (default), or `"balanced"`: each graph follows the policy, but together they are spread
            evenly, so that marginals are several times closer to the policy's than those of independent
            graphs. Takes eight times as long to draw; the error of the evidence is then overstated.
        num_training_graphs: graphs of short Markov chains over orders. An eighth of the trajectories that
            `fast` learns from lead to them, so that it misses no mode that they find; 0: it learns from its
            own trajectories alone.
        num_held_out_graphs: graphs of other such chains. They show whether the policy never draws a part of
            the posterior; 0: it is not tested.

    The other parameters are those of `TrainedLearner` and `StructureLearner`.
    """

    record = Method(
        name="dag-gflownet",
        rank=50,
        label="GFlowNet over edges",
        answer="weighted, checks itself",
        gives="samples, evidence",
        checked_by="ESS and Pareto k of its weights, and held-out graphs of Markov chains",
        use_when="the method of the paper, edge by edge (up to about 20 variables)",
        most_variables=64,  # the trajectories of a batch fill the memory that they may take
        discrete_measured=MAX_TABLE_VARIABLES,  # beyond, scores are computed on demand
        trains=True,
        # Beyond 20, where `auto` takes `chains`: estimated from that preset at 20, with 14 candidates.
        seconds=power_law({5: 21, 11: 130, 20: 600, 21: 5000}),
        num_bytes=mebibytes({5: 558, 11: 645, 20: 6200, 21: 1500}),
    )

    preset: str = one_of(_AUTO, (_AUTO, *PRESETS))
    recipe: PaperRecipe | None = None
    objective: str | None = one_of(None, OBJECTIVES)
    batch_size: int | None = whole(None)
    learning_rate: float | None = positive(None)
    chain_steps: int = whole(1000)
    num_chains: int = whole(128)
    num_weighted: int = whole(10_000)
    sampling_batch: int | None = whole(None)
    draws: str = one_of("iid", ("iid", "balanced"))
    num_training_graphs: int = whole(1024, least=0)
    num_held_out_graphs: int = whole(256, least=0)

    @property
    def structure_prior(self) -> str | Prior:
        """The structure prior; the paper's where the preset is and the user named none."""
        return "uniform" if self._has_papers_prior() else super().structure_prior

    def _has_papers_prior(self) -> bool:
        return self.preset == "paper" and self.prior == "auto"

    def _prior_notes(self) -> tuple[str, ...]:
        if not self._has_papers_prior():
            return ()
        return (
            "The structure prior is uniform over graphs, as in the paper, because of the preset 'paper'. "
            f"{option('prior', 'fair')} is the default elsewhere.",
        )

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
        if self.preset == _AUTO:
            return self.for_score(score)._infer(score, seed, progress)
        preset = self.training_preset(score.num_variables)
        num_devices = count_devices(self.devices, batch_size=preset.batch_size)
        learner = self.make_learner(score, preset, seed, progress)
        train_key, sample_key = jax.random.split(jax.random.key(seed))
        begin_phase(progress, "training")
        with data_parallel(num_devices):
            trained = train(
                learner,
                train_key,
                iterations=self.iterations if self.budget is not None else preset.iterations,
                budget=self._seconds_to_train(),
                options=preset.options,
                folder=self.folder,
                resume=self.resume,
                fingerprint=self._fingerprint(score, seed, *self._settings()),
                progress=progress,
            )
            begin_phase(progress, "sampling")
            posterior = self.posterior_of(
                score, seed, learner.space, trained.params, sample_key, trained.iterations
            )
        if isinstance(learner, PaperLearner):  # with `iterations`, this number reproduces the run
            length = learner.exploration_length(trained.planned)
            extra = {**posterior.diagnosis.extra, "exploration_iterations": length}
            posterior = posterior.with_diagnostics(extra=extra)
        return posterior

    def for_score(self, score: Score) -> Self:
        """The same estimator with the preset that `auto` takes for a score."""
        if self.preset != _AUTO:
            return self
        d, most = score.num_variables, self.record.most_variables
        if most is not None and d > most:
            raise TooLargeError(
                f"DAG-GFlowNet takes up to {most} variables, not {d}: use parent-set-mcmc, or set "
                f"{option('preset', 'chains')}, which was not measured there"
            )
        chosen = copy(self)
        any_order = self.objective is not None or self.draws == "balanced" or not has_canonical_paths(score)
        if any_order or d <= _FEW:
            chosen.preset = "fast" if d <= _MOST_FAST or self.objective is not None else "chains"
        else:
            chosen.preset = "canonical"
        return chosen

    def posterior_of(
        self,
        score: Score,
        seed: int,
        space: StateSpace,
        policy: Policy,
        key: Array,
        iterations: int,
    ) -> Posterior:
        """The posterior of a trained policy, and its test on held-out graphs."""
        count = max(self.num_weighted, self.num_samples)
        if self.draws == "balanced":
            if not isinstance(space, EdgeSpace):
                raise GFlowDAGError(
                    "balanced draws need edges in any order, and the preset 'canonical' has one order "
                    f"alone: set {option('preset', 'fast')}, or leave draws out"
                )
            samples = balanced_dags(space, policy, key, count)
        else:
            samples = sample(space, policy, key, count, batch=self.sampling_batch)
        # Another seed than that of the chains that the policy may have learnt from.
        held_out = held_out_log_weights(score, seed + 1, self.num_held_out_graphs, space, policy)
        posterior = weighted_posterior(score, samples, self.num_samples, held_out)
        return posterior.with_diagnostics(
            iterations=iterations,
            extra={**posterior.diagnosis.extra, "preset": self.preset, "draws": self.draws},
        )

    def _settings(self) -> list[Any]:
        """What decides about training, besides the data and its length."""
        settings = [self.preset, self.objective, self.batch_size, self.learning_rate]
        if self.preset in ("canonical", "chains"):
            settings += [self.chain_steps, self.num_chains]
        elif self.preset in _RECIPES:
            settings += [PAPERS_NETWORK, self._recipe()]
        else:
            settings += [self.num_training_graphs]
        return settings

    def training_preset(self, num_variables: int) -> Preset:
        """The preset with what the user set in its place."""
        preset = preset_for(self.preset, num_variables)
        if self.recipe is not None:
            if self.preset != "paper":
                raise GFlowDAGError(
                    f"a recipe is for the preset 'paper', not for {self.preset!r}: set "
                    f"{option('preset', 'paper')}, or leave the recipe out"
                )
            if not isinstance(self.recipe, PaperRecipe):
                raise GFlowDAGError(
                    f"recipe must be a PaperRecipe, not {type(self.recipe).__name__}: "
                    'PaperRecipe(batch_size=256), or PaperRecipe.from_toml("recipe.toml")'
                )
            preset = Preset(preset.iterations, self.recipe.batch_size, self.recipe.options())
        options = preset.options
        if self.learning_rate is not None:
            options = options._replace(learning_rate=self.learning_rate)
        return Preset(self.iterations or preset.iterations, self.batch_size or preset.batch_size, options)

    def make_learner(
        self, score: Score, preset: Preset, seed: int, progress: Progress = silent
    ) -> EdgeLearner | LikelihoodLearner | PaperLearner:
        """What is trained; a subclass may train something else."""
        d = score.num_variables
        if self.preset in ("canonical", "chains"):
            if self.objective is not None:
                raise GFlowDAGError(f"the preset {self.preset!r} maximises a likelihood: leave objective out")
            graphs, log_scores = self._graphs_of_chains(score, seed, progress)
            if self.preset == "canonical":
                space, policy = _canonical_space(score, seed), partial(CanonicalPolicy, d)
            else:
                space = edge_space(score)
                policy = partial(PairPolicy, d, width=default_width(d), backward="uniform")
            return LikelihoodLearner(space, graphs, log_scores, policy, preset.batch_size)
        if self.preset in _RECIPES:
            if self.objective not in (None, "detailed"):
                raise GFlowDAGError(
                    f"the preset {self.preset!r} is trained by detailed balance: leave objective out"
                )
            return self._recipe().learner(edge_space(score), batch_size=preset.batch_size)
        objective = self.objective or "trajectory"
        check_memory(d, preset.batch_size, limit=MAX_MEMORY * count_devices(self.devices))
        return EdgeLearner(
            edge_space(score),
            training_graphs=self._training_graphs(score, seed, progress),
            batch_size=preset.batch_size,
            objective=objective,
            width=default_width(d),
        )

    def _recipe(self) -> PaperRecipe:
        """The constants of the presets that follow the paper."""
        return self.recipe or _RECIPES[self.preset]

    def _training_graphs(self, score: Score, seed: int, progress: Progress) -> Array | None:
        """Graphs of chains for `fast` to learn from as well, bool [m, d, d]."""
        if not self.num_training_graphs:
            return None
        begin_phase(progress, "chains")
        return jnp.asarray(short_chains(score, seed, self.num_training_graphs, progress).samples)

    def _graphs_of_chains(self, score: Score, seed: int, progress: Progress) -> tuple[Array, Array]:
        """Graphs of Markov chains to learn from, bool [n, d, d], and their log scores, float64 [n]."""
        begin_phase(progress, "chains")
        chains = order_chains(
            score,
            seed,
            _NUM_CLONED,
            num_chains=self.num_chains,
            iterations=self.chain_steps,
            deadline=self._deadline.share(SHARE_OF_CHAINS),
            progress=progress,
        )
        return jnp.asarray(chains.samples), jnp.asarray(chains.log_scores)


def has_canonical_paths(score: Score) -> bool:
    """Whether the score's table is small enough, and every path may begin with the empty graph."""
    return score.has_small_table and not score.constraints.required.any()


def _canonical_space(score: Score, seed: int) -> CanonicalSpace:
    """The state space of canonical paths, with labels along a likely order."""
    if not has_canonical_paths(score):
        raise GFlowDAGError(
            f"the preset 'canonical' takes up to {MAX_TABLE_VARIABLES} variables and no required edges: set "
            f"{option('preset', 'chains')}"
        )
    table = score.dense_table()
    return canonical_space(table, likely_order(dense_candidates(table), np.random.default_rng(seed)))


def weighted_posterior(score: Score, samples: Samples, num_samples: int, held_out: np.ndarray) -> Posterior:
    """The posterior behind sampled trajectories.

    Raw and weighted edge marginals are both in the diagnostics. The weights are used where they vouch for
    themselves; otherwise the samples count alike and the verdict says so.

    Args:
        score: of the graphs.
        samples: ends of the policy's trajectories.
        num_samples: how many of them to return.
        held_out: log importance weights of graphs that the policy did not draw, float64 [m]; may be empty.
    """
    graphs = np.asarray(samples.built)
    start = score.constraints.required[None]
    log_scores = np.asarray(samples.log_reward) + score.log_score(start)[0]
    log_weights = log_scores + np.asarray(samples.log_ratio)
    summary = importance_summary(log_weights)
    raw = graphs.mean(axis=0)
    weighted = np.tensordot(softmax(log_weights), graphs, axes=1)
    unseen = unseen_share(log_weights, held_out) if len(held_out) else None
    diagnostics = downgrade_if_unseen(importance_diagnostics(summary), unseen)
    if diagnostics.verdict != "trusted":
        log_weights = np.zeros_like(log_weights)
    drawn = Posterior(graphs, score.names, log_weights=log_weights)
    return Posterior(
        samples=graphs[:num_samples],
        names=score.names,
        method=DAGGFlowNet.method,
        log_weights=log_weights[:num_samples],
        log_scores=log_scores[:num_samples],
        marginals=drawn.edge_probabilities().to_numpy(),
        log_evidence=summary.log_evidence,
        log_evidence_error=summary.log_evidence_error,
        diagnosis=replace(
            downgrade_if_imprecise(diagnostics, drawn.edge_errors()),
            raw_edge_probabilities=raw,
            weighted_edge_probabilities=weighted,
            extra={"mean_edges": float(graphs.sum(axis=(1, 2)).mean())},
        ),
    )
