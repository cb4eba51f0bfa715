"""What each part of DAG-GFlowNet's preset `retuned` is worth, by the policy's own marginals.

Options: `lever=NAME`, or several with semicolons (all by default), `network=N`, `data=raw` or
`data=standardised`, `iterations=N`. `target-network` is the ablation of the paper's target network alone, on
both networks that `retuned` was chosen by; its rows are the table of the page on the paper's experiments.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from scipy.spatial.distance import jensenshannon
from scipy.special import softmax

from gflowdag.estimators import RETUNED, preset_for
from gflowdag.gflownet import edge_space, train
from gflowdag.graph import all_dags
from gflowdag_lab.measurements import edge_rows
from gflowdag_lab.measurements.harness import Options, Row, case, in_double_precision
from gflowdag_lab.measurements.policy_distribution import policy_distribution
from gflowdag_lab.model import paper_score
from gflowdag_lab.paper import problems

NETWORKS = (0, 12)  # of figure 3: an easy and a hard one, by which `retuned` was chosen
# A copy in every iteration: the target is the present network, still without a gradient of its own.
TARGET_LEVERS: dict[str, dict[str, Any]] = {
    "retuned": {},
    "no target network": {"target_period": 1},
    "target every 40 iterations": {"target_period": 40},
}
LEVERS: dict[str, dict[str, Any]] = {
    **TARGET_LEVERS,
    "scores unseen": {"sees_scores": False},
    "no tempering": {"tempering_spread": None},
    "tempering within 1 nat": {"tempering_spread": 1.0},
    "one edge of each graph": {"edges_per_graph": 1, "batch_size": 64},
    "half of the rate, shorter cool-down": {"learning_rate": 2e-3, "cooldown": 0.75},
    "twice the rate": {"learning_rate": 8e-3},
    "small buffer, less exploration": {"replay_capacity": 4000, "min_exploration": 0.05},
    "wider network": {"embedding": 32, "head_size": 16, "hidden": 128},
}


@case
def retuned_levers(options: Options) -> Iterator[Row]:
    """One network of figure 3 with one constant changed at a time; seconds are those of the processor."""
    yield from in_double_precision(_rows, options, (0,), LEVERS)


@case
def target_network(options: Options) -> Iterator[Row]:
    """The target network of section 5: none, a copy every ten iterations (`retuned`), every forty."""
    yield from in_double_precision(_rows, options, NETWORKS, TARGET_LEVERS)


def _rows(options: Options, networks: Iterable[int], levers: Iterable[str]) -> Iterator[Row]:
    networks = [int(options.extra["network"])] if "network" in options.extra else networks
    levers = options.extra["lever"].split(";") if "lever" in options.extra else levers
    for network in networks:
        for standardize in edge_rows.scalings(options):
            for lever in levers:
                yield _row(options, network, lever, standardize=standardize)


def _row(options: Options, network: int, lever: str, *, standardize: bool) -> Row:
    graphs, between = all_dags(5), ~np.eye(5, dtype=bool)
    iterations = int(options.extra.get("iterations", preset_for("retuned", 5).iterations))
    iterations = 5 if options.quick else iterations
    score = paper_score(problems.linear_gaussian(5, 100, network, standardize=standardize).data)
    space, exact = edge_space(score), softmax(score.log_score(graphs))
    recipe, started = replace(RETUNED, **LEVERS[lever]), time.process_time()
    trained = train(
        recipe.learner(space, batch_size=recipe.batch_size),
        jax.random.key(options.seed),
        iterations=iterations,
        options=recipe.options(),
    )
    seconds = time.process_time() - started
    learnt = policy_distribution(space, trained.params, graphs)
    marginals = [np.tensordot(weights, graphs, axes=1)[between] for weights in (learnt, exact)]
    return {
        "lever": lever,
        "network": network,
        "data": "standardised" if standardize else "raw",
        "seed": options.seed,
        "iterations": iterations,
        "cpu_seconds": seconds,
        "r_edges": float(np.atleast_2d(np.corrcoef(np.stack(marginals)))[0, 1]),
        "max_error": float(np.abs(marginals[0] - marginals[1]).max()),
        "jsd": float(jensenshannon(learnt, exact) ** 2),
        "edges": float(marginals[0].sum()),
        "edges_exact": float(marginals[1].sum()),
    }
