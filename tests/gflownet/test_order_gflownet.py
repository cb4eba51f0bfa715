"""The order GFlowNet: its loss, its weights, and what it learns, against all DAGs."""

from __future__ import annotations

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from order_cases import ORDERS, log_scores, order_posterior, problem
from scipy.special import logsumexp

from gflowdag.data import Dataset, Knowledge
from gflowdag.estimators.held_out import unseen_share
from gflowdag.estimators.order_gflownet import OrderGFlowNet
from gflowdag.gflownet.learners.orders import OrderLearner
from gflowdag.gflownet.objectives import flow_levels, subtrajectory_balance
from gflowdag.gflownet.policies.orders import OrderPolicy, shaped_policy
from gflowdag.gflownet.retrace import weigh
from gflowdag.gflownet.sampling import Defence, sample
from gflowdag.gflownet.spaces.orders import OrderSpace
from gflowdag.gflownet.trainer import train
from gflowdag.graph import all_dags
from gflowdag.orders.last_node import last_node_potential, tighter_labels
from gflowdag.orders.windows import node_log_weights
from gflowdag.posterior.importance import ImportanceSummary, importance_summary
from gflowdag.runtime.precision import double_precision
from gflowdag.score import make_score

QUICK = {"iterations": 150, "batch_size": 64, "width": 32, "depth": 2, "random_state": 0}


def space_of(given) -> OrderSpace:
    potential = last_node_potential(given.weights, given.table.scores, given.labels)
    return OrderSpace(given.weights, jnp.asarray(given.labels), potential)


def frequencies(orders: np.ndarray, importance: np.ndarray) -> np.ndarray:
    """Total importance of each of the 24 orders."""
    return np.array([importance[(orders == order).all(axis=1)].sum() for order in ORDERS])


@double_precision
def test_the_loss_is_zero_where_flows_and_policy_are_exact():
    given = problem()
    labels = jnp.asarray(given.labels)
    total = jax.jit(jax.vmap(lambda order: node_log_weights(given.weights, order, labels)))(ORDERS)
    step_weights = np.take_along_axis(np.asarray(total), ORDERS, axis=1)  # [24, d], by time
    order_weights = step_weights.sum(axis=1)
    flow, policy = np.zeros((5, 24)), np.zeros((4, 24))
    for row, order in enumerate(ORDERS):
        for time in range(5):
            mine = (ORDERS[:, :time] == order[:time]).all(axis=1)
            flow[time, row] = logsumexp(order_weights[mine]) - step_weights[row, :time].sum()
        policy[:, row] = flow[1:, row] + step_weights[row] - flow[:-1, row]
    everywhere = np.ones((5, 24), bool)
    levels = flow_levels(jnp.asarray(flow[:4]), jnp.asarray(policy), jnp.asarray(step_weights.T))
    assert float(subtrajectory_balance(levels, everywhere, 0.95)) < 1e-20
    off_balance = flow_levels(jnp.asarray(flow[:4] + 0.1), jnp.asarray(policy), jnp.asarray(step_weights.T))
    assert float(subtrajectory_balance(off_balance, everywhere, 0.95)) > 1e-4


@double_precision
def test_the_potential_counts_completions_under_its_weaker_condition():
    given = problem(seed=3)
    found = last_node_potential(given.weights, given.table.scores, given.labels).first

    def completions(order):  # every node after a larger label has that very node as a parent
        total = 0.0
        for time, node in enumerate(order):
            sets = [s for r in range(time + 1) for s in itertools.combinations(order[:time], r)]
            if time and given.labels[node] < given.labels[order[time - 1]]:
                sets = [s for s in sets if order[time - 1] in s]
            index = [sum(1 << (p - (p > node)) for p in s) for s in sets]
            total += logsumexp(given.table.scores[node, index])
        return total

    assert float(found) == pytest.approx(logsumexp([completions(order) for order in ORDERS]), abs=1e-9)
    evidence = logsumexp(log_scores(given))
    assert float(found) > evidence
    labels = tighter_labels(given.weights, given.table.scores, given.labels, np.random.default_rng(0))
    tighter = last_node_potential(given.weights, given.table.scores, labels).first
    assert evidence < float(tighter) <= float(found)


@pytest.mark.parametrize("forbidden", [0.0, 0.5])
@double_precision
def test_weighted_estimates_are_unbiased_for_a_network_that_has_learnt_nothing(forbidden):
    given = problem(forbidden=forbidden, seed=4)
    space = space_of(given)
    policy = OrderPolicy(4, 32, 2, jax.random.key(0))
    noise = 0.5 * jax.random.normal(jax.random.key(1), policy.head.weight.shape, jnp.float32)
    policy = eqx.tree_at(lambda p: p.head.weight, policy, noise)  # far from the shaped start
    drawn = sample(space, policy, jax.random.key(2), 20_000, batch=1000)
    orders, log_weights = np.asarray(drawn.built), np.asarray(drawn.log_weights)
    summary = importance_summary(log_weights)
    assert abs(summary.log_evidence - logsumexp(log_scores(given))) < 4 * summary.log_evidence_error
    importance = np.exp(log_weights - logsumexp(log_weights))
    # Standard errors at this number of effective draws are below 0.006; four of them.
    np.testing.assert_allclose(frequencies(orders, importance), order_posterior(given), atol=0.025)


@double_precision
def test_a_forgotten_mode_shows_in_the_weights():
    given = problem(seed=4)
    space = space_of(given)
    policy = OrderPolicy(4, 32, 2, jax.random.key(0))
    stubborn = jnp.array([4e3, 3e3, 2e3, 1e3, 0.0], jnp.float32)  # always the order 0, 1, 2, 3
    policy = eqx.tree_at(lambda p: p.head.bias, policy, stubborn)

    def summary(defence: Defence | None) -> ImportanceSummary:
        drawn = sample(space, policy, jax.random.key(2), 20_000, batch=1000, defence=defence)
        return importance_summary(np.asarray(drawn.log_weights))

    evidence = logsumexp(log_scores(given))
    alone, mixed = summary(None), summary(Defence(shaped_policy, 8))
    # Alone the policy is sure of itself and wrong by more than its error says; the mixture is neither.
    assert alone.ess > 0.999
    assert evidence - alone.log_evidence > 0.5 + 10 * alone.log_evidence_error
    assert mixed.ess < 0.5
    assert abs(mixed.log_evidence - evidence) < 4 * mixed.log_evidence_error


@double_precision
def test_orders_of_another_sampler_reveal_a_forgotten_mode():
    given = problem(seed=4)
    space = space_of(given)
    untrained = OrderPolicy(4, 32, 2, jax.random.key(0))
    stubborn = jnp.array(
        [40.0, 30.0, 20.0, 10.0, 0.0], jnp.float32
    )  # hardly anything but the order 0, 1, 2, 3
    stubborn = eqx.tree_at(lambda p: p.head.bias, untrained, stubborn)
    rng = np.random.default_rng(0)
    held_out = jnp.asarray(ORDERS[rng.choice(24, 256, p=order_posterior(given))])

    def unseen(policy: OrderPolicy) -> float:
        drawn = sample(space, policy, jax.random.key(2), 2000, batch=1000)
        # The same orders have the same weights when they are retraced as when they are drawn.
        again = weigh(space, policy, jax.random.key(3), drawn.built)
        np.testing.assert_allclose(again.log_weights, drawn.log_weights, atol=1e-4)
        elsewhere = weigh(space, policy, jax.random.key(3), held_out)
        return unseen_share(np.asarray(drawn.log_weights), np.asarray(elsewhere.log_weights))

    assert unseen(untrained) == 0.0
    assert unseen(stubborn) > 0.2


@double_precision
def test_training_brings_the_raw_samples_to_the_posterior():
    given = problem(seed=6)
    learner = OrderLearner(space_of(given), batch=128, width=32, depth=2)
    trained = train(learner, jax.random.key(0), iterations=300)
    drawn = sample(learner.space, trained.params, jax.random.key(1), 20_000, batch=1000)
    orders = np.asarray(drawn.built)
    assert importance_summary(np.asarray(drawn.log_weights)).ess > 0.99
    raw = frequencies(orders, np.full(len(orders), 1 / len(orders)))
    np.testing.assert_allclose(
        raw, order_posterior(given), atol=0.015
    )  # four standard errors of 20,000 draws


CASES = {
    "plain": {},
    "interventions": {"interventions": True},
    "required and forbidden": {"knowledge": Knowledge(required=[("X3", "X1")], forbidden=[("X2", "X4")])},
    "tiers": {"knowledge": Knowledge(tiers=[["X4", "X2"], ["X1", "X3"]])},
    "one parent": {"knowledge": Knowledge(max_parents=1), "prior": "edge"},
    "interventions and tiers": {
        "interventions": True,
        "knowledge": Knowledge(tiers=[["X4", "X2"], ["X1", "X3"]]),
    },
}


@pytest.mark.parametrize("name", CASES)
def test_edge_marginals_and_evidence_match_the_sum_over_all_dags(name):
    case = dict(CASES[name])
    rng = np.random.default_rng(7)
    values = rng.normal(size=(60, 4)) @ (np.eye(4) + 0.5 * np.triu(rng.normal(size=(4, 4)), 1))
    mask = rng.random((60, 4)) < 0.15 if case.pop("interventions", False) else None
    knowledge = case.pop("knowledge", None)
    data = Dataset.from_array(values, interventions=mask, knowledge=knowledge)
    posterior = OrderGFlowNet(**QUICK, **case, num_samples=500).fit(data).posterior_
    score = make_score(data, **case)
    graphs = all_dags(4)
    scores = score.log_score(graphs)
    expected = np.tensordot(np.exp(scores - logsumexp(scores)), graphs, 1)
    assert abs(posterior.log_evidence - logsumexp(scores)) < max(5 * posterior.log_evidence_error, 1e-6)
    np.testing.assert_allclose(posterior.marginals, expected, atol=0.02)
    assert np.isfinite(score.log_score(posterior.samples)).all()
    assert posterior.diagnostics()["ess"] > 0.9


@pytest.fixture
def without_tables(monkeypatch):
    """Five variables are too many for a dense table."""
    monkeypatch.setattr("gflowdag.score.base.MAX_TABLE_VARIABLES", 4)


def five_columns(num_rows: int = 30) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(num_rows, 5)) @ (
        np.eye(5) + np.triu(np.full((5, 5), 0.6), 1)
    )


LEARNING = QUICK | {"iterations": 300, "batch_size": 64, "chain_steps": 400, "num_chains": 4}


@pytest.mark.usefixtures("without_tables")
@pytest.mark.parametrize(
    "knowledge",
    [None, Knowledge(required=[("X3", "X1")], forbidden=[("X2", "X4")]), Knowledge(max_parents=2)],
)
def test_without_a_table_it_learns_from_chains_and_answers_for_all_graphs(knowledge):
    data = Dataset.from_array(five_columns(), knowledge=knowledge)
    estimator = OrderGFlowNet(prior="uniform", **LEARNING).fit(data)
    posterior, graphs = estimator.posterior_, all_dags(5)
    scores = estimator.score_.log_score(graphs)
    whole = logsumexp(scores)
    assert posterior.diagnosis.ess > 0.5
    assert posterior.log_evidence_error < 0.1
    assert abs(posterior.log_evidence - whole) < max(5 * posterior.log_evidence_error, 0.01)
    expected = np.tensordot(np.exp(scores - whole), graphs, 1)
    np.testing.assert_allclose(posterior.marginals, expected, atol=0.03)
    np.testing.assert_allclose(posterior.edge_probabilities().to_numpy(), expected, atol=0.05)
    assert posterior.diagnosis.unseen_share is not None
    assert "share_outside" not in posterior.diagnosis.extra  # all parent sets are summed
    assert np.isfinite(estimator.score_.log_score(posterior.samples)).all()


@pytest.mark.usefixtures("without_tables")
def test_parent_sets_that_are_not_summed_are_told_from_the_graphs_of_the_chains(monkeypatch):
    monkeypatch.setattr("gflowdag.orders.families.MOST_SETS", 6)  # sixty at most, of one parent beside a core
    monkeypatch.setattr("gflowdag.orders.families._LARGER", 1)
    estimator = OrderGFlowNet(prior="uniform", **LEARNING).fit(five_columns())
    posterior, graphs = estimator.posterior_, all_dags(5)
    outside = posterior.diagnosis["share_outside"]
    assert outside > 0.05
    assert posterior.diagnosis.verdict != "trusted"
    assert f"{outside:.1%} have a parent set that is not summed" in posterior.diagnosis.explanation
    scores = estimator.score_.log_score(graphs)
    lost = logsumexp(scores) - posterior.log_evidence
    assert 1 - np.exp(-lost) == pytest.approx(outside, abs=0.06)


@pytest.mark.usefixtures("without_tables")
def test_fewer_orders_than_graphs_give_several_graphs_each(monkeypatch):
    monkeypatch.setattr("gflowdag.estimators.weighed_orders._MOST_WEIGHED", 64)
    options = LEARNING | {"iterations": 20}
    posterior = OrderGFlowNet(prior="uniform", num_samples=500, **options).fit(five_columns()).posterior_
    assert posterior.diagnosis["weighted_orders"] == 64
    assert posterior.num_samples == 500
    drawn, summed = posterior.edge_probabilities().to_numpy(), posterior.marginals
    np.testing.assert_allclose(drawn, summed, atol=0.1)


def test_a_hundred_thousand_rows_do_no_harm():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(100_000, 5))
    values[:, 1:] += values[:, :-1]
    posterior = OrderGFlowNet(**(QUICK | {"iterations": 30}), standardize=False).fit(values).posterior_
    assert np.isfinite(posterior.marginals).all()
    assert np.isfinite(posterior.log_weights).all()
    # A chain observed this often: its skeleton is certain.
    np.testing.assert_allclose(np.diagonal(posterior.marginals + posterior.marginals.T, 1), 1, atol=1e-3)


def test_equal_seeds_give_equal_answers():
    values = np.random.default_rng(0).normal(size=(40, 4))
    first, second = (OrderGFlowNet(**(QUICK | {"iterations": 5})).fit(values).posterior_ for _ in range(2))
    np.testing.assert_array_equal(first.samples, second.samples)
    np.testing.assert_array_equal(first.log_weights, second.log_weights)
