"""The order GFlowNet as an estimator."""

from __future__ import annotations

import time
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from gflowdag.estimators.base import SHARE_OF_CHAINS, TrainedLearner
from gflowdag.estimators.held_out import downgrade_if_unseen, unseen_share
from gflowdag.estimators.method import Method, mebibytes, power_law
from gflowdag.estimators.order_mcmc import TEMPERATURES
from gflowdag.estimators.parameters import keyword_parameters, positive, whole
from gflowdag.estimators.precise import downgrade_if_imprecise
from gflowdag.estimators.weighed_orders import WeighedOrders, weigh_orders_of_policy
from gflowdag.gflownet.learners.order_cloning import OrderMatching
from gflowdag.gflownet.learners.orders import OrderLearner, is_untrained
from gflowdag.gflownet.policies.orders import OrderPolicy, shaped_policy
from gflowdag.gflownet.retrace import weigh
from gflowdag.gflownet.sampling import Defence, Samples, sample
from gflowdag.gflownet.spaces.orders import OrderSpace
from gflowdag.gflownet.trainer import Options, train
from gflowdag.mcmc import order_chains
from gflowdag.orders.last_node import LastNodePotential, last_node_potential, tighter_labels
from gflowdag.orders.potentials import schur_potential, symmetric_potential
from gflowdag.orders.problem import OrderProblem, order_problem, weighted_mean_edges
from gflowdag.posterior.importance import importance_diagnostics, importance_summary
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.devices import count_devices, data_parallel
from gflowdag.runtime.progress import Progress, begin_phase
from gflowdag.score import Score

_NUM_WEIGHTED = 32_768  # orders behind the evidence and the edge marginals
_SAMPLING_BATCH = 1024
_CHAIN_RECORDS = 100  # orders kept from each chain
_REFRESHED = 20  # further orders that reversals make out of each of them
_UNTRAINED_EVERY = 8  # one order in eight is drawn from the untrained policy, where that is any good

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
        num_candidates: possible parents of each node that the policy knows; by default all up to 20
            variables, else 14. Where it does not know all, its orders are weighed over all parent sets up to
            a number of parents.
        batch_size: orders in a training step.
        width: of the network's layers.
        depth: number of layers.
        learning_rate: of Adam.
        chain_steps: steps of order MCMC, where there are more variables than a dense table takes; the
            network then learns from its orders.
        num_chains: tempered chains of order MCMC side by side; a quarter of them is kept back, to test
            whether the policy knows their orders.

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

    num_candidates: int | None = whole(None)
    batch_size: int = whole(256)
    width: int = whole(256)
    depth: int = whole(3)
    learning_rate: float = positive(1e-3)
    chain_steps: int = whole(500)
    num_chains: int = whole(8)

    def _infer(self, score: Score, seed: int, progress: Progress) -> Posterior:
        phases = _Phases()
        num_devices = count_devices(self.devices, batch_size=self.batch_size)
        begin_phase(progress, "tables")
        problem = order_problem(score, num_candidates=self.num_candidates, seed=seed)
        phases.done("tables")
        if problem.is_dense:
            rng = np.random.default_rng(seed)
            labels = tighter_labels(problem.weights, problem.table.scores, problem.labels, rng)
            problem = problem._replace(labels=labels)
        space = order_space(score, problem)
        phases.done("labels and potential")
        chain_key, train_key, sample_key = jax.random.split(jax.random.key(seed), 3)
        training_orders, held_out, is_burnt_in = self._chains(problem, chain_key, progress)
        learner = self._learner(space, training_orders)
        phases.done("chains")
        begin_phase(progress, "training")
        with data_parallel(num_devices):
            trained = train(
                learner,
                train_key,
                iterations=1000 if self.iterations is None and self.budget is None else self.iterations,
                budget=self._seconds_to_train(),
                options=Options(learning_rate=self.learning_rate),
                folder=self.folder,
                resume=self.resume,
                fingerprint=self._fingerprint(
                    score,
                    seed,
                    self.batch_size,
                    self.width,
                    self.depth,
                    self.learning_rate,
                    self.num_candidates,
                    *(() if problem.is_dense else (self.chain_steps, self.num_chains)),
                ),
                progress=progress,
            )
            phases.done("training")
            begin_phase(progress, "sampling")
            every = _untrained_every(space)
            drawn = sample(
                space,
                trained.params,
                sample_key,
                max(_NUM_WEIGHTED, self.num_samples),
                batch=_SAMPLING_BATCH,
                defence=Defence(shaped_policy, every) if every else None,
            )
        phases.done("sampling")
        given = weigh_orders_of_policy(
            score, problem, drawn, held_out, _weighed(space, trained.params, held_out), progress
        )
        phases.done("weights")
        posterior = weighted_posterior(
            score,
            given,
            self.num_samples,
            np.random.default_rng(seed),
            from_policy=~np.asarray(is_untrained(len(given.log_ratio), every)),
        )
        phases.done("graphs and marginals")
        if not is_burnt_in:  # what the policy was tested on is not of the posterior
            posterior = posterior.with_diagnostics(verdict="not converged", explanation=_UNTESTED)
        return posterior.with_diagnostics(iterations=trained.iterations, phases=phases.seconds)

    def _chains(
        self, problem: OrderProblem, key: jax.Array, progress: Progress
    ) -> tuple[np.ndarray, np.ndarray, bool]:
        """Orders of Markov chains, to learn from and held out, int32 [·, d]; none for dense tables.

        And whether they are past their burn-in.
        """
        d = problem.table.num_variables
        if problem.is_dense:
            return np.zeros((0, d), np.int32), np.zeros((0, d), np.int32), True
        begin_phase(progress, "chains")
        chains = order_chains.sample(
            problem,
            key,
            num_chains=self.num_chains,
            num_records=_CHAIN_RECORDS,
            burn_in=_CHAIN_RECORDS // 2,
            thinning=max(1, round(self.chain_steps / (1.5 * _CHAIN_RECORDS))),
            ladder=order_chains.geometric_ladder(TEMPERATURES),
            deadline=self._deadline.share(SHARE_OF_CHAINS),
            progress=progress,
        )
        held_out, training = np.split(chains.orders.astype(np.int32), [self.num_chains // 4])
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        training = order_chains.refreshed(problem, training.reshape(-1, d), rng, rounds=_REFRESHED)
        return training, held_out.reshape(-1, d), chains.is_burnt_in

    def _learner(self, space: OrderSpace, training_orders: np.ndarray) -> OrderLearner | OrderMatching:
        """Learning alone where the potential is good; else from the orders of Markov chains."""
        sizes = {"batch": self.batch_size, "width": self.width, "depth": self.depth}
        if len(training_orders):
            return OrderMatching(space, jnp.asarray(training_orders, jnp.int32), **sizes)
        return OrderLearner(space, untrained_every=_untrained_every(space), **sizes)


def _weighed(space: OrderSpace, policy: OrderPolicy, orders: np.ndarray) -> Samples | None:
    """Orders that the policy did not draw, with its probabilities; None where there are none."""
    return weigh(space, policy, jax.random.key(0), orders) if len(orders) else None


def _untrained_every(space: OrderSpace) -> int:
    """How many orders there are to one of the untrained policy; none where its potential is poor."""
    return _UNTRAINED_EVERY if isinstance(space.potential, LastNodePotential) else 0


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
    chosen = np.flatnonzero(alive)[:num_samples]
    samples = given.graphs_of(chosen, rng)
    return Posterior(
        samples,
        score.names,
        method=OrderGFlowNet.method,
        log_weights=log_ratio[chosen],
        log_scores=score.log_score(samples),
        marginals=marginals,
        log_evidence=summary.log_evidence,
        log_evidence_error=summary.log_evidence_error,
        diagnosis=replace(
            given.judge(downgrade_if_imprecise(diagnostics, errors), samples),
            raw_edge_probabilities=raw,
            extra={"weighted_orders": len(log_ratio), "dead_ends": int((~alive).sum())},
        ),
    )
