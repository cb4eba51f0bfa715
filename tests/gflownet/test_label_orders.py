"""Canonical orders without tables: the space, and the policy that asks which node is ready."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from gflowdag.gflownet.learners.label_cloning import LabelCloning
from gflowdag.gflownet.policies.label_orders import ReadyPolicy
from gflowdag.gflownet.retrace import weigh
from gflowdag.gflownet.sampling import sample
from gflowdag.gflownet.spaces import label_orders
from gflowdag.gflownet.spaces.label_orders import LabelOrderSpace, label_order_space
from gflowdag.gflownet.trainer import train
from gflowdag.graph import all_dags
from gflowdag.graph.bits import compress, parent_masks
from gflowdag.orders.labels import canonical_orders, order_along_edges
from gflowdag.runtime.precision import double_precision

ORDERS = np.array(list(itertools.permutations(range(4))), np.int32)
DAGS = all_dags(4)
NOTHING = np.zeros((4, 4), bool)


def policy_of(space: LabelOrderSpace, *, is_random: bool = False) -> ReadyPolicy:
    policy = ReadyPolicy(space.num_variables, 16, 2, jax.random.key(0))
    if not is_random:
        return policy
    leaves, structure = jax.tree.flatten(policy)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    leaves = [jax.random.normal(key, leaf.shape, leaf.dtype) for key, leaf in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(structure, leaves)


def log_probabilities(space: LabelOrderSpace, policy: ReadyPolicy) -> np.ndarray:
    """Of all orders, [24]."""
    return -np.asarray(weigh(space, policy, jax.random.key(0), ORDERS).log_ratio)


@double_precision
def test_any_policy_gives_all_orders_probability_one_together():
    edges = np.random.default_rng(0).random((4, 4))
    space = label_order_space(edges, NOTHING, NOTHING)
    for is_random in (False, True):
        log_p = log_probabilities(space, policy_of(space, is_random=is_random))
        assert logsumexp(log_p) == pytest.approx(0, abs=1e-5)  # float32 network


@double_precision
def test_independent_edges_along_an_order_need_no_network(monkeypatch):
    monkeypatch.setattr(label_orders, "_LEAST", 1e-7)
    monkeypatch.setattr(label_orders, "_SURE", 1e-6)
    rng = np.random.default_rng(3)
    along = [2, 0, 3, 1]  # every edge points from an earlier to a later one of these
    edges = np.zeros((4, 4))
    edges[np.ix_(along, along)] = np.triu(rng.uniform(0.2, 0.9, (4, 4)), 1)
    each = np.where(DAGS, edges, 1 - edges).prod(axis=(1, 2))
    assert each.sum() == pytest.approx(1)
    own = canonical_orders(DAGS, np.arange(4))
    expected = np.array([each[(own == order).all(axis=1)].sum() for order in ORDERS])
    space = label_order_space(edges, NOTHING, NOTHING)
    np.testing.assert_allclose(np.exp(log_probabilities(space, policy_of(space))), expected, atol=1e-4)
    drawn = sample(space, policy_of(space), jax.random.key(2), 20_000)
    found = np.array([(np.asarray(drawn.built) == order).all(axis=1).mean() for order in ORDERS])
    np.testing.assert_allclose(found, expected, atol=5 * 0.5 / np.sqrt(20_000))


@double_precision
def test_orders_of_all_allowed_graphs_are_possible_and_no_others():
    required, forbidden = NOTHING.copy(), NOTHING.copy()
    required[2, 0] = forbidden[1, 3] = forbidden[0, 1] = forbidden[2, 1] = True
    allowed = DAGS[~(DAGS & forbidden).any(axis=(1, 2)) & (required <= DAGS).all(axis=(1, 2))]
    own = np.unique(canonical_orders(allowed, np.arange(4)), axis=0)
    space = label_order_space(np.full((4, 4), 0.3), required, forbidden)
    log_p = log_probabilities(space, policy_of(space, is_random=True))
    likely = log_p > -1e6
    possible = {tuple(order) for order in own.tolist()}
    assert possible <= {tuple(order) for order in ORDERS[likely].tolist()}
    assert likely.sum() < 24
    assert np.exp(log_p[[tuple(order) in possible for order in ORDERS.tolist()]]).sum() > 0.5


@double_precision
def test_a_policy_learns_what_edges_have_to_do_with_each_other():
    local = 2 * np.random.default_rng(0).normal(size=(4, 8))
    scores = local[np.arange(4), compress(parent_masks(DAGS), np.arange(4))].sum(axis=1)
    p = np.exp(scores - logsumexp(scores))
    own = canonical_orders(DAGS, np.arange(4))
    expected = np.array([p[(own == order).all(axis=1)].sum() for order in ORDERS])
    space = label_order_space(np.tensordot(p, DAGS, 1), NOTHING, NOTHING)
    orders = own[np.random.default_rng(1).choice(len(DAGS), 20_000, p=p)]
    learner = LabelCloning(space, jnp.asarray(orders), batch=128, width=32, depth=2)
    policy = train(learner, jax.random.key(0), iterations=1000).params

    def divergence(policy: ReadyPolicy) -> float:
        seen = expected > 0
        return float(
            (expected * (np.log(np.where(seen, expected, 1)) - log_probabilities(space, policy)))[seen].sum()
        )

    assert divergence(policy) < 0.02  # 20,000 examples allow no less than 0.0006 (23 / 2n)
    assert divergence(policy_of(space)) > 0.1


def test_labels_follow_the_edges():
    order = np.random.default_rng(5).permutation(8)
    edges = np.zeros((8, 8))
    edges[np.ix_(order, order)] = np.triu(np.random.default_rng(6).random((8, 8)), 1)
    np.testing.assert_array_equal(order_along_edges(edges, np.random.default_rng(0)), order)
