"""Weights of canonical orders: against all DAGs, fifty digits, and each other."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from score_problems import continuous, discrete
from slow_sums import slow_log_sum

from gflowdag.data import Knowledge
from gflowdag.data.catalog import load_dataset
from gflowdag.errors import TooLargeError
from gflowdag.graph import all_dags, compress
from gflowdag.orders.candidates import candidate_table, dense_candidates
from gflowdag.orders.potentials import schur_potential, symmetric_potential
from gflowdag.orders.weights import order_weights, place, start
from gflowdag.runtime.precision import double_precision
from gflowdag.score import make_score

ORDERS = jnp.array(list(itertools.permutations(range(4))))
LABELS = [[0, 1, 2, 3], [2, 0, 3, 1]]


def order_log_weights(weights, order, labels):
    """Log-weight of each step of an order, int [d] -> float64 [d]; their sum is the weight of the order."""

    def step(state, node):
        return place(weights, state, node), state.log_weights[node]

    return jax.lax.scan(step, start(weights, labels), order)[1]


def total_weight(weights, labels):
    each = jax.jit(jax.vmap(lambda order: order_log_weights(weights, order, jnp.array(labels)).sum()))
    return float(logsumexp(each(ORDERS)))


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(
    ("data", "knowledge"),
    [
        (continuous(d=4), None),
        (discrete(d=4, interventions=True), Knowledge(required=[("X2", "X4")], forbidden=[("X1", "X3")])),
        (discrete(d=4), Knowledge(max_parents=1)),
    ],
)
@double_precision
def test_the_weights_of_all_orders_sum_to_the_evidence(data, knowledge, labels):
    score = make_score(data, knowledge=knowledge)
    weights = order_weights(dense_candidates(score.dense_table()))
    expected = logsumexp(score.log_score(all_dags(4)))
    assert total_weight(weights, labels) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("labels", LABELS)
@double_precision
def test_candidate_weights_sum_over_the_dags_of_the_restricted_family(labels):
    score = make_score(continuous(d=4), prior="edge")
    table = candidate_table(score, 2)
    graphs = all_dags(4)
    allowed = np.ones(len(graphs), bool)
    for node in range(4):
        outsider = ~np.isin(np.arange(4), table.candidates[node])
        has_outsider = graphs[:, outsider, node].any(axis=1)
        allowed &= ~has_outsider | (graphs[:, :, node].sum(axis=1) == 1)
    assert 25 < allowed.sum() < len(graphs)
    expected = logsumexp(score.log_score(graphs[allowed]))
    assert total_weight(order_weights(table), labels) == pytest.approx(expected, abs=1e-9)


@double_precision
def test_weights_keep_their_digits_on_a_peaked_posterior(data_folder):
    """Interventional Sachs, where differences of subset sums cancel to nothing."""
    score = make_score(load_dataset("sachs-interventional").dataset(kinds="discrete"))
    table = score.dense_table()
    weights = order_weights(dense_candidates(table))
    rng = np.random.default_rng(0)
    labels = jnp.arange(11)
    run = jax.jit(lambda order: order_log_weights(weights, order, labels))
    cancelled = 0
    for order in rng.permuted(np.tile(np.arange(11), (4, 1)), axis=1):
        log_weights = np.asarray(run(jnp.asarray(order)))
        for position, node in enumerate(order):
            sets, inside_barrier = allowed_sets(order, position)
            scores = table[node, compress(sets, int(node))]
            expected = slow_log_sum(scores[~inside_barrier])
            assert log_weights[position] == pytest.approx(expected, abs=1e-9)
            cancelled += expected < scores.max() - 37  # e^−37 is below the last digit of 1
    assert cancelled > 0


def allowed_sets(order, position):
    """Masks of all parent sets before `position`, and which of them the canonical order rules out."""
    earlier = order[:position]
    sets = np.zeros(1, np.int64)
    for parent in earlier:
        sets = np.concatenate([sets, sets | (1 << int(parent))])
    larger = np.flatnonzero(earlier > order[position])
    if len(larger) == 0:
        return sets, np.zeros(len(sets), bool)
    old = sum(1 << int(parent) for parent in earlier[: larger[-1]])
    return sets, (sets & ~old) == 0


def test_order_weights_beyond_the_memory_limit_are_refused():
    table = dense_candidates(make_score(continuous(d=8)).dense_table())
    with pytest.raises(TooLargeError, match="memory_limit"):
        order_weights(table, memory_limit=1000)


@double_precision
def test_the_schur_potential_is_the_score_of_the_complete_dag():
    score = make_score(continuous(), prior="edge")
    potential = schur_potential(score.likelihood.normal_wishart, score.prior_log_weights)
    graph = np.zeros((5, 5), bool)
    state, total, order = potential.start(), 0.0, (3, 0, 4, 2, 1)
    for position, node in enumerate(order):
        total += float(potential.gains(state)[node])
        state = potential.place(state, node)
        graph[list(order[:position]), node] = True
        # The nodes that are not placed yet have no parents here; they are no part of the set.
        others = [score.local(other, np.zeros((1, 5), bool))[0] for other in order[position + 1 :]]
        assert total == pytest.approx(score.log_score(graph[None])[0] - sum(others), abs=1e-9)


@double_precision
def test_the_symmetric_potential_counts_half_of_what_each_member_gains():
    table = candidate_table(make_score(discrete(d=6)), 3)
    potential = symmetric_potential(table, order_weights(table).position)

    def value(members):
        total = 0.0
        for node in members:
            bits = sum(1 << k for k, parent in enumerate(table.candidates[node]) if parent in members)
            inside = [index for index in range(8) if index & ~bits == 0]
            total += 0.5 * (table.scores[node, 0] + logsumexp(table.scores[node, inside]))
        return total

    state = potential.start()
    members = []
    for node in (2, 5, 0, 3):
        gains = potential.gains(state)
        for other in set(range(6)) - set(members):
            assert float(gains[other]) == pytest.approx(value([*members, other]) - value(members), abs=1e-9)
        state = potential.place(state, node)
        members.append(node)
