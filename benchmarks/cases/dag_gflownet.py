"""DAG-GFlowNet: fidelity to the exact posterior, learning curves, speed and memory.

Every error comes in two columns: raw policy samples, and importance-weighted. Options of all cases:
`iterations=N`, `batch=N`; `networks=N` (five variables); `budget=SECONDS` (Sachs, twenty variables, rows);
`fast_budget=SECONDS`, `paper_budget=SECONDS` (learning curves).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy.special import softmax

import problems
from gflowdag import metrics
from gflowdag.diagnostics import importance_summary
from gflowdag.estimators.dag_gflownet import PRESETS
from gflowdag.exact import reference
from gflowdag.gflownet.edge_learner import EdgeLearner
from gflowdag.gflownet.edge_policy import default_width
from gflowdag.gflownet.edges import EdgeSpace, check_memory, edge_space
from gflowdag.gflownet.evaluate import policy_distribution
from gflowdag.gflownet.paper_learner import PaperLearner
from gflowdag.gflownet.rollout import Samples, sample_dags
from gflowdag.gflownet.stacked import Stacked, stacked_optimizer, unstack
from gflowdag.gflownet.trainer import Options as Optimisation
from gflowdag.gflownet.trainer import Trained, train
from gflowdag.graph.enumeration import all_dags
from gflowdag.graph.features import markov_blanket_features, path_features
from gflowdag.precision import double_precision
from gflowdag.score import Score, make_score
from harness import Options, Row, case, in_double_precision

FEATURES = {
    "edges": lambda graphs: graphs,
    "paths": path_features,
    "blankets": markov_blanket_features,
}


@case
def dag_gflownet_five(options: Options) -> Iterator[Row]:
    """d = 5, N = 100, ER1: divergence from the exact posterior and correlations, 20 networks at once."""
    yield from in_double_precision(_five, options)


@case
def dag_gflownet_curve(options: Options) -> Iterator[Row]:
    """Learning curves of `fast` and `paper` on one network of d = 5."""
    yield from in_double_precision(_curve, options)


@case
def dag_gflownet_objectives(options: Options) -> Iterator[Row]:
    """Objectives and exploration of `fast` on one standardised network of d = 5."""
    yield from in_double_precision(_objectives, options)


@case
def dag_gflownet_sachs(options: Options) -> Iterator[Row]:
    """Sachs, continuous and interventional."""
    for problem in (problems.sachs_continuous(), problems.sachs_interventional(options.data)):
        yield _against_exact(problem, options, default_iterations=4000)


@case
def dag_gflownet_twenty(options: Options) -> Iterator[Row]:
    """d = 20, N = 100, raw and standardised."""
    for standardize in (True, False):
        problem = problems.linear_gaussian(8 if options.quick else 20, 100, 0, standardize=standardize)
        yield _against_exact(problem, options, default_iterations=6000)


@case
def dag_gflownet_rows(options: Options) -> Iterator[Row]:
    """N = 10², 10³, 10⁴ at d = 5 and 11, standardised: the paper's stated limitation."""
    for d in (5,) if options.quick else (5, 11):
        for rows in (100, 1000, 10_000):
            problem = problems.linear_gaussian(d, rows, 0, standardize=True)
            yield _against_exact(problem, options, default_iterations=2000 if d == 5 else 4000)


@case
def dag_gflownet_cost(options: Options) -> Iterator[Row]:
    """Training and sampling speed and the memory of the trajectories against d."""
    for d in (5, 10) if options.quick else (5, 10, 20, 50):
        yield _cost(d, options)


def _learner(space: EdgeSpace, options: Options, **settings: Any) -> EdgeLearner:
    d = space.num_variables
    batch = int(options.extra.get("batch", PRESETS["fast"].batch_size))
    check_memory(d, batch)
    return EdgeLearner(space, batch_size=batch, width=default_width(d), **settings)


def _iterations(options: Options, default: int) -> int:
    return 30 if options.quick else int(options.extra.get("iterations", default))


def _five(options: Options) -> Iterator[Row]:
    count = 2 if options.quick else int(options.extra.get("networks", 20))
    graphs = all_dags(5)
    for standardize in (False, True):
        scores = [
            make_score(problems.linear_gaussian(5, 100, seed, standardize=standardize).data)
            for seed in range(count)
        ]
        spaces = [edge_space(score) for score in scores]
        started = time.perf_counter()
        trained = train(
            Stacked([_learner(space, options) for space in spaces]),
            jax.random.key(options.seed),
            iterations=_iterations(options, PRESETS["fast"].iterations),
            options=PRESETS["fast"].options,
            optimizer=stacked_optimizer(
                optax.chain(optax.clip_by_global_norm(PRESETS["fast"].options.clip), optax.scale_by_adam())
            ),
        )
        seconds = time.perf_counter() - started
        points: dict[str, list[np.ndarray]] = {}
        divergences = []
        for index, (score, space) in enumerate(zip(scores, spaces, strict=True)):
            policy = unstack(trained.params, index)
            log_scores = score.log_score(graphs)
            with np.errstate(divide="ignore"):
                divergences.append(
                    metrics.jsd(np.log(policy_distribution(space, policy, graphs)), log_scores)
                )
            samples = sample_dags(space, policy, jax.random.key(index), 10_000)
            _add_points(points, graphs, softmax(log_scores), samples, _log_weights(score, samples))
        correlations = {
            f"r_{name}": float(np.corrcoef(*np.concatenate(values, axis=1))[0, 1])
            for name, values in points.items()
        }
        yield {
            "data": "standardised" if standardize else "raw",
            "networks": count,
            "iterations": trained.iterations,
            "seconds_per_network": seconds / count,
            "jsd_max": max(divergences),
            "jsd_median": float(np.median(divergences)),
            **correlations,
        }


def _add_points(points, graphs, probabilities, samples: Samples, log_weights) -> None:
    """Append (exact, estimated) pairs of all features, raw and weighted."""
    adjacency = np.asarray(samples.adjacency)
    off_diagonal = ~np.eye(adjacency.shape[-1], dtype=bool)
    for name, feature in FEATURES.items():
        exact = np.tensordot(probabilities, feature(graphs), axes=1)[off_diagonal]
        features = feature(adjacency)
        raw = features.mean(axis=0)[off_diagonal]
        weighted = np.tensordot(softmax(log_weights), features, axes=1)[off_diagonal]
        points.setdefault(name, []).append(np.stack([exact, raw]))
        points.setdefault(f"{name}_weighted", []).append(np.stack([exact, weighted]))


def _curve(options: Options) -> Iterator[Row]:
    score = make_score(problems.linear_gaussian(5, 100, 0, standardize=True).data)
    space, graphs = edge_space(score), all_dags(5)
    log_scores = score.log_score(graphs)
    off_diagonal = ~np.eye(5, dtype=bool)
    exact = np.tensordot(softmax(log_scores), graphs, axes=1)[off_diagonal]
    learners = {"fast": _learner(space, options), "paper": PaperLearner(space)}
    for preset, learner in learners.items():
        rows: list[Row] = []
        clock = {"started": time.perf_counter(), "evaluating": 0.0, "next": 0.0}

        def observe(step: int, params: Any, preset=preset, rows=rows, clock=clock) -> None:
            """A row at times that grow by a third; the time of evaluating does not count."""
            now = time.perf_counter()
            seconds = now - clock["started"] - clock["evaluating"]
            if seconds < clock["next"]:
                return
            clock["next"] = 1.33 * seconds
            learnt = policy_distribution(space, params, graphs)
            row = {"preset": preset, "iteration": step, "seconds": seconds, "jsd": _jsd(learnt, log_scores)}
            marginals = np.tensordot(learnt, graphs, axes=1)[off_diagonal]
            rows.append({**row, "r_edges": float(np.corrcoef(marginals, exact)[0, 1])})
            clock["evaluating"] += time.perf_counter() - now

        train(
            learner,
            jax.random.key(options.seed),
            budget=15.0 if options.quick else float(options.extra.get(f"{preset}_budget", 180)),
            options=PRESETS[preset].options,
            callback=observe,
        )
        yield from rows


def _objectives(options: Options) -> Iterator[Row]:
    score = make_score(problems.linear_gaussian(5, 100, 0, standardize=True).data)
    space, graphs = edge_space(score), all_dags(5)
    log_scores = score.log_score(graphs)
    settings: list[dict[str, Any]] = [
        {},
        {"objective": "subtrajectory"},
        {"objective": "detailed"},
        {"backward": "uniform"},
        {"exploration": 0.0},
    ]
    for setting in settings:
        learner = _learner(space, options, **setting)
        trained = train(
            learner,
            jax.random.key(options.seed),
            iterations=_iterations(options, 1000),
            options=PRESETS["fast"].options,
        )
        learnt = policy_distribution(space, trained.params, graphs)
        divergence = _jsd(learnt, log_scores)
        changed = " ".join(f"{name}={value}" for name, value in setting.items()) or "default"
        yield {
            "setting": changed,
            "iterations": trained.iterations,
            "seconds": trained.seconds,
            "jsd": divergence,
        }


@double_precision
def _against_exact(problem: problems.Problem, options: Options, *, default_iterations: int) -> Row:
    """Train on one problem, sample 10,000 graphs, compare with the exact posterior."""
    score = make_score(problem.data)
    space = edge_space(score)
    trained = _train(space, options, default_iterations)
    samples = sample_dags(space, trained.params, jax.random.key(1), 1000 if options.quick else 10_000)
    exact = reference(score.dense_table(), options.references)
    log_weights = _log_weights(score, samples)
    adjacency = np.asarray(samples.adjacency)
    raw = adjacency.mean(axis=0)
    weighted = np.tensordot(softmax(log_weights), adjacency, axes=1)
    row: Row = {
        "problem": problem.name,
        "iterations": trained.iterations,
        "seconds": trained.seconds,
        "max_error_raw": float(np.abs(raw - exact.edge_probabilities).max()),
        "max_error_weighted": float(np.abs(weighted - exact.edge_probabilities).max()),
        "edges_raw": float(raw.sum()),
        "edges_weighted": float(weighted.sum()),
        "edges_exact": float(exact.edge_probabilities.sum()),
        **importance_summary(log_weights),
        "log_evidence_exact": exact.log_evidence,
        "exponent": trained.history[-1]["exponent"],
    }
    if problem.truth is not None:
        truth = problem.truth.loc[list(score.names), list(score.names)].to_numpy()
        for name, belief in (("raw", raw), ("weighted", weighted), ("exact", exact.edge_probabilities)):
            row[f"e_shd_{name}"] = metrics.expected_shd(belief, truth)
            row[f"auroc_{name}"] = metrics.auroc(belief, truth)
    return row


def _train(space: EdgeSpace, options: Options, default_iterations: int) -> Trained:
    budget = None if options.quick else options.extra.get("budget")
    return train(
        _learner(space, options),
        jax.random.key(options.seed),
        iterations=None if budget else _iterations(options, default_iterations),
        budget=float(budget) if budget else None,
        options=PRESETS["fast"].options,
    )


def _jsd(probabilities: np.ndarray, log_scores: np.ndarray) -> float:
    with np.errstate(divide="ignore"):
        return metrics.jsd(np.log(probabilities), log_scores)


def _log_weights(score: Score, samples: Samples) -> np.ndarray:
    start = score.log_score(score.constraints.required[None])[0]
    return start + np.asarray(samples.gain) + np.asarray(samples.log_ratio)


@double_precision
def _cost(d: int, options: Options) -> Row:
    """Speeds after a short training, so that the graphs have the size of the posterior's."""
    score = make_score(problems.linear_gaussian(d, 100, 0, standardize=True).data)
    space = edge_space(score)
    batch = int(options.extra.get("batch", 128 if d <= 20 else 32))
    learner = EdgeLearner(space, batch_size=batch, width=default_width(d))
    iterations = _iterations(options, {5: 300, 10: 300, 20: 300}.get(d, 20))
    trained = train(learner, jax.random.key(0), iterations=iterations, options=Optimisation())
    rows = trained.history
    middle = len(rows) // 2
    steps = rows[-1]["step"] - rows[middle - 1]["step"]
    elapsed = rows[-1]["seconds"] - rows[middle - 1]["seconds"]
    transitions = float(np.mean([row["edges"] + 1 for row in rows[middle:]])) * batch * steps
    sample_batch = 1000 if d <= 20 else 100
    draw = eqx.Partial(sample_dags, space, trained.params, num_samples=sample_batch, batch=sample_batch)
    draw(jax.random.key(1))  # compiles
    started = time.perf_counter()
    samples = [draw(jax.random.key(i)) for i in range(2, 6)]
    seconds = (time.perf_counter() - started) / len(samples)
    edges = float(jnp.stack([s.num_steps for s in samples]).mean())
    return {
        "d": d,
        "batch": batch,
        "iterations_per_s": steps / elapsed,
        "trained_transitions_per_s": transitions / elapsed,
        "us_per_transition": 1e6 * elapsed / transitions,
        "trajectories_mib": check_memory(d, batch) / 2**20,
        "dags_per_s": sample_batch / seconds,
        "sampled_transitions_per_s": sample_batch * (edges + 1) / seconds,
        "mean_edges": edges,
    }
