"""DiBS: gradients against enumeration, and the method on problems with a known answer."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from gflowdag.baselines import dibs
from gflowdag.baselines.graph_score import FORBIDDEN_PARENT, TableScore, normal_wishart_score, table_score
from gflowdag.baselines.svgd import stein_direction
from gflowdag.data import Dataset, Knowledge, simulate
from gflowdag.errors import GFlowDAGError, TrainingError
from gflowdag.estimators.dibs import DiBS, dibs_posterior
from gflowdag.graph.closure import is_acyclic
from gflowdag.graph.enumeration import all_dags
from gflowdag.score import make_score
from gflowdag.score.on_demand import OnDemandGraphScore

# Slower annealing than the default: fewer particles freeze before they have found an edge.
QUICK = {"num_particles": 40, "num_steps": 600, "sharpness": 0.2, "random_state": 0}


@pytest.fixture(scope="module")
def chain():
    """400 rows of a → b → c, all weights and variances one."""
    a, b, c = np.random.default_rng(0).normal(size=(3, 400))
    return Dataset.from_frame(pd.DataFrame({"a": a, "b": a + b, "c": a + b + c}))


@pytest.fixture(scope="module")
def chain_posterior(chain):
    return DiBS(**QUICK).fit(chain).posterior_


def directed_graphs(d: int) -> np.ndarray:
    """All directed graphs without self-loops, cyclic ones included."""
    off = ~np.eye(d, dtype=bool)
    graphs = np.zeros((2 ** off.sum(), d, d), bool)
    graphs[:, off] = list(itertools.product([False, True], repeat=int(off.sum())))
    return graphs


@pytest.mark.parametrize("max_parents", [None, 1])
def test_all_graph_scores_agree_with_the_score_also_on_cyclic_graphs(chain, max_parents):
    knowledge = None if max_parents is None else Knowledge(max_parents=max_parents)
    score = make_score(chain, prior="fair", knowledge=knowledge)
    graphs = directed_graphs(3)
    expected = score.log_score(graphs)
    allowed = np.isfinite(expected)
    with jax.enable_x64(True):
        for graph_score in (
            table_score(score.dense_table()),
            normal_wishart_score(score, score.likelihood.normal_wishart),
            OnDemandGraphScore(score, FORBIDDEN_PARENT),
        ):
            got = np.asarray(jax.jit(lambda score, graphs: score(graphs))(graph_score, graphs))
            # The same sums of about 1000 nats in another order.
            np.testing.assert_allclose(got[allowed], expected[allowed], rtol=1e-11)
            assert np.isfinite(got).all()
            assert allowed.all() or got[~allowed].max() < expected[allowed].min()


def test_score_gradient_is_that_of_the_log_expected_score():
    rng = np.random.default_rng(0)
    graphs = directed_graphs(3)
    with jax.enable_x64(True):
        score = TableScore(jnp.asarray(rng.normal(size=(3, 4))))
        logits = jnp.asarray(rng.normal(size=(3, 3)), jnp.float32)
        diagonal = jnp.eye(3, dtype=bool)
        target = dibs.Target(score, jnp.zeros((3, 3), bool), diagonal)

        def log_expected_score(logits):
            present, absent = jax.nn.log_sigmoid(logits), jax.nn.log_sigmoid(-logits)
            log_probability = jnp.where(diagonal, 0, jnp.where(graphs, present, absent)).sum(axis=(1, 2))
            return jax.nn.logsumexp(log_probability + score(graphs))

        exact = np.asarray(jax.grad(log_expected_score)(logits))
        estimate = np.asarray(dibs.score_gradient(jax.random.key(0), logits, target, 200_000))
    off = ~np.eye(3, dtype=bool)
    # Standard error of a weighted frequency from 200,000 graphs is about 0.002.
    np.testing.assert_allclose(estimate[off], exact[off], atol=0.01)


def test_cycle_gradient_is_that_of_the_relaxed_penalty():
    key, d, num_graphs = jax.random.key(1), 4, 16
    with jax.enable_x64(True):
        logits = jax.random.normal(jax.random.key(2), (d, d), jnp.float32)
        off = ~jnp.eye(d, dtype=bool)
        target = dibs.Target(TableScore(jnp.zeros((d, 2 ** (d - 1)))), jnp.zeros((d, d), bool), ~off)

        def penalty(logits):
            noise = jax.random.logistic(key, (num_graphs, d, d), jnp.float32)
            graphs = jnp.where(off, jax.nn.sigmoid(logits + noise), 0)
            power = jnp.linalg.matrix_power(jnp.eye(d, dtype=jnp.float32) + graphs / d, d)
            return jnp.mean(jnp.trace(power, axis1=1, axis2=2)) - d

        exact = np.asarray(jax.grad(penalty)(logits))
        closed_form = np.asarray(dibs.cycle_gradient(key, logits, target, num_graphs))
    off = np.asarray(off)
    np.testing.assert_allclose(closed_form[off], exact[off], rtol=1e-4)  # float32


def test_stein_particles_reach_a_normal_distribution():
    particles = jax.random.normal(jax.random.key(0), (50, 1), jnp.float32) + 5
    move = jax.jit(lambda x: x + 0.3 * stein_direction(x, -(x - 1) / 4, 2.0))
    for _ in range(600):
        particles = move(particles)
    # N(1, 2²); a fixed kernel width and 50 particles underestimate the spread a little.
    assert float(particles.mean()) == pytest.approx(1.0, abs=0.1)
    assert float(particles.std()) == pytest.approx(2.0, abs=0.3)


def test_edges_of_a_clear_chain_are_found_and_only_dags_are_returned(chain_posterior):
    posterior = chain_posterior
    assert is_acyclic(posterior.samples).all()
    assert posterior.num_samples == 1000
    p = posterior.edge_probabilities().to_numpy()
    adjacent = p + p.T
    # Exactly 1, 1 and 0.1; DiBS leaves some particles with an edge too many.
    assert min(adjacent[0, 1], adjacent[1, 2]) > 0.95
    assert adjacent[0, 2] < 0.5


def test_same_seed_same_samples(chain, chain_posterior):
    again = DiBS(**QUICK).fit(chain).posterior_
    np.testing.assert_array_equal(again.samples, chain_posterior.samples)


def test_cyclic_particles_are_counted_and_nothing_is_vouched_for(chain_posterior):
    diagnostics = chain_posterior.diagnostics()
    assert diagnostics["verdict"] == "unverified"
    assert diagnostics["num_particles"] == QUICK["num_particles"]
    assert diagnostics["cyclic_fraction"] == diagnostics["num_cyclic"] / QUICK["num_particles"]
    assert str(diagnostics["num_cyclic"]) in diagnostics["explanation"]


def test_score_weighting_is_the_posterior_restricted_to_the_graphs_found(chain):
    posterior = DiBS(weighting="score", num_samples=4000, **QUICK).fit(chain).posterior_
    graphs, index = np.unique(posterior.samples.reshape(4000, -1), axis=0, return_index=True)
    mass = np.exp(posterior.log_scores[index] - posterior.log_scores.max())
    marginals = posterior.edge_probabilities().to_numpy().ravel()
    # Graphs with less than 1/4000 of the mass need not be among the draws.
    np.testing.assert_allclose(marginals, mass @ graphs / mass.sum(), atol=0.01)
    dags = all_dags(3)
    score = make_score(chain).log_score(dags)
    exact = np.tensordot(np.exp(score - np.logaddexp.reduce(score)), dags, axes=1)
    # At three variables 40 particles meet every probable graph.
    np.testing.assert_allclose(marginals, exact.ravel(), atol=0.1)


def test_knowledge_holds_in_every_sample(chain):
    a, _, c = chain.names
    knowledge = Knowledge(required=[(c, a)], forbidden=[chain.names[:2]], max_parents=1)
    samples = DiBS(knowledge=knowledge, **QUICK).fit(chain).posterior_.samples
    assert samples[:, 2, 0].all()
    assert not samples[:, 0, 1].any()
    assert samples.sum(axis=1).max() <= 1


def test_interventions_orient_an_edge():
    graph = np.zeros((3, 3), bool)
    graph[0, 1] = True
    simulation = simulate.linear_gaussian(
        graph=graph, num_rows=100, noise_variance=1.0, weight_scale=2.0, interventions=100, random_state=1
    )
    data = Dataset.from_frame(simulation.frame, interventions=simulation.intervened)
    score = make_score(data)
    dags = all_dags(3)
    weight = np.exp(score.log_score(dags) - score.log_score(dags).max())
    exact = np.tensordot(weight / weight.sum(), dags, axes=1)
    p = DiBS(weighting="score", **QUICK).fit(data).posterior_.edge_probabilities().to_numpy()
    assert exact[0, 1] > 0.99
    assert p[0, 1] > 0.9
    assert p[1, 0] < 0.1


def test_particles_that_left_the_numbers_are_no_posterior(chain):
    with pytest.raises(TrainingError, match="diverged: lower learning_rate, or standardize"):
        dibs_posterior(
            make_score(chain), np.full((2, 2, 3, 3), np.nan), "equal", 10, np.random.default_rng(0)
        )


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("num_particles", 0),
        ("num_steps", 0),
        ("num_graphs", 2.5),
        ("learning_rate", 0),
        ("sharpness", np.nan),
        ("cycle_cost", -1),
        ("bandwidth", 0),
        ("weighting", "all"),
    ],
)
def test_options_out_of_range_are_refused_by_name(option, value, chain):
    with pytest.raises(GFlowDAGError, match=f"{option} must be .*, got {value!r}"):
        DiBS(**{option: value}).fit(chain)
