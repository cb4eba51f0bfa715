import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_flows import TabularPolicy, exact_policy, posterior, problem

from gflowdag.data import Knowledge
from gflowdag.gflownet.learners.paper import Transition, residual_of
from gflowdag.gflownet.objectives import OBJECTIVES, balance_loss, evidence_estimates, final_estimates
from gflowdag.gflownet.policies.pairs import PairPolicy
from gflowdag.gflownet.rollout import rollout, sharpened, steps_of
from gflowdag.gflownet.sampling import sample
from gflowdag.gflownet.spaces.edges import Observation
from gflowdag.graph.incremental import from_adjacency
from gflowdag_lab.measurements.policy_distribution import policy_distribution

REQUIRED = Knowledge(required=[("X2", "X3")])


@eqx.filter_jit
def losses(space, policy, key):
    trajectories = rollout(space, policy, sharpened(key, jnp.linspace(0.3, 1.0, 64)), 64)
    active, stopped = trajectories.active, trajectories.last
    steps = steps_of(policy, trajectories, block=2)
    log_flow = trajectories.log_reward.astype(jnp.float32) + steps.log_flow
    estimates = evidence_estimates(log_flow, jnp.where(stopped, 0.0, steps.log_forward), steps.log_backward)
    values = jnp.stack([balance_loss(name, estimates, active, stopped) for name in OBJECTIVES])
    return values, final_estimates(estimates, stopped)


@pytest.mark.parametrize("knowledge", [None, REQUIRED])
def test_exact_flows_and_only_they_balance(knowledge):
    with jax.enable_x64(True):
        score, space = problem(3, knowledge)
        policy = exact_policy(score)
        balanced, finals = losses(space, policy, jax.random.key(0))
        wrong = TabularPolicy(jnp.where(policy.log_stop < 0, policy.log_stop - 0.5, 0.0), policy.log_edges)
        unbalanced, _ = losses(space, wrong, jax.random.key(0))
        graphs, probabilities, log_evidence = posterior(score)
        np.testing.assert_allclose(balanced, 0.0, atol=1e-8)  # squares of float32 sums of tens of nats
        assert (np.asarray(unbalanced) > 1e-3).all()
        start = score.log_score(np.asarray(space.required)[None])[0]
        np.testing.assert_allclose(np.asarray(finals) + start, log_evidence, atol=1e-3)  # float32
        np.testing.assert_allclose(policy_distribution(space, policy, graphs), probabilities, atol=1e-6)


@pytest.mark.parametrize("knowledge", [None, REQUIRED])
def test_residual_of_the_paper_is_zero_for_every_transition_of_the_exact_flows(knowledge):
    with jax.enable_x64(True):
        score, space = problem(3, knowledge)
        policy = exact_policy(score)
        graphs, probabilities, _ = posterior(score)
        transitions = []
        for graph in graphs[probabilities > 0]:
            state = from_adjacency(graph)
            legal = np.flatnonzero(space.legal_edges(state))
            deltas = np.asarray(space.deltas.all(space.deltas.init(graph))).reshape(-1)
            transitions += [Transition(state, jnp.asarray(e), jnp.float32(deltas[e])) for e in legal]
        batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *transitions)
        residual = jax.jit(jax.vmap(lambda t: residual_of(space, policy, policy, t)))(batch)
        shifted = TabularPolicy(policy.log_stop - 0.1 * (policy.log_stop < 0), policy.log_edges + 0.1)
        wrong = jax.jit(jax.vmap(lambda t: residual_of(space, shifted, policy, t)))(batch)
    assert len(transitions) >= 10
    np.testing.assert_allclose(residual, 0.0, atol=1e-4)  # float32
    assert (np.abs(np.asarray(wrong)) > 1e-2).any()


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_gradients_stay_finite_under_huge_deltas(size):
    d = 4
    rng = np.random.default_rng(0)
    legal = ~np.eye(d, dtype=bool)
    legal[1, 0] = False
    observation = Observation(
        jnp.asarray(~legal & ~np.eye(d, dtype=bool)),
        jnp.eye(d, dtype=bool),
        jnp.asarray(legal),
        jnp.asarray(~legal & ~np.eye(d, dtype=bool)),
        jnp.asarray(np.where(legal, size * rng.random((d, d)), 0.0), jnp.float32),
        jnp.ones((), jnp.float32),
    )
    policy = eqx.filter_jit(PairPolicy)(d, width=16, key=jax.random.key(0))

    def total(policy):
        decision = policy(observation)
        return balance_loss(
            "trajectory",
            jnp.stack([decision.log_forward[-1] - size, decision.log_forward[1] + size])[None],
            jnp.ones((1, 2), bool),
            jnp.ones((1, 2), bool),
        )

    value, gradient = eqx.filter_jit(eqx.filter_value_and_grad(total))(policy)
    assert np.isfinite(value)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_samples_follow_the_policy_and_weights_give_the_evidence():
    with jax.enable_x64(True):
        score, space = problem(
            3, num_rows=8
        )  # few rows, so that the weights of an untrained policy are bounded
        policy = PairPolicy(3, width=8, key=jax.random.key(1))
        graphs, _, log_evidence = posterior(score)
        expected = policy_distribution(space, policy, graphs)
        samples = sample(space, policy, jax.random.key(2), 20_000)
        found = (np.asarray(samples.built)[:, None] == graphs[None]).all(axis=(2, 3)).mean(axis=0)
        log_weights = np.asarray(samples.log_weights) + score.log_score(np.zeros((1, 3, 3), bool))[0]
    # five standard errors of 20,000 draws of a frequency
    assert (np.abs(found - expected) < 5 * np.sqrt(expected / 20_000) + 1e-4).all()
    estimate = np.logaddexp.reduce(log_weights) - np.log(len(log_weights))
    error = np.exp(log_weights - log_evidence).std() / np.sqrt(len(log_weights))
    assert abs(estimate - log_evidence) < 5 * error


def test_graphs_do_not_depend_on_how_many_are_drawn_side_by_side():
    with jax.enable_x64(True):
        _, space = problem(4)
        policy = PairPolicy(4, width=8, key=jax.random.key(1))
        one, few, many = (sample(space, policy, jax.random.key(2), 70, batch=batch) for batch in (1, 8, 70))
    for other in (few, many):
        np.testing.assert_array_equal(one.built, other.built)
        np.testing.assert_allclose(one.log_ratio, other.log_ratio, rtol=1e-5)  # float32 of the network
    assert len(np.unique(np.asarray(one.num_steps))) > 2  # they end at different times
