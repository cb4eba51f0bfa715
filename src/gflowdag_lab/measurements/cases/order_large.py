"""Orders of 50 and 100 variables: an order-MCMC reference, and what the order GFlowNet reaches beside it.

The posterior is the one restricted to the candidate parents. Options: `rows=N` (fifty), `prior=NAME`,
`candidates=N`; `reference=SECONDS`, `chains=N`, `temperatures=N`, `sweep=N`, `reversals=N` of order MCMC;
`keep=FILE`, where its chains are written, and `start=FILE`, chains of an earlier run which it carries on;
`levers=NAME;NAME` (none: the reference alone), `budget=SECONDS` of training for each, `batch=N`, `width=N`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from gflowdag.estimators import mixing, order_space
from gflowdag.gflownet import (
    OrderCloning,
    OrderLearner,
    OrderMatching,
    OrderPolicy,
    OrderSpace,
    Trained,
    sample,
    train,
    weigh,
)
from gflowdag.mcmc import order_chains
from gflowdag.orders import (
    OrderProblem,
    canonical_orders,
    draw_graphs,
    edge_probabilities_of_orders,
    mean_edge_probabilities,
    order_problem,
)
from gflowdag.posterior import importance_summary
from gflowdag.runtime import write_npz
from gflowdag_lab.measurements.harness import Options, Row, case, in_double_precision
from gflowdag_lab.measurements.order_rows import outsider_odds, peak_memory, setting
from gflowdag_lab.model import paper_score
from gflowdag_lab.paper import problems

_MAX_RECORDS = 150  # of each chain, for the diagnostics and for teaching
_REFRESHED = 20  # rounds of further moves that make more orders out of the reference's


@case
def order_gflownet_fifty(options: Options) -> Iterator[Row]:
    """d = 50, N = 100 and 1000, standardised: every lever, beside an order-MCMC reference."""
    for rows in [int(options.extra["rows"])] if "rows" in options.extra else [100, 1000]:
        problem = problems.linear_gaussian(12 if options.quick else 50, rows, 0, standardize=True)
        yield from in_double_precision(_levers, problem, options)


@case
def order_gflownet_hundred(options: Options) -> Iterator[Row]:
    """d = 100, N = 100, standardised."""
    problem = problems.linear_gaussian(16 if options.quick else 100, 100, 0, standardize=True)
    yield from in_double_precision(_levers, problem, options)


class Reference(NamedTuple):
    """What order MCMC found."""

    orders: np.ndarray  # int32 [C, T, d]
    edges: np.ndarray  # float64 [d, d]
    graphs: np.ndarray  # bool [B, C, d, d], where the chains are at the end, at all temperatures


def _levers(problem: problems.Problem, options: Options) -> Iterator[Row]:
    prior = options.extra.get("prior", "uniform")
    score = paper_score(problem.data, prior=prior)
    d = score.num_variables
    orders = order_problem(score, num_candidates=setting(options, "candidates", 14, 5), seed=options.seed)
    reference, row = _reference(orders, options)
    name = {"problem": problem.name, "prior": prior}
    graphs = _graphs(orders, reference.orders[:, -1], np.random.default_rng(0))
    odds = float(outsider_odds(score, orders.table.candidates, graphs).mean())
    lost = float(orders.table.lost_mass.mean())
    yield {**name, **row, "outsider_odds": odds, "lost_mass": lost}
    if "keep" in options.extra:
        kept = {"orders": reference.orders.astype(np.int8), "edges": reference.edges, "labels": orders.labels}
        write_npz(options.extra["keep"], {**kept, "graphs": reference.graphs})

    space = order_space(score, orders)
    judged, training = np.split(reference.orders, [max(1, len(reference.orders) // 4)])
    judged, training = _thinned(judged).reshape(-1, d), training.reshape(-1, d)
    rounds = 2 if options.quick else _REFRESHED
    refreshed = order_chains.refreshed(orders, training, np.random.default_rng(1), rounds=rounds)
    judged, training, refreshed = (jnp.asarray(each, jnp.int32) for each in (judged, training, refreshed))
    sizes = {"batch": setting(options, "batch", 512, 32), "depth": 4}
    sizes["width"] = setting(options, "width", 512, 32)

    levers: dict[str, Any] = {
        "orders of the chains": lambda _: OrderCloning(space, training, **sizes),
        "refreshed": lambda _: OrderCloning(space, refreshed, **sizes),
        "then sub-trajectory balance": lambda last: Continued(OrderLearner(space, **sizes), last),
        "refreshed and own orders": lambda _: OrderMatching(space, refreshed, **sizes),
        "alone": lambda _: OrderLearner(space, **sizes),
    }
    if "levers" in options.extra:
        levers = {name: levers[name] for name in options.extra["levers"].split(";") if name}
    last = None
    for lever, learner in levers.items():
        started = time.perf_counter()
        trained = train(learner(last), jax.random.key(options.seed), budget=setting(options, "budget", 45, 4))
        last = trained.params
        measures = _evaluate(space, orders, last, reference.edges, judged, options)
        yield {
            **name,
            "lever": lever,
            "seconds": time.perf_counter() - started,
            "iterations": trained.iterations,
            **measures,
            "memory_gib": peak_memory(),
            "curve": _curve(trained),
        }


class Continued(eqx.Module):
    """A learner that starts from parameters that are there already."""

    learner: Any
    params: OrderPolicy

    def init(self, key: jax.Array) -> tuple[OrderPolicy, Any]:
        """The given parameters."""
        return self.params, self.learner.init(key)[1]

    def loss(self, *given: Any) -> Any:
        """That of the learner."""
        return self.learner.loss(*given)


def _reference(problem: OrderProblem, options: Options) -> tuple[Reference, Row]:
    """Order MCMC for some time, a third of it burn-in, or none where it carries earlier chains on."""
    ladder = order_chains.geometric_ladder(setting(options, "temperatures", 10, 2))
    started = time.perf_counter()
    seconds = setting(options, "reference", 200, 5)
    key, rng = jax.random.key(options.seed), np.random.default_rng(options.seed)
    replicas = order_chains.Replicas(problem, ladder, setting(options, "chains", 8, 4), key, rng)
    earlier = np.zeros((replicas.graphs.shape[1], 0, problem.table.num_variables), np.int32)
    if "start" in options.extra:
        with np.load(options.extra["start"]) as archive:
            replicas.graphs, earlier = archive["graphs"].copy(), archive["orders"].astype(np.int32)
    usual = order_chains.TEMPERED_SWEEP
    steps = setting(options, "sweep", usual.steps, usual.steps)
    sweep = order_chains.Sweep(steps, setting(options, "reversals", usual.reversals, usual.reversals))
    recorded = []
    fewest = 1 if earlier.size else 12
    while time.perf_counter() - started < seconds or len(recorded) < fewest:
        replicas.sweep(jax.random.fold_in(key, len(recorded)), sweep)
        recorded.append(canonical_orders(replicas.graphs[0], problem.labels))
    burn_in = 0 if earlier.size else len(recorded) // 3
    kept = np.concatenate([earlier, np.stack(recorded[burn_in:], axis=1)], axis=1)
    thinned = _thinned(kept)
    d = kept.shape[-1]
    edges = edge_probabilities_of_orders(problem, thinned.reshape(-1, d))
    edges = edges.reshape(*thinned.shape[:2], d, d)
    log_weights = order_chains.log_weights(problem, thinned)
    diagnostics, errors = mixing(edges, log_weights)
    of_chains = edges.mean(axis=1)
    mean = of_chains.mean(axis=0)
    shares = replicas.shares()
    row = {
        "lever": "order MCMC",
        "seconds": time.perf_counter() - started,
        "sweeps": len(recorded),
        "r_hat": diagnostics.r_hat,
        "effective_samples": diagnostics.effective_samples,
        "largest_error": float(errors.max()),
        "largest_difference_of_chains": float(np.ptp(of_chains, axis=0).max()),
        "mean_log_weight": float(log_weights.mean()),
        "expected_edges": float(mean.sum()),
        "relocated": shares[0],
        "swapped": shares[1],
        "reversed": shares[2],
        "exchanged": [float(share) for share in shares[3]],
        "memory_gib": peak_memory(),
    }
    return Reference(kept, mean, replicas.graphs), row


def _thinned(orders: np.ndarray) -> np.ndarray:
    """At most `_MAX_RECORDS` of each chain, [C, T, d]."""
    return orders[:, :: -(-orders.shape[1] // _MAX_RECORDS)]


def _graphs(problem: OrderProblem, orders: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return draw_graphs(problem.weights, problem.table, orders, problem.labels, rng)


def _evaluate(
    space: OrderSpace, problem: OrderProblem, policy: OrderPolicy, edges: np.ndarray, judged, options: Options
) -> Row:
    """Mean log importance weights under the policy (below the evidence) and under the posterior (above it).

    Their distances from the evidence are the Kullback–Leibler divergences of the policy to and from the
    posterior; their difference is the sum of the two, whatever the evidence.
    """
    drawn = sample(space, policy, jax.random.key(7), 512 * (2 if options.quick else 64), batch=512)
    orders, log_ratio = np.asarray(drawn.built), np.asarray(drawn.log_weights)
    above = np.asarray(weigh(space, policy, jax.random.key(8), judged).log_weights)
    summary = importance_summary(log_ratio)
    importance = np.exp(log_ratio - log_ratio.max())
    weighted, _ = mean_edge_probabilities(problem, orders, importance / importance.sum())
    raw, _ = mean_edge_probabilities(problem, orders, np.full(len(orders), 1 / len(orders)))
    return {
        "below": float(log_ratio.mean()),
        "above": float(above.mean()),
        "divergence_to": summary.log_evidence - float(log_ratio.mean()),
        "divergence_from": float(above.mean()) - summary.log_evidence,
        **summary._asdict(),
        "to_reference_raw": float(np.abs(raw - edges).max()),
        "to_reference_weighted": float(np.abs(weighted - edges).max()),
    }


def _curve(trained: Trained) -> list[dict[str, float]]:
    every = max(1, len(trained.history) // 20)
    return [{name: float(value) for name, value in row.items()} for row in trained.history[::every]]
