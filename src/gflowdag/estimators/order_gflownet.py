"""The order GFlowNet as an estimator."""

from __future__ import annotations

import time
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from gflowdag.estimators.base import SHARE_OF_CHAINS, TrainedLearner
from gflowdag.estimators.chain_lessons import lessons_of
from gflowdag.estimators.held_out import downgrade_if_unseen
from gflowdag.estimators.method import Method, mebibytes, power_law
from gflowdag.estimators.parameters import keyword_parameters, positive, whole
from gflowdag.estimators.precise import downgrade_if_imprecise
from gflowdag.estimators.unseen import unseen_share
from gflowdag.estimators.weighed_orders import (
    WeighedOrders,
    timed_sums,
    weighed_by_policy,
    weighed_by_sums,
)
from gflowdag.gflownet.learners.label_cloning import LabelCloning
from gflowdag.gflownet.learners.orders import OrderLearner, is_untrained
from gflowdag.gflownet.policies.orders import shaped_policy
from gflowdag.gflownet.retrace import weigh
from gflowdag.gflownet.sampling import Defence, sample
from gflowdag.gflownet.spaces.orders import OrderSpace
from gflowdag.gflownet.trainer import Options, Trained, train
from gflowdag.mcmc.recorded_graphs import recorded_graphs
from gflowdag.mcmc.unrestricted.run import FEWEST_SWEEPS
from gflowdag.orders.last_node import last_node_potential, tighter_labels
from gflowdag.orders.potentials import schur_potential, symmetric_potential
from gflowdag.orders.problem import OrderProblem, order_problem, weighted_mean_edges
from gflowdag.posterior.importance import importance_diagnostics, importance_summary
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.devices import count_devices, data_parallel
from gflowdag.runtime.processes import agreed
from gflowdag.runtime.progress import Progress, begin_phase
from gflowdag.score import Score

_NUM_WEIGHTED = 32_768  # orders behind the evidence and the edge marginals, where the policy weighs them
_MOST_HELD_OUT = 256  # orders of chains that test the policy
_SAMPLING_BATCH = 1024
_NUM_GRAPHS = 16_384  # that chains record for the network to learn from
_MOST_EDGES = 1 << 27  # numbers in these graphs
_UNTRAINED_EVERY = 8  # one order in eight is drawn from the untrained policy

_UNTESTED = (
    "The budget stopped the Markov chains that the network learns from and is tested on in their burn-in: "
    "give more time, or use another method."
)


@keyword_parameters
class OrderGFlowNet(TrainedLearner):
    """A GFlowNet over canonical orders: parent sets are summed out, and every sample carries its weight.

    The network learns to build orders; graphs are drawn exactly given the order. Importance weights correct
    what it did not learn, and give the evidence, an effective sample size and a Pareto k that say how much
    that was.

    Args:
        iterations: training steps; 1000 if neither this nor `budget` is given.
        budget: seconds that `fit` may take, which end the training; given with `iterations`, the first of the
            two ends it.
        batch_size: orders in a training step; by default 256 up to 20 variables, else 128.
        width: of the network's layers; by default likewise.
        depth: number of layers.
        learning_rate: of Adam.
        chain_steps: beyond 20 variables, sweeps of each chain over all DAGs from which the network learns, at
            most; the chains end before when they agree.
        num_chains: chains from scattered starts; a quarter of them is kept back, to test whether the policy
            knows their orders.

    The other parameters are those of `TrainedLearner` and `StructureLearner`.
    """

    record = Method(
        name="order-gflownet",
        rank=40,
        label="GFlowNet over orders",
        answer="weighted, checks itself",
        gives="near-exact marginals, evidence",
        checked_by="ESS and Pareto k of its weights",
        use_when="more than 20 variables, or a second opinion",
        trains=True,
        seconds=power_law({5: 44, 11: 54, 20: 178, 50: 700}),
        num_bytes=mebibytes({5: 466, 11: 556, 20: 2078}),
    )

    batch_size: int | None = whole(None)
    width: int | None = whole(None)
    depth: int = whole(3)
    learning_rate: float = positive(1e-3)
    chain_steps: int = whole(2000)
    num_chains: int = whole(8, least=2)  # one to learn from, one to be tested on

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
        if score.has_small_table:
            return self._infer_from_table(score, seed, progress)
        return self._infer_from_chains(score, seed, progress)

    def _infer_from_table(self, score: Score, seed: int, progress: Progress) -> Posterior:
        """Learn alone: the potential is good, and every order has its weight at once."""
        phases = _Phases()
        begin_phase(progress, "tables")
        problem = order_problem(score, seed=seed)
        phases.done("tables")
        rng = np.random.default_rng(seed)
        labels = tighter_labels(problem.weights, problem.table.scores, problem.labels, rng)
        problem = problem._replace(labels=labels)
        space = order_space(score, problem)
        phases.done("labels and potential")
        _, train_key, sample_key = jax.random.split(jax.random.key(seed), 3)
        sizes = self._sizes(batch=256, width=256)
        learner = OrderLearner(space, untrained_every=_UNTRAINED_EVERY, **sizes)
        with data_parallel(count_devices(self.devices, batch_size=sizes["batch"])):
            begin_phase(progress, "training")
            trained = self._train(learner, train_key, score, seed, sizes, self._seconds_to_train(), progress)
            phases.done("training")
            begin_phase(progress, "sampling")
            drawn = sample(
                space,
                trained.params,
                sample_key,
                max(_NUM_WEIGHTED, self.num_samples),
                batch=_SAMPLING_BATCH,
                defence=Defence(shaped_policy, _UNTRAINED_EVERY),
            )
        phases.done("sampling")
        given = weighed_by_policy(problem, drawn)
        phases.done("weights")
        posterior = weighted_posterior(
            score,
            given,
            self.num_samples,
            np.random.default_rng(seed),
            from_policy=~np.asarray(is_untrained(len(given.log_ratio), _UNTRAINED_EVERY)),
        )
        phases.done("graphs and marginals")
        return posterior.with_diagnostics(iterations=trained.iterations, phases=phases.seconds)

    def _infer_from_chains(self, score: Score, seed: int, progress: Progress) -> Posterior:
        """Learn from graphs of chains over all DAGs; finished orders are weighed over families of sets."""
        phases = _Phases()
        begin_phase(progress, "chains")
        chains = recorded_graphs(
            score,
            seed=seed,
            num_chains=self.num_chains,
            num_graphs=min(_NUM_GRAPHS, max(_MOST_EDGES // score.num_variables**2, 1)),
            max_sweeps=max(self.chain_steps, FEWEST_SWEEPS),
            deadline=self._deadline.share(SHARE_OF_CHAINS),
            progress=progress,
        )
        lessons = lessons_of(score, chains.graphs, num_held_out=_MOST_HELD_OUT, seed=seed)
        space, nodes = lessons.space, lessons.nodes
        phases.done("chains")
        sums = timed_sums(score, lessons, self._deadline, progress)
        num_drawn = int(agreed(sums.num_affordable(self.num_samples, self._deadline, score.num_variables)))
        phases.done("all parent sets")
        _, train_key, sample_key = jax.random.split(jax.random.key(seed), 3)
        sizes = self._sizes(batch=128, width=128)
        learner = LabelCloning(space, jnp.asarray(lessons.training), **sizes)
        with data_parallel(count_devices(self.devices, batch_size=sizes["batch"])):
            begin_phase(progress, "training")
            seconds = self._seconds_to_train(sums.seconds(num_drawn, self.num_samples))
            trained = self._train(learner, train_key, score, seed, sizes, seconds, progress)
            phases.done("training")
            begin_phase(progress, "sampling")
            drawn = sample(
                space, trained.params, sample_key, num_drawn, batch=min(num_drawn, _SAMPLING_BATCH)
            )
        by_policy = weigh(space, trained.params, jax.random.key(0), lessons.held_out)
        phases.done("sampling")
        ends = self._deadline.earlier(sums.seconds(0, self.num_samples))
        drawn = drawn._replace(built=nodes[np.asarray(drawn.built)])
        given = weighed_by_sums(score, sums, drawn, by_policy, ends, progress)
        phases.done("weights")
        posterior = weighted_posterior(
            score,
            given,
            self.num_samples,
            np.random.default_rng(seed),
            from_policy=np.ones(len(given.log_ratio), bool),
        )
        phases.done("graphs and marginals")
        if not chains.is_settled:  # what the policy was tested on is not of the posterior
            posterior = posterior.with_diagnostics(verdict="not converged", explanation=_UNTESTED)
        return posterior.with_diagnostics(iterations=trained.iterations, phases=phases.seconds)

    def _sizes(self, *, batch: int, width: int) -> dict[str, int]:
        """Of a learner, with these where nobody has said otherwise."""
        return {"batch": self.batch_size or batch, "width": self.width or width, "depth": self.depth}

    def _train(
        self,
        learner: OrderLearner | LabelCloning,
        key: jax.Array,
        score: Score,
        seed: int,
        sizes: dict[str, int],
        seconds: float | None,
        progress: Progress,
    ) -> Trained:
        chains = (self.chain_steps, self.num_chains) if isinstance(learner, LabelCloning) else ()
        return train(
            learner,
            key,
            iterations=1000 if self.iterations is None and self.budget is None else self.iterations,
            budget=seconds,
            options=Options(learning_rate=self.learning_rate),
            folder=self.folder,
            resume=self.resume,
            fingerprint=self._fingerprint(score, seed, sizes, self.learning_rate, *chains),
            progress=progress,
        )


class _Phases:
    """Seconds spent on each phase of a fit."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def done(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now


def order_space(score: Score, problem: OrderProblem) -> OrderSpace:
    """The state space with the best potential there is for this score and table."""
    if problem.is_dense:
        potential = last_node_potential(problem.weights, problem.table.scores, problem.labels)
    elif (posterior := score.likelihood.normal_wishart) is not None:
        potential = schur_potential(posterior, score.prior_log_weights)
    else:
        potential = symmetric_potential(problem.table, np.asarray(problem.weights.position))
    return OrderSpace(problem.weights, jnp.asarray(problem.labels), jax.tree.map(jnp.asarray, potential))


def weighted_posterior(
    score: Score,
    given: WeighedOrders,
    num_samples: int,
    rng: np.random.Generator,
    *,
    from_policy: np.ndarray,
) -> Posterior:
    """The posterior behind importance-weighted orders.

    Args:
        score: of the graphs.
        given: the orders, their weights, and where edges and graphs come from.
        num_samples: graphs to draw.
        rng: source of randomness.
        from_policy: bool [n], the orders that the trained policy drew.
    """
    log_ratio, held_out = given.log_ratio, given.held_out
    summary = importance_summary(log_ratio)
    unseen = unseen_share(log_ratio, held_out) if len(held_out) else None
    diagnostics = downgrade_if_unseen(importance_diagnostics(summary), unseen)
    alive = np.isfinite(log_ratio)
    own = alive & from_policy
    importance = np.stack([np.exp(log_ratio - logsumexp(log_ratio)), own / own.sum()])
    (marginals, raw), (errors, _) = weighted_mean_edges(given.edges_of, score.num_variables, importance)
    diagnostics = given.judge(downgrade_if_imprecise(diagnostics, errors))
    # Where there are fewer orders than graphs are wanted, each gives several.
    chosen = np.resize(np.flatnonzero(alive), num_samples)
    copies = np.bincount(chosen, minlength=len(log_ratio))[chosen]
    samples = given.graphs_of(chosen, rng)
    return Posterior(
        samples,
        score.names,
        method=OrderGFlowNet.method,
        log_weights=log_ratio[chosen] - np.log(copies),
        log_scores=score.log_score(samples),
        marginals=marginals,
        log_evidence=summary.log_evidence,
        log_evidence_error=summary.log_evidence_error,
        diagnosis=replace(
            diagnostics,
            raw_edge_probabilities=raw,
            extra={
                **diagnostics.extra,
                "weighted_orders": len(log_ratio),
                "dead_ends": int((~alive).sum()),
            },
        ),
    )
