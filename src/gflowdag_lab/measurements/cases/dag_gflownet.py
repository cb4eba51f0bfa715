"""DAG-GFlowNet: fidelity to the exact posterior and learning curves.

Every error comes in two columns: raw policy samples, and importance-weighted. Options of all cases:
`iterations=N` or `budget=SECONDS`, `batch=N`, `training_graphs=N`; `data=raw` or `data=standardised` alone
(five and twenty variables), `data=continuous` or `data=interventional` alone (Sachs); `networks=N`,
`first=N` (five, twenty); `files=A,B` (five, pooled); `d=N` (twenty, rows) and `rows=N` (rows);
`preset=NAME` (five, Sachs, twenty, rows, curve);
`fast_budget=SECONDS`, `paper_budget=SECONDS`, `paper_batch=N`, `paper_rate=X`, `network=N` (learning curves).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy.special import softmax

from gflowdag import metrics
from gflowdag.estimators import PRESETS, DAGGFlowNet, preset_for
from gflowdag.exact import reference
from gflowdag.gflownet import Options as Optimisation
from gflowdag.gflownet import (
    PaperLearner,
    Samples,
    Tempering,
    balanced_dags,
    edge_space,
    sample,
    train,
)
from gflowdag.graph import all_dags, markov_blanket_features, path_features
from gflowdag.posterior import importance_summary
from gflowdag.score import Score
from gflowdag_lab.measurements import edge_rows
from gflowdag_lab.measurements.harness import Options, Row, case, in_double_precision
from gflowdag_lab.measurements.policy_distribution import policy_distribution
from gflowdag_lab.model import paper_score
from gflowdag_lab.paper import problems

FEATURES = {
    "edges": lambda graphs: graphs,
    "paths": path_features,
    "blankets": markov_blanket_features,
}


@case
def dag_gflownet_five(options: Options) -> Iterator[Row]:
    """d = 5, N = 100, ER1, 20 networks: divergence from the exact posterior, and correlations of features.

    The correlations are those of 10,000 independent graphs, raw and weighted; of 10,000 balanced ones; of the
    policy itself, without the noise of sampling; and of 10,000 independent graphs of the exact posterior, the
    ideal that no independent sampler surpasses.
    """
    yield from in_double_precision(_five, options)


@case
def dag_gflownet_five_pooled(options: Options) -> Iterator[Row]:
    """The correlations of `dag-gflownet-five` over networks that were run in parts, from their files."""
    rows = [
        row
        for file in options.extra["files"].split(",")
        for row in json.loads(Path(file).read_text())["rows"]
    ]
    for data in ("raw", "standardised"):
        part = [row for row in rows if row["data"] == data and "points" in row]
        if part:
            yield _pooled(part)


@case
def dag_gflownet_curve(options: Options) -> Iterator[Row]:
    """Learning curves of `fast` and `paper` on one standardised network of d = 5."""
    yield from in_double_precision(_curve, options)


@case
def dag_gflownet_objectives(options: Options) -> Iterator[Row]:
    """Objectives, exploration and cooling of `fast` on one network of d = 5, standardised or `data=raw`."""
    yield from in_double_precision(_objectives, options)


@case
def dag_gflownet_collapse(options: Options) -> Iterator[Row]:
    """A policy trained in haste on a peaked posterior, and whether the diagnostics notice."""
    yield from in_double_precision(_collapse, options)


@case
def dag_gflownet_sachs(options: Options) -> Iterator[Row]:
    """Sachs, continuous and interventional."""
    kinds = {
        "continuous": problems.sachs_continuous,
        "interventional": lambda: problems.sachs_interventional(options.data),
    }
    for kind in [options.extra["data"]] if "data" in options.extra else kinds:
        yield edge_rows.against_exact(kinds[kind](), options, default_iterations=4000)


@case
def dag_gflownet_twenty(options: Options) -> Iterator[Row]:
    """d = 20, N = 100, raw and standardised; one data set, or `networks=N` from `first=N` on."""
    d, first = int(options.extra.get("d", 8 if options.quick else 20)), int(options.extra.get("first", 0))
    for standardize in edge_rows.scalings(options):
        for seed in range(first, first + int(options.extra.get("networks", 1))):
            problem = problems.linear_gaussian(d, 100, seed, standardize=standardize)
            yield edge_rows.against_exact(problem, options, default_iterations=6000)


@case
def dag_gflownet_rows(options: Options) -> Iterator[Row]:
    """N = 10², 10³, 10⁴ at d = 5 and 11, standardised: the paper's stated limitation."""
    for d in edge_rows.sizes(options, (5,), (5, 11)):
        for rows in (int(options.extra["rows"]),) if "rows" in options.extra else (100, 1000, 10_000):
            problem = problems.linear_gaussian(d, rows, 0, standardize=True)
            yield edge_rows.against_exact(problem, options, default_iterations=2000 if d == 5 else 4000)


def _five(options: Options) -> Iterator[Row]:
    first, count = int(options.extra.get("first", 0)), int(options.extra.get("networks", 20))
    for standardize in edge_rows.scalings(options):
        rows: list[Row] = []
        for network in range(first, first + (2 if options.quick else count)):
            rows.append(_one_of_five(network, standardize, options))
            yield rows[-1]
        yield _pooled(rows)


def _one_of_five(network: int, standardize: bool, options: Options) -> Row:
    """One network: its divergence, and the exact and believed probabilities of all its features."""
    graphs = all_dags(5)
    score = paper_score(problems.linear_gaussian(5, 100, network, standardize=standardize).data)
    space, log_scores = edge_space(score), score.log_score(graphs)
    name = options.extra.get("preset", "fast")
    preset, on_processor = preset_for(name, 5), time.process_time()
    trained = train(
        edge_rows.learner(score, options)
        if name == "fast"
        else DAGGFlowNet(preset=name).make_learner(score, preset, options.seed),
        jax.random.key(options.seed),
        **edge_rows.length(options, preset.iterations),
        options=preset.options,
    )
    on_processor = time.process_time() - on_processor
    started = time.perf_counter()
    samples = sample(space, trained.params, jax.random.key(network), 10_000)
    even = balanced_dags(space, trained.params, jax.random.key(network), 10_000) if name == "fast" else None
    sampling_seconds = time.perf_counter() - started
    learnt, exact = policy_distribution(space, trained.params, graphs), softmax(log_scores)
    ideal = graphs[np.random.default_rng(network).choice(len(graphs), 10_000, p=exact)]
    drawn, alike = np.asarray(samples.built), np.full(10_000, 1e-4)
    beliefs = {
        "": (drawn, alike),
        "_weighted": (drawn, softmax(_log_weights(score, samples))),
        **({} if even is None else {"_balanced": (np.asarray(even.built), alike)}),
        "_policy": (graphs, learnt),
        "_ideal": (ideal, alike),
    }
    return {
        "data": "standardised" if standardize else "raw",
        "network": network,
        "iterations": trained.iterations,
        "seconds": trained.seconds + sampling_seconds,
        "cpu_seconds": on_processor,
        "jsd": _jsd(learnt, log_scores),
        "ess": importance_summary(_log_weights(score, samples)).ess,
        "points": {
            name + suffix: [_probabilities(feature, graphs, exact), _probabilities(feature, *belief)]
            for suffix, belief in beliefs.items()
            for name, feature in FEATURES.items()
        },
    }


def _probabilities(feature: Callable, graphs: np.ndarray, weights: np.ndarray) -> list[float]:
    """Of a feature between all pairs of different nodes; graphs are [n, d, d], weights [n]."""
    off_diagonal = ~np.eye(graphs.shape[-1], dtype=bool)
    return np.tensordot(weights, feature(graphs), axes=1)[off_diagonal].round(7).tolist()


def _pooled(rows: list[Row]) -> Row:
    """Means over networks, and correlations over the points of all of them."""
    networks = [row["network"] for row in rows]
    return {
        "data": rows[0]["data"],
        "network": f"{min(networks)} to {max(networks)}",
        **{
            name: float(np.mean([row[name] for row in rows]))
            for name in ("iterations", "seconds", "cpu_seconds", "jsd")
        },
        "jsd_max": max(row["jsd"] for row in rows),
        "max_error_policy": max(np.abs(np.subtract(*row["points"]["edges_policy"])).max() for row in rows),
        **{
            f"r_{name}": float(
                np.corrcoef(*np.concatenate([row["points"][name] for row in rows], axis=1))[0, 1]
            )
            for name in rows[0]["points"]
        },
    }


def _curve(options: Options) -> Iterator[Row]:
    network = int(options.extra.get("network", 0))
    score = paper_score(problems.linear_gaussian(5, 100, network, standardize=True).data)
    space, graphs = edge_space(score), all_dags(5)
    log_scores = score.log_score(graphs)
    off_diagonal = ~np.eye(5, dtype=bool)
    exact = np.tensordot(softmax(log_scores), graphs, axes=1)[off_diagonal]
    paper_batch = int(options.extra.get("paper_batch", PRESETS["paper"].batch_size))
    learners = {
        "fast": edge_rows.learner(score, options),
        "paper": PaperLearner(space, batch_size=paper_batch),
    }
    rate = float(options.extra.get("paper_rate", PRESETS["paper"].options.learning_rate))
    optimisation = {
        "fast": preset_for("fast", 5).options,
        "paper": PRESETS["paper"].options._replace(learning_rate=rate),
    }
    for preset in [options.extra["preset"]] if "preset" in options.extra else learners:
        learner = learners[preset]
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
            row = {
                "network": network,
                "preset": preset,
                "iteration": step,
                "seconds": seconds,
                "jsd": _jsd(learnt, log_scores),
            }
            marginals = np.tensordot(learnt, graphs, axes=1)[off_diagonal]
            rows.append({**row, "r_edges": float(np.corrcoef(marginals, exact)[0, 1])})
            clock["evaluating"] += time.perf_counter() - now

        trained = train(
            learner,
            jax.random.key(options.seed),
            budget=15.0 if options.quick else float(options.extra.get(f"{preset}_budget", 180)),
            options=optimisation[preset],
            callback=observe,
        )
        clock["next"] = 0.0
        observe(trained.iterations, trained.params)
        yield from rows


def _objectives(options: Options) -> Iterator[Row]:
    standardize = options.extra.get("data") != "raw"
    score = paper_score(problems.linear_gaussian(5, 100, 0, standardize=standardize).data)
    space, graphs = edge_space(score), all_dags(5)
    log_scores = score.log_score(graphs)
    settings: list[dict[str, Any]] = [
        {},
        {"objective": "subtrajectory"},
        {"objective": "detailed"},
        {"backward": "uniform"},
        {"exploration": 0.0},
        {"num_training_graphs": 0},
        {"cooldown": 0.25, "learning_rate": 1e-3},
    ]
    exact = reference(score.dense_table(), options.references)
    for setting in settings:
        optimisation = {name: value for name, value in setting.items() if name in Optimisation._fields}
        learning = {name: value for name, value in setting.items() if name not in optimisation}
        trained = train(
            edge_rows.learner(score, options, **learning),
            jax.random.key(options.seed),
            **edge_rows.length(options, 1000),
            options=preset_for("fast", 5).options._replace(**optimisation),
        )
        learnt = policy_distribution(space, trained.params, graphs)
        yield {
            "setting": " ".join(f"{name}={value}" for name, value in setting.items()) or "default",
            "iterations": trained.iterations,
            "seconds": trained.seconds,
            "jsd": _jsd(learnt, log_scores),
            **edge_rows.fidelity(edge_rows.posterior_of(score, space, trained.params, options), exact),
        }


def _collapse(options: Options) -> Iterator[Row]:
    problem = problems.sachs_interventional(options.data)
    score = paper_score(problem.data)
    space = edge_space(score)
    exact = reference(score.dense_table(), options.references)
    hasty = {"exploration": 0.0, "tempering": Tempering(spread=2.0, rate=0.03)}
    runs = [(graphs, seed) for graphs in (0, edge_rows.num_training_graphs(options)) for seed in range(3)]
    for graphs, seed in runs[::3] if options.quick else runs:
        trained = train(
            edge_rows.learner(score, options, num_training_graphs=graphs, **hasty),
            jax.random.key(seed),
            **edge_rows.length(options, 1000),
            options=PRESETS["fast"].options,
        )
        yield {
            "problem": problem.name,
            "training_graphs": graphs,
            "seed": seed,
            "iterations": trained.iterations,
            "seconds": trained.seconds,
            **edge_rows.fidelity(edge_rows.posterior_of(score, space, trained.params, options), exact),
        }


def _jsd(probabilities: np.ndarray, log_scores: np.ndarray) -> float:
    with np.errstate(divide="ignore"):
        return metrics.jsd(np.log(probabilities), log_scores)


def _log_weights(score: Score, samples: Samples) -> np.ndarray:
    start = score.log_score(score.constraints.required[None])[0]
    return start + np.asarray(samples.log_weights)
