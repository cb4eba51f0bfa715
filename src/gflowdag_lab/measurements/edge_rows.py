"""Rows about the edge-wise GFlowNet: options of its cases, and fidelity to the exact posterior.

Every error comes in two columns: raw policy samples, and importance-weighted.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from gflowdag import metrics
from gflowdag.estimators import PRESETS, DAGGFlowNet
from gflowdag.exact import Reference, reference
from gflowdag.gflownet import EdgeLearner, EdgeSpace, Policy
from gflowdag.posterior import Posterior
from gflowdag.score import Score
from gflowdag_lab.measurements.harness import Options, Row
from gflowdag_lab.model import PRIOR, paper_score, score_name
from gflowdag_lab.paper import problems


def learner(score: Score, options: Options, **settings: Any) -> EdgeLearner:
    """The learner of `fast`, with other settings than its own where they are given."""
    estimator = DAGGFlowNet(
        preset="fast",
        batch_size=int(options.extra.get("batch", PRESETS["fast"].batch_size)),
        num_training_graphs=settings.pop("num_training_graphs", num_training_graphs(options)),
    )
    made = estimator.make_learner(score, estimator.training_preset(score.num_variables), options.seed)
    assert isinstance(made, EdgeLearner)
    return replace(made, **settings)


def num_training_graphs(options: Options) -> int:
    """Graphs of chains that `fast` learns from."""
    return int(options.extra.get("training_graphs", DAGGFlowNet().num_training_graphs))


def length(options: Options, default: int) -> dict[str, Any]:
    """How long to train: the keyword `iterations` or `budget` of the trainer and of the estimator."""
    if options.quick:
        return {"iterations": 30}
    if "budget" in options.extra:
        return {"budget": float(options.extra["budget"])}
    return {"iterations": int(options.extra.get("iterations", default))}


def sizes(options: Options, quick: tuple[int, ...], full: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers of variables."""
    return (int(options.extra["d"]),) if "d" in options.extra else quick if options.quick else full


def scalings(options: Options) -> list[bool]:
    """Whether to standardise, for each kind of data asked for."""
    scalings = {"raw": False, "standardised": True}
    return [scalings[options.extra["data"]]] if "data" in options.extra else list(scalings.values())


def posterior_of(score: Score, space: EdgeSpace, policy: Policy, options: Options) -> Posterior:
    """What the estimator makes of a policy."""
    estimator = DAGGFlowNet(prior=PRIOR, num_weighted=1000 if options.quick else 10_000)
    return estimator.posterior_of(score, 0, space, policy, jax.random.key(1), iterations=0)


def fidelity(posterior: Posterior, exact: Reference) -> Row:
    """Raw and weighted errors, and what the diagnostics say."""
    details = posterior.diagnostics()
    beliefs = {name: details[f"{name}_edge_probabilities"] for name in ("raw", "weighted")}
    return {
        **{
            f"max_error_{name}": float(np.abs(belief - exact.edge_probabilities).max())
            for name, belief in beliefs.items()
        },
        **{f"edges_{name}": float(belief.sum()) for name, belief in beliefs.items()},
        **{f"r_{name}": _correlation(belief, exact.edge_probabilities) for name, belief in beliefs.items()},
        "edges_exact": float(exact.edge_probabilities.sum()),
        "log_evidence_difference": (posterior.log_evidence or np.nan) - exact.log_evidence,
        "log_evidence_error": posterior.log_evidence_error,
        **{name: details[name] for name in ("ess", "pareto_k", "unseen_share", "verdict")},
    }


def _correlation(belief: np.ndarray, exact: np.ndarray) -> float:
    """Of the probabilities of all edges."""
    between = ~np.eye(len(exact), dtype=bool)
    return float(np.corrcoef(belief[between], exact[between])[0, 1])


def against_exact(problem: problems.Problem, options: Options, *, default_iterations: int) -> Row:
    """Fit one problem, sample 10,000 graphs, compare with the exact posterior."""
    batch = options.extra.get("batch")
    estimator = DAGGFlowNet(
        score=score_name(problem.data),
        prior=PRIOR,
        preset=options.extra.get("preset", "fast"),
        batch_size=int(batch) if batch else None,
        num_training_graphs=num_training_graphs(options),
        num_weighted=1000 if options.quick else 10_000,
        random_state=options.seed,
        **length(options, default_iterations),
    )
    started, on_processor = time.perf_counter(), time.process_time()
    posterior = estimator.fit(problem.data).posterior_
    seconds, on_processor = time.perf_counter() - started, time.process_time() - on_processor
    score = paper_score(problem.data)
    exact = reference(score.dense_table(), options.references)
    details = posterior.diagnostics()
    row: Row = {
        "problem": problem.name,
        "preset": details["preset"],
        "training_graphs": num_training_graphs(options) if details["preset"] == "fast" else None,
        "iterations": details["iterations"],
        "seconds": seconds,
        "cpu_seconds": on_processor,
        **fidelity(posterior, exact),
    }
    truth = problem.truth.loc[list(score.names), list(score.names)].to_numpy()
    beliefs = {name: details[f"{name}_edge_probabilities"] for name in ("raw", "weighted")}
    for name, belief in {**beliefs, "exact": exact.edge_probabilities}.items():
        row[f"e_shd_{name}"] = metrics.expected_shd(belief, truth)
        row[f"auroc_{name}"] = metrics.auroc(belief, truth)
    return row
