"""Chains over all DAGs: the posterior is left as it is, whatever the candidates; states can be saved."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare
from score_problems import continuous, discrete

import gflowdag as gd
from gflowdag.data import Dataset, Knowledge
from gflowdag.graph import all_dags
from gflowdag.graph.bits import bools_of, graph_keys, words_of
from gflowdag.graph.closure import is_acyclic, transitive_closure
from gflowdag.mcmc.bit_graphs import BitGraph
from gflowdag.mcmc.unrestricted import chains, joint
from gflowdag.mcmc.unrestricted.candidate_sets import (
    draw_candidates,
    empty_sets,
    make_pools,
)
from gflowdag.mcmc.unrestricted.chains import Chain, Settings, make_sums, make_workspace, sweep
from gflowdag.mcmc.unrestricted.moves import _allowed
from gflowdag.mcmc.unrestricted.run import run
from gflowdag.mcmc.unrestricted.start import scattered_chains
from gflowdag.mcmc.unrestricted.tables import CachedTables, local_tables
from gflowdag.mcmc.unrestricted.xoshiro import random_states
from gflowdag.score import make_score

KNOWLEDGE = Knowledge(required=[("X1", "X3")], forbidden=[("X2", "X1"), ("X4", "X2")], max_parents=2)


def pools_of(score, core_size, num_outsiders):
    """Interest and doubt that have nothing to do with the score: correctness must not depend on them."""
    d = score.num_variables
    ranks = np.array([np.roll(np.arange(d), node + 1) for node in range(d)]).T
    doubt = np.random.default_rng(3).random((d, d)) ** 3
    required, forbidden, _ = score.constraints
    return make_pools(
        0.3 / (1.0 + ranks),
        required,
        forbidden,
        core_size=core_size,
        num_outsiders=num_outsiders,
        doubt=doubt,
    )


def problem(kind, d, *, prior="fair", knowledge=None, interventions=False):
    make = continuous if kind == "bge" else discrete
    return make_score(make(d, n=30, interventions=interventions), prior=prior, knowledge=knowledge)


FEW = Settings(moves_per_node=2, joint_share=0.25)


def moved_from_the_posterior(score, pools, make_tables=local_tables, n=8_000, settings=FEW):
    """Exact draws before and after one sweep, and the exact probabilities of all DAGs."""
    d = score.num_variables
    graphs = all_dags(d)
    log_scores = score.log_score(graphs)
    exact = np.exp(log_scores - logsumexp(log_scores))
    chosen = np.random.default_rng(0).choice(len(graphs), n, p=exact)
    parents, random = words_of(graphs[chosen].swapaxes(1, 2)), random_states(1, n)
    tables, work = make_tables(score, pools), make_workspace(pools)
    for graph, state in zip(parents, random, strict=True):
        sweep(Chain(graph, state), pools, tables, work, settings=settings)
    return graphs[chosen], bools_of(parents, d).swapaxes(1, 2), exact


def p_value(drawn, exact):
    graphs = all_dags(drawn.shape[1])
    keys = graph_keys(graphs)
    ranks = np.argsort(keys)
    counts = np.bincount(ranks[np.searchsorted(keys[ranks], graph_keys(drawn))], minlength=len(graphs))
    assert counts[exact == 0].sum() == 0
    common = exact * len(drawn) > 5
    observed = np.append(counts[common], counts[~common].sum())
    expected = np.append(exact[common], exact[~common].sum()) * len(drawn)
    return float(chisquare(observed[expected > 0], expected[expected > 0]).pvalue)


@pytest.mark.parametrize(
    ("kind", "d", "core_size", "num_outsiders", "options"),
    [
        ("bge", 4, 0, 1, {}),
        ("bge", 4, 1, 1, {}),
        ("bge", 5, 1, 1, {}),
        ("bge", 5, 1, 2, {"prior": "uniform"}),
        ("bge", 4, 1, 1, {"prior": "erdos-renyi"}),
        ("bge", 4, 1, 1, {"prior": "edge"}),
        ("bge", 4, 1, 1, {"prior": "uniform", "knowledge": KNOWLEDGE}),
        ("bge", 4, 1, 1, {"interventions": True}),
        ("bdeu", 4, 0, 1, {"prior": "uniform"}),
        ("bdeu", 4, 1, 1, {"knowledge": KNOWLEDGE, "interventions": True}),
        ("bdeu", 5, 1, 2, {"prior": "uniform", "interventions": True}),
    ],
)
def test_one_sweep_leaves_the_posterior_as_it_is(kind, d, core_size, num_outsiders, options):
    score = problem(kind, d, **options)
    before, after, exact = moved_from_the_posterior(score, pools_of(score, core_size, num_outsiders))
    assert is_acyclic(after).all()
    assert (before != after).any(axis=(1, 2)).mean() > 0.1
    assert p_value(after, exact) > 1e-3


@pytest.mark.parametrize(("kind", "together"), [("bge", 2), ("bge", 4), ("bdeu", 3)])
def test_parent_sets_drawn_together_leave_the_posterior_as_it_is(kind, together, monkeypatch):
    """Of five nodes: the others stay, reach them and are reached by them."""
    monkeypatch.setattr(joint, "TOGETHER", together)
    score = problem(kind, 5, knowledge=KNOWLEDGE, interventions=True)
    alone = Settings(moves_per_node=1, reversal_share=0.0, joint_share=1.0)
    before, after, exact = moved_from_the_posterior(score, pools_of(score, 1, 2), settings=alone)
    assert is_acyclic(after).all()
    assert (before != after).any(axis=(1, 2)).mean() > 0.1
    assert p_value(after, exact) > 1e-3


SINGLES = Settings(moves_per_node=0)
SINGLES_OF = [
    ("bge", 4, 0, {"prior": "uniform", "knowledge": KNOWLEDGE, "interventions": True}),
    ("bge", 5, 2, {}),
    ("bdeu", 4, 0, {"prior": "uniform"}),
    ("bdeu", 5, 1, {"knowledge": KNOWLEDGE, "interventions": True}),
]


@pytest.mark.parametrize(("kind", "d", "core_size", "options"), SINGLES_OF)
def test_outsiders_drawn_anew_leave_the_posterior_as_it_is(kind, d, core_size, options):
    score = problem(kind, d, **options)
    before, after, exact = moved_from_the_posterior(score, pools_of(score, core_size, 1), settings=SINGLES)
    assert is_acyclic(after).all()
    assert (before != after).any(axis=(1, 2)).mean() > 0.1
    assert p_value(after, exact) > 1e-3


def test_an_outsider_that_does_not_leave_at_random_makes_the_answer_wrong(monkeypatch):
    def first_leaves(parents, pools, random, bases):
        bases[:] = parents
        for node in range(len(parents)):
            outside = parents[node] & pools.outsider_words[node]
            bases[node] &= ~(outside & -outside)

    monkeypatch.setattr(chains, "draw_bases", first_leaves)
    score = problem("bge", 4, prior="uniform")
    _, after, exact = moved_from_the_posterior(score, pools_of(score, 0, 1), settings=SINGLES)
    assert p_value(after, exact) < 1e-12


def test_any_score_can_be_sampled_through_its_local_scores():
    score = problem("bge", 4, prior="uniform", knowledge=KNOWLEDGE, interventions=True)
    pools = pools_of(score, 1, 1)
    _, after, exact = moved_from_the_posterior(score, pools, make_tables=CachedTables)
    assert p_value(after, exact) > 1e-3


def test_without_the_correction_the_answer_is_wrong(monkeypatch):
    """The test above can fail: candidates that depend on the graph bias it unless the tables know."""
    score = problem("bge", 4, prior="uniform")
    pools = pools_of(score, 1, 1)

    def uncorrected(score, pools):
        tables = local_tables(score, pools)

        class Wrong:
            def fill(self, sets, scores):
                tables.fill(sets, scores)
                sets.correction[:] = 0.0

            def extend(self, bases, scores):
                tables.extend(bases, scores)

        return Wrong()

    _, after, exact = moved_from_the_posterior(score, pools, make_tables=uncorrected)
    assert p_value(after, exact) < 1e-12


def test_candidate_sets_come_with_the_probability_that_the_correction_says():
    """One node of six with two outsiders as parents: how often each draw comes up, against its formula."""
    score = problem("bge", 6)
    pools = pools_of(score, 1, 2)
    graph = np.zeros((6, 6), bool)
    node, parents = 0, (3, 5)
    graph[list(parents), node] = True
    words, sets, random = words_of(graph.T), empty_sets(pools), random_states(0, 1)[0]
    seen: dict[tuple, int] = {}
    n = 20_000
    log_probability: dict[tuple, float] = {}
    for _ in range(n):
        draw_candidates(words, pools, random, sets)
        outsiders = sets.candidates[node, 1 : sets.sizes[node]]
        free = sum((outsider in parents) << bit for bit, outsider in enumerate(outsiders))
        draw = (tuple(sorted(outsiders)), tuple(np.flatnonzero(bools_of(sets.base[node], 6))))
        seen[draw] = seen.get(draw, 0) + 1
        weights = pools.weights[node, outsiders]
        log_probability[draw] = sets.correction[node, free] + np.log(weights).sum()
    draws = sorted(seen)
    expected = np.exp([log_probability[draw] for draw in draws])
    assert expected.sum() == pytest.approx(1, abs=1e-9)  # all draws have come up
    assert chisquare([seen[draw] for draw in draws], n * expected).pvalue > 1e-3


@pytest.mark.parametrize("kind", ["bge", "bdeu"])
@pytest.mark.parametrize("interventions", [False, True])
def test_tables_hold_the_local_scores(kind, interventions):
    knowledge = Knowledge(required=[("X1", "X3")], forbidden=[("X2", "X1")], max_parents=4)
    score = problem(kind, 9, knowledge=knowledge, interventions=interventions)
    pools = pools_of(score, 2, 2)
    chain = scattered_chains(score, 1, 0)[0]
    chain.parents[8] = words_of(np.arange(9) < 7)  # more outsiders than fit: some are pinned
    chain.parents[8, 0] &= np.uint64(0b0111100)
    sets = empty_sets(pools)
    for make in (local_tables, CachedTables):
        tables = make(score, pools)
        scores = np.full((9, 16), np.nan)
        for _ in range(3):
            draw_candidates(chain.parents, pools, chain.random, sets)
            tables.fill(sets, scores)
        assert sets.base[8].any()
        for node in range(9):
            k = sets.sizes[node]
            parents = np.repeat(bools_of(sets.base[node], 9)[None], 1 << k, axis=0)
            parents[:, sets.candidates[node, :k]] |= np.arange(1 << k)[:, None] >> np.arange(k) & 1 == 1
            np.testing.assert_allclose(scores[node, : 1 << k], score.local(node, parents), atol=1e-8)
        beside, by_node = np.full((9, 9), np.nan), bools_of(chain.parents, 9)
        for _ in range(2):
            tables.extend(chain.parents, beside)
        for node in range(9):
            expected = score.extended_local(node, by_node[[node]])[0]
            expected[node] = score.local(node, by_node[[node]])[0]
            read = ~(score.constraints.forbidden[:, node] | by_node[node])
            read[node] = True
            np.testing.assert_allclose(beside[node, read], expected[read], atol=1e-8)


@pytest.mark.parametrize("d", [70, 200])
def test_sets_of_several_words_are_those_of_plain_python(d):
    rng = np.random.default_rng(d)
    frame = pd.DataFrame(rng.normal(size=(50, d)), columns=[f"V{i}" for i in range(d)])
    score = make_score(Dataset.from_frame(frame), prior="fair")
    pools = pools_of(score, 3, 2)
    order = rng.permutation(d)
    graph = np.zeros((d, d), bool)
    graph[np.ix_(order, order)] = np.triu(rng.random((d, d)) < 3 / d, 1)
    parents, children = words_of(graph.T), words_of(graph)
    assert (graph == bools_of(parents, d).T).all()
    work, random = make_workspace(pools), random_states(0, 1)[0]
    draw_candidates(parents, pools, random, work.sets)
    reached = transitive_closure(graph) | np.eye(d, dtype=bool)
    sets, num_blocked = work.sets, 0
    for node in range(d):
        size = sets.sizes[node]
        candidates = set(map(int, sets.candidates[node, :size]))
        present = set(map(int, np.flatnonzero(graph[:, node])))
        base = set(map(int, np.flatnonzero(bools_of(sets.base[node], d))))
        assert len(candidates) == size == 5
        assert candidates >= set(map(int, pools.core[node]))
        assert base | (candidates & present) == present
        assert not base & candidates
        expected = sum(int(not reached[node, c]) << k for k, c in enumerate(sets.candidates[node, :size]))
        assert _allowed(BitGraph(parents, children), sets, work.scratch, node) == expected
        num_blocked += expected != (1 << size) - 1
    assert num_blocked > 5
    tables, sums = local_tables(score, pools), make_sums(d)
    chain = Chain(parents, random)
    for _ in range(3):
        log_score = sweep(chain, pools, tables, work, sums=sums)
    graph = bools_of(parents, d).T
    assert is_acyclic(graph)
    assert log_score == pytest.approx(score.log_score(graph[None])[0], abs=1e-6)
    assert sums.edges.max() <= 3 + 1e-9


def test_a_resumed_run_goes_on_bit_for_bit():
    score = problem("bge", 8)
    never = {"stop_when": lambda _: False, "num_chains": 2}
    through = run(score, seed=3, max_sweeps=1200, **never)
    first = run(score, seed=3, max_sweeps=400, **never)
    kept = first.state.parents.copy()
    second = run(score, state=first.state, max_sweeps=1200, **never)
    assert (first.state.parents == kept).all()  # what was saved is not written to
    for one, other in zip(through.state.records, second.state.records, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(through.state.random, second.state.random)
    np.testing.assert_array_equal(through.edge_probabilities, second.edge_probabilities)


@pytest.mark.parametrize(("kind", "d"), [("bge", 10), ("bdeu", 8)])
def test_chains_agree_with_the_exact_posterior_within_their_error(kind, d):
    from gflowdag.exact import posterior

    if kind == "bge":
        data = Dataset.from_frame(gd.simulate.linear_gaussian(d, 100, random_state=0).frame)
    else:
        data = discrete(d, n=200)
    score = make_score(data, prior="fair")
    result = run(score, seed=0, max_sweeps=8_000, core_size=3, num_outsiders=2)
    assert result.verdict.trusted
    exact = np.asarray(posterior(score.dense_table()).edge_probabilities)
    assert np.abs(result.edge_probabilities - exact).max() < 4 * result.verdict.error
    assert result.log_scores.ravel() == pytest.approx(
        score.log_score(result.graphs.reshape(-1, d, d)), abs=1e-6
    )


def test_no_edge_is_known_better_than_a_visit_that_was_missed_allows():
    """Except where knowledge decides."""
    score = problem("bge", 6, knowledge=Knowledge(required=[("X1", "X3")], forbidden=[("X2", "X1")]))
    result = run(score, seed=0, max_sweeps=200, num_chains=4)
    known = score.constraints.required | score.constraints.forbidden
    assert (result.edge_errors[known] == 0).all()
    assert result.edge_errors[~known].min() >= 1 / result.verdict.bulk_ess


def test_chains_that_have_not_met_are_not_trusted():
    score = problem("bge", 8)
    result = run(score, seed=0, max_sweeps=64)
    assert not result.verdict.trusted
    assert result.verdict.bulk_ess < 400


def test_starts_are_scattered_and_obey_knowledge():
    score = problem("bge", 9, knowledge=KNOWLEDGE)
    chains = scattered_chains(score, 20, 0)
    graphs = np.stack([bools_of(chain.parents, 9).T for chain in chains])
    assert is_acyclic(graphs).all()
    assert np.isfinite(score.log_score(graphs)).all()
    assert len(np.unique(graph_keys(graphs))) == 20
    assert len(np.unique([chain.random for chain in chains], axis=0)) == 20
