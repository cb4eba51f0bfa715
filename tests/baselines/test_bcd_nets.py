"""BCD Nets: permutations and densities against enumeration, and problems with a known answer."""

from __future__ import annotations

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.stats import multivariate_normal

from gflowdag.baselines import bcd_nets
from gflowdag.baselines.assignment import max_assignment
from gflowdag.baselines.permutations import log_bethe_permanent, sample_permutation, sinkhorn
from gflowdag.data import Dataset, Knowledge
from gflowdag.errors import DataError, GFlowDAGError, KnowledgeError
from gflowdag.estimators.bcd_nets import BCDNets
from gflowdag.graph.closure import is_acyclic

QUICK = {"num_steps": 4000, "random_state": 0}


@pytest.fixture(scope="module")
def chain():
    """500 rows of c → b → a, all weights and variances one."""
    c, b, a = np.random.default_rng(0).normal(size=(3, 500))
    return pd.DataFrame({"a": a + b + c, "b": b + c, "c": c})


@pytest.fixture(scope="module")
def chain_posterior(chain):
    return BCDNets(equal_variances=True, standardize=False, **QUICK).fit(chain).posterior_


@pytest.mark.parametrize("kind", ["continuous", "with ties"])
def test_assignment_is_optimal(kind):
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(200, 7, 7)) if kind == "continuous" else rng.integers(0, 4, (200, 7, 7)) * 1.0
    columns = np.asarray(jax.jit(jax.vmap(max_assignment))(weights))
    rows = np.arange(7)
    np.testing.assert_array_equal(np.sort(columns, axis=1), np.broadcast_to(rows, columns.shape))
    for matrix, column in zip(weights, columns, strict=True):
        best = matrix[linear_sum_assignment(matrix, maximize=True)].sum()
        assert matrix[rows, column].sum() == pytest.approx(best, abs=1e-4)  # float32 weights


def test_assignment_of_not_a_number_ends():
    assert jax.jit(max_assignment)(jnp.full((7, 7), jnp.nan)).shape == (7,)


def test_sinkhorn_is_doubly_stochastic_and_keeps_cross_ratios():
    with jax.enable_x64(True):
        logits = jnp.asarray(np.random.default_rng(1).normal(size=(5, 5)) * 3)
        matrix = np.asarray(sinkhorn(logits, 500))
    np.testing.assert_allclose(matrix.sum(axis=0), 1)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-6)  # linear convergence

    def cross_ratio(x):
        return x[0, 0] * x[1, 1] / (x[0, 1] * x[1, 0])

    assert cross_ratio(matrix) == pytest.approx(cross_ratio(np.exp(logits)))


def test_sampled_permutations_maximise_the_perturbed_logits():
    keys = jax.random.split(jax.random.key(0), 50)
    with jax.enable_x64(True):
        logits = 10 * jnp.tanh(jnp.asarray(np.random.default_rng(2).normal(size=(6, 6))))
        drawn = np.asarray(jax.jit(jax.vmap(sample_permutation, (0, None)))(keys, logits))
        noise = np.asarray(jax.vmap(lambda key: jax.random.gumbel(key, (6, 6), jnp.float64))(keys))
        logits = np.asarray(logits)
    np.testing.assert_array_equal(
        np.sort(drawn, axis=1), np.broadcast_to(np.sort(np.eye(6), axis=0), drawn.shape)
    )
    for matrix, perturbed in zip(drawn, logits + noise, strict=True):
        best = perturbed[linear_sum_assignment(perturbed, maximize=True)].sum()
        assert np.sum(matrix * perturbed) == pytest.approx(best)


def test_bethe_permanent_is_within_its_proven_bounds_and_its_gradient_doubly_stochastic():
    logits = np.random.default_rng(4).normal(size=(5, 5)) * 2
    orders = np.array(list(itertools.permutations(range(5))))
    exact = np.logaddexp.reduce(logits[np.arange(5), orders].sum(axis=1))
    with jax.enable_x64(True):
        bethe, gradient = jax.value_and_grad(partial(log_bethe_permanent, num_iterations=200))(
            jnp.asarray(logits)
        )
    # Bethe ≤ permanent ≤ √2^d Bethe (Gurvits 2011; Anari & Rezaei 2019).
    assert 0 <= exact - bethe <= 2.5 * np.log(2)
    np.testing.assert_allclose(np.asarray(gradient).sum(axis=0), 1)
    np.testing.assert_allclose(np.asarray(gradient).sum(axis=1), 1)


def test_joint_density_is_that_of_the_implied_normal_distribution():
    rng = np.random.default_rng(5)
    d, n = 4, 30
    values = rng.normal(size=(n, d))
    values -= values.mean(axis=0)
    config = bcd_nets.Config()
    with jax.enable_x64(True):
        state = bcd_nets.init(jax.random.key(0), d, config)
        sample = jax.jit(bcd_nets.sample, static_argnames=("config", "num_variables"))
        draw = sample(jax.random.key(1), state.params, config, d)
        joint = bcd_nets.log_joint_density(draw, bcd_nets.moments(values), config)
        scale = bcd_nets.horseshoe_scale(d, np.asarray(30.0), config.degree)
        prior = float(jnp.sum(bcd_nets.log_horseshoe(draw.latents[:6], scale)))
    log_noise = np.asarray(draw.log_noise)
    for weights, value in zip(np.asarray(draw.weights), np.asarray(joint), strict=True):
        mixing = np.linalg.inv(np.eye(d) - weights)  # x = noise · mixing for row vectors
        covariance = mixing.T @ np.diag(np.exp(2 * log_noise)) @ mixing
        likelihood = multivariate_normal(np.zeros(d), covariance).logpdf(values).sum()
        assert is_acyclic(weights != 0)
        assert value == pytest.approx(likelihood + prior - np.sum(log_noise**2) / 18)


def test_equal_variances_identify_the_order_of_a_chain(chain_posterior):
    p = chain_posterior.edge_probabilities()
    # Under equal variances the order is identified: every likely graph is c → b → a.
    assert min(p.loc["c", "b"], p.loc["b", "a"]) > 0.98
    assert p.to_numpy().sum() < 2.1
    assert is_acyclic(chain_posterior.samples).all()


def test_unequal_variances_find_the_skeleton(chain):
    p = BCDNets(**QUICK).fit(chain).posterior_.edge_probabilities().to_numpy()
    adjacent = p + p.T
    assert min(adjacent[0, 1], adjacent[1, 2]) > 0.9


def test_same_seed_same_samples_and_nothing_is_vouched_for(chain, chain_posterior):
    again = BCDNets(equal_variances=True, standardize=False, **QUICK).fit(chain).posterior_
    np.testing.assert_array_equal(again.samples, chain_posterior.samples)
    assert again.diagnostics()["verdict"] == "unverified"
    assert np.isfinite(again.diagnostics()["elbo"])


@pytest.mark.parametrize(
    "knowledge", [Knowledge(required=[("a", "b")]), Knowledge(tiers=[["a"], ["b"]]), Knowledge(max_parents=1)]
)
def test_knowledge_is_refused(chain, knowledge):
    with pytest.raises(
        KnowledgeError, match=r"cannot (use required|limit the number).* use .*ExactPosterior"
    ):
        BCDNets(knowledge=knowledge, **QUICK).fit(chain)


def test_interventions_and_discrete_data_are_refused(chain):
    intervened = np.zeros(chain.shape, bool)
    intervened[:50, 0] = True
    with pytest.raises(DataError, match="interventional"):
        BCDNets(**QUICK).fit(Dataset.from_frame(chain, interventions=intervened))
    with pytest.raises(DataError, match="continuous"):
        BCDNets(**QUICK).fit((chain > 0).astype("category"))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("num_steps", 0),
        ("batch_size", 0),
        ("num_permutations", 1),
        ("learning_rate", np.inf),
        ("degree", -1),
        ("threshold", np.nan),
        ("threshold", -1),
    ],
)
def test_options_out_of_range_are_refused_by_name(option, value, chain):
    with pytest.raises(GFlowDAGError, match=f"{option} must be .*, got {value!r}"):
        BCDNets(**{option: value}).fit(chain)
