"""DAG-GFlowNet: speed of training and sampling, and memory.

Options of both cases: `d=N`; `batch=N` (cost); `iterations=N` or `budget=SECONDS`, `lanes=N,N` (sampling).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import equinox as eqx
import jax
import numpy as np

from gflowdag.estimators import DAGGFlowNet
from gflowdag.gflownet import (
    EdgeLearner,
    Policy,
    StateSpace,
    check_memory,
    default_width,
    edge_space,
    sample,
    train,
)
from gflowdag.gflownet import Options as Optimisation
from gflowdag.runtime import double_precision
from gflowdag_lab.measurements import edge_rows
from gflowdag_lab.measurements.harness import Options, Row, case, in_double_precision
from gflowdag_lab.model import paper_score
from gflowdag_lab.paper import problems


@case
def dag_gflownet_cost(options: Options) -> Iterator[Row]:
    """Training and sampling speed and the memory of the trajectories against d."""
    for d in edge_rows.sizes(options, (5, 10), (5, 10, 20, 50)):
        yield _cost(d, options)


@case
def dag_gflownet_sampling(options: Options) -> Iterator[Row]:
    """DAGs drawn in a second from policies that have learnt, standardised data."""
    for d in edge_rows.sizes(options, (5,), (5, 20)):
        yield from in_double_precision(_sampling, d, options)


@double_precision
def _cost(d: int, options: Options) -> Row:
    """Speeds after a short training, so that the graphs have the size of the posterior's."""
    score = paper_score(problems.linear_gaussian(d, 100, 0, standardize=True).data)
    space = edge_space(score)
    batch = int(options.extra.get("batch", 128 if d <= 20 else 32))
    learner = EdgeLearner(space, batch_size=batch, width=default_width(d))
    iterations = 30 if options.quick else {5: 300, 10: 100, 20: 20}.get(d, 6)
    trained = train(learner, jax.random.key(0), iterations=iterations, options=Optimisation())
    rows = trained.history
    middle = len(rows) // 2
    steps = rows[-1]["step"] - rows[middle - 1]["step"]
    elapsed = rows[-1]["seconds"] - rows[middle - 1]["seconds"]
    transitions = float(np.mean([row["edges"] + 1 for row in rows[middle:]])) * batch * steps
    return {
        "d": d,
        "batch": batch,
        "iterations_per_s": steps / elapsed,
        "trained_transitions_per_s": transitions / elapsed,
        "us_per_transition": 1e6 * elapsed / transitions,
        "trajectories_mib": check_memory(d, batch) / 2**20,
        **_sampling_speed(space, trained.params, 2000 if d <= 20 else batch),
    }


def _sampling(d: int, options: Options) -> Iterator[Row]:
    """Sampling speed of a policy that has learnt: by `fast` up to a dozen variables, else from chains.

    With `lanes`, once for each number of trajectories side by side, and five graphs a lane.
    """
    score = paper_score(problems.linear_gaussian(d, 100, 0, standardize=True).data)
    estimator = DAGGFlowNet(preset="fast" if d <= 12 else "chains", num_chains=4 if options.quick else 128)
    preset = estimator.training_preset(d)
    learner = estimator.make_learner(score, preset, options.seed)
    trained = train(
        learner,
        jax.random.key(options.seed),
        **edge_rows.length(options, preset.iterations),
        options=preset.options,
    )
    learnt = {"d": d, "preset": estimator.preset, "iterations": trained.iterations}
    if "lanes" not in options.extra:
        yield learnt | _sampling_speed(learner.space, trained.params, 5000)
        return
    for lanes in map(int, options.extra["lanes"].split(",")):
        speed = _sampling_speed(learner.space, trained.params, 5 * lanes, lanes)
        yield learnt | {"lanes": lanes} | speed


def _sampling_speed(space: StateSpace, policy: Policy, count: int, lanes: int | None = None) -> Row:
    """Speed of drawing `count` graphs at once, as the estimator does; by default with its lanes too."""
    draw = eqx.Partial(sample, space, policy, num_samples=count, batch=lanes)
    draw(jax.random.key(1))  # compiles
    started = time.perf_counter()
    samples = draw(jax.random.key(2))
    seconds = time.perf_counter() - started
    edges = float(samples.num_steps.mean())
    return {
        "dags_per_s": count / seconds,
        "sampled_transitions_per_s": count * (edges + 1) / seconds,
        "mean_edges": edges,
        "max_edges": int(samples.num_steps.max()),
    }
