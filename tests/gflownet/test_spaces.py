"""Every state space keeps to the protocol, and a toy one trains with what edges and orders share."""

from __future__ import annotations

import inspect

import equinox as eqx
import hypergrid
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_flows import problem as edge_problem
from hypergrid import GridLearner, TablePolicy, two_peaks
from order_cases import problem as order_problem
from scipy.special import logsumexp

from gflowdag.data import Knowledge
from gflowdag.gflownet.policies.orders import shaped_policy
from gflowdag.gflownet.retrace import walk_back, weigh
from gflowdag.gflownet.rollout import follow, rollout
from gflowdag.gflownet.sampling import Defence, sample
from gflowdag.gflownet.spaces import StateSpace
from gflowdag.gflownet.spaces.edges import uniform_policy
from gflowdag.gflownet.spaces.orders import OrderSpace
from gflowdag.gflownet.trainer import Options, train
from gflowdag.orders.last_node import last_node_potential
from gflowdag.runtime.precision import double_precision


def edges_case():
    return edge_problem(4, Knowledge(required=[("X1", "X2")]))[1], uniform_policy


def orders_case():
    given = order_problem(seed=2)
    potential = last_node_potential(given.weights, given.table.scores, given.labels)
    return OrderSpace(given.weights, jnp.asarray(given.labels), potential), shaped_policy


def grid_case():
    space = two_peaks()
    return space, TablePolicy(jnp.zeros((6, 6, 3), jnp.float32))


CASES = pytest.mark.parametrize("case", [edges_case, orders_case, grid_case])


def the_same(first, second) -> bool:
    return all(
        np.allclose(a, b, atol=1e-9)  # float64 sums of a few terms
        for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    )


@CASES
@double_precision
def test_what_was_done_can_be_undone(case):
    space: StateSpace = case()[0]
    rng, step, undo = np.random.default_rng(0), eqx.filter_jit(space.step), eqx.filter_jit(space.undo)
    look = jax.jit(lambda state: (space.observe(state), space.log_reward(state), space.size(state)))
    for _ in range(5):
        state = space.start()
        for size in range(space.max_steps):
            assert int(space.size(state) - space.size(space.start())) == size
            action = rng.choice(np.flatnonzero(space.legal(state)))
            if action == space.stop:
                break
            after = step(state, action)
            assert the_same(look(undo(after, action)), look(state))
            state = after
        kept = space.built(state)
        if space.stop is not None or size == space.max_steps - 1:
            assert the_same(space.observe(space.state_of(kept)), space.observe(state))


@CASES
@double_precision
def test_a_policy_takes_legal_actions_alone(case):
    space, policy = case()
    state = space.start()
    for _ in range(space.max_steps):
        decision = policy(space.observe(state))
        assert np.exp(decision.log_forward).sum() == pytest.approx(1, abs=1e-5)  # float32
        np.testing.assert_array_equal(np.exp(decision.log_forward) > 0, space.legal(state))
        action = int(np.flatnonzero(space.legal(state))[0])
        if action == space.stop:
            break
        state = space.step(state, jnp.asarray(action))


@CASES
@double_precision
def test_retraced_samples_have_the_rewards_and_lengths_that_they_were_drawn_with(case):
    space, policy = case()
    drawn = sample(space, policy, jax.random.key(0), 200)
    again = weigh(space, policy, jax.random.key(1), drawn.built)
    np.testing.assert_allclose(again.log_reward, drawn.log_reward, atol=1e-9)
    np.testing.assert_array_equal(again.num_steps, drawn.num_steps)


@CASES
@double_precision
def test_a_way_back_is_a_trajectory_to_its_object(case):
    space, policy = case()
    drawn = sample(space, policy, jax.random.key(0), 50)
    walked = walk_back(space, policy, jax.random.key(1), jnp.asarray(drawn.built))
    lengths = drawn.num_steps + (space.stop is not None)
    np.testing.assert_array_equal(walked.active.sum(axis=0), lengths)
    np.testing.assert_allclose(walked.log_final, drawn.log_reward, atol=1e-9)
    forth = rollout(space, policy, follow(walked.action.T), 50)
    np.testing.assert_allclose(forth.log_final, drawn.log_reward, atol=1e-9)
    np.testing.assert_array_equal(forth.active, walked.active)


@double_precision
def test_the_toy_space_trains_to_its_exact_distribution():
    space = two_peaks()
    trained = train(
        GridLearner(space), jax.random.key(0), iterations=600, options=Options(learning_rate=0.05)
    )
    drawn = sample(space, trained.params, jax.random.key(1), 20_000, batch=1000)
    exact = np.exp(space.log_rewards - logsumexp(space.log_rewards))
    found = np.zeros_like(exact)
    np.add.at(found, tuple(np.asarray(drawn.built).T), 1 / 20_000)
    # four standard errors of 20,000 draws, and 0.001 for what is not learnt yet
    assert (np.abs(found - exact) < 4 * np.sqrt(exact / 20_000) + 0.001).all()
    evidence = logsumexp(np.asarray(drawn.log_weights)) - np.log(20_000) + float(space.log_rewards[0, 0])
    assert evidence == pytest.approx(float(logsumexp(space.log_rewards)), abs=0.01)


@double_precision
def test_a_defence_shows_what_a_policy_has_forgotten():
    space = two_peaks()
    forgetful = TablePolicy(jnp.zeros((6, 6, 3), jnp.float32).at[..., 0].set(-30.0))  # never goes along x
    even = TablePolicy(jnp.zeros((6, 6, 3), jnp.float32))
    drawn = sample(space, forgetful, jax.random.key(0), 20_000, batch=1000, defence=Defence(even, 4))
    evidence = logsumexp(np.asarray(drawn.log_weights)) - np.log(20_000) + float(space.log_rewards[0, 0])
    exact = float(logsumexp(space.log_rewards))
    alone = sample(space, forgetful, jax.random.key(0), 20_000, batch=1000)
    without = logsumexp(np.asarray(alone.log_weights)) - np.log(20_000) + float(space.log_rewards[0, 0])
    spread = np.exp(np.asarray(drawn.log_weights))
    assert abs(evidence - exact) < 4 * spread.std() / spread.mean() / np.sqrt(20_000)  # standard errors
    assert without < exact - 0.5


def test_a_toy_space_takes_fewer_than_120_lines():
    assert len(inspect.getsource(hypergrid).splitlines()) < 120
