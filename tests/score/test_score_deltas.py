"""Deltas of single edges against fresh scores of both graphs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from score_problems import continuous, discrete, plain_score, random_dags

from gflowdag.data import Dataset
from gflowdag.runtime.precision import double_precision
from gflowdag.score.deltas import SchurDeltas, TableDeltas, schur_deltas
from gflowdag.score.on_demand import NeighbourScores, OnDemandDeltas

D = 5


def by_table(interventions):
    score = plain_score(discrete(interventions=interventions), prior="edge")
    return score, TableDeltas(score.unconstrained_table())


def by_schur(interventions):
    score = plain_score(continuous(interventions=interventions), prior="fair")
    return score, schur_deltas(score.likelihood.normal_wishart, score.prior_log_weights)


def on_demand(interventions):
    score = plain_score(discrete(interventions=interventions), prior="fair")
    return score, OnDemandDeltas(NeighbourScores(score))


def toggled(graph):
    """The graph with each entry off the diagonal flipped, [d, d, d, d]."""
    flips = np.zeros((D, D, D, D), bool)
    i, j = np.indices((D, D))
    flips[i, j, i, j] = i != j
    return flips ^ graph


@pytest.mark.parametrize("interventions", [False, True])
@pytest.mark.parametrize("make", [by_table, by_schur, on_demand])
@double_precision
def test_all_additions_and_removals_agree_with_fresh_scores(make, interventions):
    score, deltas = make(interventions)
    graphs = random_dags(D, 12)
    additions, removals = jax.jit(
        jax.vmap(lambda graph: (deltas.all(deltas.init(graph)), deltas.all_removals(deltas.init(graph))))
    )(jnp.asarray(graphs))
    assert np.isfinite(additions).all()
    assert np.isfinite(removals).all()
    off_diagonal = ~np.eye(D, dtype=bool)
    for graph, added, removed in zip(graphs, np.asarray(additions), np.asarray(removals), strict=True):
        # Scores are modular, so that a cycle does not matter here.
        change = score.log_score(toggled(graph).reshape(-1, D, D)).reshape(D, D) - score.log_score(
            graph[None]
        )
        np.testing.assert_allclose(added[off_diagonal & ~graph], change[off_diagonal & ~graph], atol=1e-9)
        np.testing.assert_allclose(removed[graph], change[graph], atol=1e-9)


@pytest.mark.parametrize("make", [by_table, by_schur, on_demand])
@double_precision
def test_a_long_walk_of_additions_and_removals_ends_where_a_fresh_start_does(make):
    _, deltas = make(True)
    rng = np.random.default_rng(0)
    pairs = rng.integers(D, size=(1000, 2))
    pairs = jnp.asarray(pairs[pairs[:, 0] < pairs[:, 1]])

    @jax.jit
    def walk(graph):
        def step(carry, pair):
            graph, state = carry
            source, target = pair
            state = jax.lax.cond(
                graph[source, target],
                lambda: deltas.remove(state, source, target),
                lambda: deltas.add(state, source, target),
            )
            return (graph.at[source, target].set(~graph[source, target]), state), None

        return jax.lax.scan(step, (graph, deltas.init(graph)), pairs)[0]

    graph, state = walk(jnp.zeros((D, D), bool))
    fresh = deltas.init(graph)
    np.testing.assert_allclose(deltas.all(state), deltas.all(fresh), atol=1e-8)  # 400 sweeps of rounding
    removals, expected = deltas.all_removals(state), deltas.all_removals(fresh)
    np.testing.assert_allclose(removals[graph], expected[graph], atol=1e-8)


@double_precision
def test_deltas_of_several_data_sets_can_be_stacked():
    scores = [plain_score(continuous(seed=seed)) for seed in range(3)]
    parts = [schur_deltas(score.likelihood.normal_wishart, score.prior_log_weights) for score in scores]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *parts)
    graph = jnp.asarray(random_dags(D, 1)[0])
    together = jax.vmap(lambda deltas: deltas.all(deltas.init(graph)))(stacked)
    for one, row in zip(parts, together, strict=True):
        np.testing.assert_allclose(row, one.all(one.init(graph)), atol=1e-9)


@double_precision
def test_schur_deltas_stay_right_for_nearly_collinear_columns():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(200, D)) * 1e3
    values[:, 4] = values[:, :4].sum(axis=1) + 1e-4 * rng.normal(size=200)
    score = plain_score(Dataset.from_array(values, standardize=False))
    deltas = schur_deltas(score.likelihood.normal_wishart, score.prior_log_weights)
    graph = np.zeros((D, D), bool)
    graph[:3, 4] = True
    full = graph.copy()
    full[3, 4] = True
    state = deltas.init(jnp.asarray(graph))
    expected = (score.log_score(full[None]) - score.log_score(graph[None]))[0]
    # The residual is 1e-14 of the variance, next to what doubles resolve: the gain keeps two digits.
    assert float(deltas.all(state)[3, 4]) == pytest.approx(expected, rel=1e-2)
    assert np.isfinite(deltas.all(deltas.add(state, 3, 4))).all()
    assert np.isfinite(deltas.all_removals(deltas.add(state, 3, 4))).all()


def test_a_score_picks_tables_for_few_variables_and_for_many_what_its_form_allows():
    assert isinstance(plain_score(continuous()).deltas(), TableDeltas)
    assert isinstance(plain_score(continuous(d=21, n=100)).deltas(), SchurDeltas)
    assert isinstance(plain_score(discrete(d=21, n=200)).deltas(), OnDemandDeltas)
