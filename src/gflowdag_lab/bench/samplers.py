"""Each sampler, set up and ready to draw one batch of graphs after the other.

Policies are untrained. An order takes as many steps whatever was learnt; a graph that grows edge by edge
takes one for each edge, and an untrained policy draws dense ones. Successive graphs of a chain resemble each
other; those of the exact posterior and of the GFlowNets are independent.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from gflowdag import exact
from gflowdag.score import Score

Draw = Callable[[], int]  # draws a batch, returns the number of graphs
_BATCH = 1000
_GPU_BATCHES = 20  # of policies, drawn at once: a thousand graphs do not fill a GPU
_NUM_CHAINS = 250


def _exact(score: Score, seed: int) -> Draw:
    table = score.dense_table()
    answer, rng = exact.posterior(table), np.random.default_rng(seed)
    return lambda: len(exact.sample(table, _BATCH, rng, exact=answer))


def _mc3(score: Score, seed: int) -> Draw:
    from gflowdag.mcmc import limits_from_constraints, make_changes, structure

    steps = 400  # of which four are recorded
    changes, limits = make_changes(score.deltas()), limits_from_constraints(*score.constraints)
    empty = np.zeros((_NUM_CHAINS, score.num_variables, score.num_variables), bool)

    def draw() -> int:
        state = structure.init(empty, score.log_score(empty), changes, limits)
        structure.run(
            jax.random.key(seed), state, changes, limits, burn_in=0, num_steps=steps, thinning=steps // 4
        )
        return _NUM_CHAINS * steps

    return draw


def _order_mcmc(score: Score, seed: int) -> Draw:
    from gflowdag.mcmc import order_chains
    from gflowdag.orders import order_problem

    start_key, key = jax.random.split(jax.random.key(seed))
    problem, rng = order_problem(score, seed=seed), np.random.default_rng(seed)
    replicas = order_chains.Replicas(problem, (1.0,), _NUM_CHAINS, start_key, rng)

    def draw() -> int:
        sweeps = _BATCH // _NUM_CHAINS  # each leaves a new graph in every chain
        for _ in range(sweeps):
            replicas.sweep(key, order_chains.SWEEP)
        return sweeps * _NUM_CHAINS

    return draw


def _order_gflownet(score: Score, seed: int) -> Draw:
    from gflowdag.estimators import order_space
    from gflowdag.gflownet import OrderLearner, sample
    from gflowdag.orders import draw_graphs, order_problem

    problem, rng = order_problem(score, seed=seed), np.random.default_rng(seed)
    space = order_space(score, problem)
    policy, _ = OrderLearner(space).init(jax.random.key(seed))
    count = num_drawn()

    def draw() -> int:
        orders = np.asarray(sample(space, policy, jax.random.key(seed), count, batch=count).built)
        return len(draw_graphs(problem.weights, problem.table, orders, problem.labels, rng))

    return draw


def _dag_gflownet(score: Score, seed: int) -> Draw:
    from gflowdag.gflownet import EdgeLearner, default_width, edge_space, sample

    space = edge_space(score)
    policy, _ = EdgeLearner(space, width=default_width(score.num_variables)).init(jax.random.key(seed))
    key, count = jax.random.key(seed), num_drawn()
    return lambda: len(np.asarray(sample(space, policy, key, count).built))


def num_drawn() -> int:
    """Graphs that a policy draws at once."""
    return _BATCH if jax.default_backend() == "cpu" else _GPU_BATCHES * _BATCH


SAMPLERS: dict[str, Callable[[Score, int], Draw]] = {
    "exact": _exact,
    "mc3": _mc3,
    "order-mcmc": _order_mcmc,
    "order-gflownet": _order_gflownet,
    "dag-gflownet": _dag_gflownet,
}
