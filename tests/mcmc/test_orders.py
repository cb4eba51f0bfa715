"""Order MCMC against all DAGs on four nodes."""

from __future__ import annotations

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp
from scipy.stats import chisquare

from gflowdag.data import Knowledge
from gflowdag.estimators.order_mcmc import OrderMCMC
from gflowdag.graph import all_dags
from gflowdag.mcmc import orders as order_mcmc
from gflowdag.orders.candidates import dense_candidates
from gflowdag.orders.weights import OrderWeights, order_weights
from gflowdag.runtime.precision import double_precision
from gflowdag.score import make_score


@partial(jax.jit, static_argnames=("num_chains", "num_steps"))
def stepped(weights: OrderWeights, labels: jax.Array, *, num_chains: int, num_steps: int) -> jax.Array:
    """Where chains from random orders are after some steps, int32 [chains, d]."""
    start_key, key = jax.random.split(jax.random.key(0))

    def step(states: order_mcmc.ChainState, key: jax.Array):
        keys = jax.random.split(key, num_chains)
        return jax.vmap(order_mcmc.step, (0, 0, None, None))(keys, states, weights, labels)

    states = order_mcmc.start(start_key, weights, labels, num_chains)
    return jax.lax.scan(step, states, jax.random.split(key, num_steps))[0].order


@double_precision
def test_chains_visit_orders_by_their_weight():
    rng = np.random.default_rng(0)
    labels = rng.permutation(4)
    weights = jax.tree.map(jnp.asarray, order_weights(dense_candidates(1.5 * rng.normal(size=(4, 8)))))
    orders = np.array(list(itertools.permutations(range(4))))
    log_weight = jax.vmap(lambda order: order_mcmc.log_weight(weights, jnp.asarray(labels), order))
    exact = np.asarray(log_weight(jnp.asarray(orders)))
    exact = np.exp(exact - logsumexp(exact))
    # The last state of many chains: independent draws, long after the start is forgotten.
    reached = stepped(weights, jnp.asarray(labels), num_chains=5000, num_steps=60)
    counts = (reached[:, None] == orders).all(axis=2).sum(axis=0)
    common = exact * 5000 > 5
    observed = np.append(counts[common], counts[~common].sum())
    expected = np.append(exact[common], exact[~common].sum()) * 5000
    assert chisquare(observed[expected > 0], expected[expected > 0]).pvalue > 1e-3


def test_moving_a_block_permutes_and_can_be_undone():
    order = jnp.arange(7, dtype=jnp.int32)
    moved = order_mcmc.move_block(order, 1, 2, 4)
    assert moved.tolist() == [0, 3, 4, 5, 1, 2, 6]
    assert order_mcmc.move_block(moved, 4, 2, 1).tolist() == order.tolist()


def test_edge_marginals_match_the_sum_over_all_dags_under_knowledge():
    values = np.random.default_rng(1).normal(size=(50, 4)) @ (np.eye(4) + np.triu(np.full((4, 4), 0.5), 1))
    knowledge = Knowledge(required=[("X2", "X1")], forbidden=[("X3", "X4")])
    estimator = OrderMCMC(
        knowledge=knowledge, iterations=600, num_records=80, random_state=0, num_samples=200
    )
    posterior = estimator.fit(values).posterior_
    graphs = all_dags(4)
    scores = estimator.score_.log_score(graphs)
    expected = np.tensordot(np.exp(scores - logsumexp(scores)), graphs, 1)
    errors = posterior.diagnostics()["edge_errors"]
    assert (np.abs(posterior.marginals - expected) < 5 * errors + 1e-3).all()
    assert posterior.diagnostics()["r_hat"] < 1.05
    assert np.isfinite(make_score(estimator._data).log_score(posterior.samples)).all()
    assert posterior.samples[:, 1, 0].all()
    assert not posterior.samples[:, 2, 3].any()
