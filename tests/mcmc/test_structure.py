"""MC3 against enumeration: neighbourhoods, proposal ratios, the stationary law, knowledge."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

import gflowdag as gd
from gflowdag.data import Dataset, Knowledge
from gflowdag.errors import GFlowDAGError
from gflowdag.estimators.mc3 import MC3
from gflowdag.graph.bits import compress, graph_keys, parent_masks
from gflowdag.graph.closure import is_acyclic
from gflowdag.graph.enumeration import all_dags
from gflowdag.mcmc import moves, structure
from gflowdag.mcmc.changes import DeltaChanges, OnDemandChanges, TableChanges
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.precision import double_precision
from gflowdag.score import make_score
from gflowdag.score.deltas import TableDeltas, schur_deltas
from gflowdag.score.on_demand import NeighbourScores


def free(d: int) -> moves.Limits:
    return moves.limits_from_constraints(np.zeros((d, d), bool), np.eye(d, dtype=bool), None)


def neighbours_by_hand(graph: np.ndarray) -> set[bytes]:
    """Every DAG that differs from `graph` by one edge added, removed or reversed."""
    found = []
    for i, j in np.argwhere(~np.eye(len(graph), dtype=bool)):
        other = graph.copy()
        if graph[j, i]:
            other[j, i], other[i, j] = False, True
        else:
            other[i, j] ^= True
        if is_acyclic(other):
            found.append(other)
    return set(graph_keys(np.array(found)))


@jax.jit
def proposal(dags: moves.DAGs, hood: moves.Neighbourhood, index: int) -> tuple[moves.Move, moves.DAGs]:
    move = moves.nth_move(hood, jnp.full(hood.sizes.shape[1], index, jnp.int32))
    return move, moves.apply_move(dags, move)


hood_of = jax.jit(moves.neighbourhood)


def log_weights(table: np.ndarray, graphs: np.ndarray) -> np.ndarray:
    masks = parent_masks(graphs)
    return sum(table[j, compress(masks[:, j], j)] for j in range(len(table)))


@pytest.mark.parametrize("d", [3, 4])
def test_every_neighbour_is_proposed_exactly_once(d):
    graphs = all_dags(d)
    dags = moves.dags_from_adjacency(graphs)
    hood = hood_of(dags, free(d))
    sizes = np.asarray(hood.sizes.sum(0))
    proposed = [set() for _ in graphs]
    for index in range(sizes.max()):
        after = proposal(dags, hood, index)[1]
        keys = graph_keys(moves.adjacency(after.parents))
        for chain in np.flatnonzero(index < sizes):
            assert keys[chain] not in proposed[chain]
            proposed[chain].add(keys[chain])
    assert proposed == [neighbours_by_hand(graph) for graph in graphs]


@double_precision
def test_transitions_are_in_detailed_balance_at_three_nodes():
    graphs = all_dags(3)
    keys = {key: index for index, key in enumerate(graph_keys(graphs))}
    table = np.random.default_rng(0).normal(scale=2.0, size=(3, 4))
    log_posterior = log_weights(table, graphs)
    limits, changes = free(3), TableChanges(jnp.asarray(table))
    dags = moves.dags_from_adjacency(graphs)
    hood = hood_of(dags, limits)
    sizes = np.asarray(hood.sizes.sum(0))
    transition = np.zeros((25, 25))
    for index in range(sizes.max()):
        move, after = proposal(dags, hood, index)
        change = changes.change((), dags, after, move)
        accept = np.exp(np.minimum(structure.log_acceptance(change, hood, hood_of(after, limits)), 0))
        for chain in np.flatnonzero(index < sizes):
            to = keys[graph_keys(moves.adjacency(after.parents))[chain]]
            transition[chain, to] += accept[chain] / sizes[chain]
    flow = np.exp(log_posterior)[:, None] * transition
    assert (transition > 0).sum() == sizes.sum()
    np.testing.assert_allclose(flow, flow.T, rtol=1e-12)  # rounding alone
    assert set(sizes) == {5, 6}  # unequal: without the ratio of the sizes the flow is unbalanced


@double_precision
def test_chains_end_in_the_posterior_at_four_nodes():
    graphs = all_dags(4)
    table = np.random.default_rng(1).normal(scale=1.5, size=(4, 8))
    probability = np.exp(log_weights(table, graphs))
    probability /= probability.sum()
    limits, changes, num_chains = free(4), TableChanges(jnp.asarray(table)), 8192
    state = structure.init(np.zeros((num_chains, 4, 4), bool), np.zeros(num_chains), changes, limits)
    chains = structure.run(jax.random.key(0), state, changes, limits, burn_in=200, num_steps=200, thinning=50)

    # The last states of independent chains are independent draws: a plain χ² test, small cells pooled.
    keys = graph_keys(graphs)
    order = np.argsort(keys)
    index = order[np.searchsorted(keys, graph_keys(chains.graphs()[-1]), sorter=order)]
    expected, observed = probability * num_chains, np.bincount(index, minlength=len(graphs))
    large = expected >= 5
    expected = np.append(expected[large], expected[~large].sum())
    observed = np.append(observed[large], observed[~large].sum())
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert 1e-3 < chi2.sf(statistic, len(expected) - 1) < 1 - 1e-3  # fails one seed in 500

    marginals = np.einsum("g,gij->ij", probability, graphs)
    # 4 records of 8192 chains, averaged over each pair's conditional: standard error below 0.0055.
    np.testing.assert_allclose(chains.edge_probabilities.mean(0), marginals, atol=0.02)
    last = chains.graphs()[-1]
    shift = chains.log_scores[-1] - log_weights(table, last)
    np.testing.assert_allclose(shift, shift[0], atol=1e-9)  # the running score has not drifted


@pytest.mark.parametrize("scale", [1.0, 1000.0])  # the second as of thousands of rows
@double_precision
def test_conditionals_are_exact_when_averaged_over_the_exact_posterior(scale):
    knowledge = {"required": np.zeros((4, 4), bool), "forbidden": np.eye(4, dtype=bool), "max_parents": 2}
    knowledge["required"][0, 1] = True
    knowledge["forbidden"][1, 0] = knowledge["forbidden"][2, 3] = True
    graphs = all_dags(4)
    legal = graphs[:, 0, 1] & ~graphs[:, 2, 3] & (graphs.sum(1) <= 2).all(1)
    graphs = graphs[legal]
    table = scale * np.random.default_rng(2).normal(size=(4, 8))
    log_posterior = log_weights(table, graphs)
    weights = np.exp(log_posterior - log_posterior.max())
    limits, changes = moves.limits_from_constraints(**knowledge), TableChanges(jnp.asarray(table))
    state = structure.init(graphs, np.zeros(len(graphs)), changes, limits)
    each = np.asarray(structure.edge_conditionals(state, changes, limits))
    exact = np.average(graphs, axis=0, weights=weights)
    np.testing.assert_allclose(
        np.average(each, axis=-1, weights=weights), exact, atol=1e-12
    )  # the tower rule


@double_precision
def test_schur_complements_and_scores_on_demand_price_moves_like_the_table():
    rng = np.random.default_rng(3)
    d = 6
    frame = pd.DataFrame(rng.normal(size=(50, d)) @ rng.normal(size=(d, d)), columns=list("abcdef"))
    score = make_score(Dataset.from_frame(frame), prior="fair")
    limits = moves.limits_from_constraints(score.constraints.required, score.constraints.forbidden, 3)
    schur = schur_deltas(score.likelihood.normal_wishart, score.prior_log_weights)
    runs = []
    for changes in (
        TableChanges(jnp.asarray(TableDeltas(score.unconstrained_table()).table)),
        DeltaChanges(jax.tree.map(jnp.asarray, schur)),
        OnDemandChanges(NeighbourScores(score).families()),
    ):
        start = np.zeros((32, d, d), bool)
        state = structure.init(start, score.log_score(start), changes, limits)
        runs.append(
            structure.run(jax.random.key(1), state, changes, limits, burn_in=0, num_steps=400, thinning=20)
        )
    for run in runs[1:]:
        np.testing.assert_array_equal(runs[0].graphs(), run.graphs())  # the same keys, the same decisions
    np.testing.assert_allclose(runs[0].edge_probabilities, runs[1].edge_probabilities, atol=1e-8)
    np.testing.assert_array_equal(runs[2].edge_probabilities, runs[2].graphs().mean(1))  # counted
    last = runs[1].graphs()[-1]
    np.testing.assert_allclose(runs[1].log_scores[-1], score.log_score(last), atol=1e-8)
    assert last.sum(1).max() == 3  # max_parents binds, and holds


class Looks:
    """A deadline that has passed after so many looks at it."""

    is_set = True

    def __init__(self, number: int) -> None:
        self.number = number

    @property
    def has_passed(self) -> bool:
        self.number -= 1
        return self.number <= 0


@double_precision
def test_the_clock_is_looked_at_between_steps_where_scores_are_computed_on_demand():
    frame = pd.DataFrame(np.random.default_rng(3).normal(size=(50, 5)), columns=list("abcde"))
    score = make_score(Dataset.from_frame(frame))
    limits = moves.limits_from_constraints(score.constraints.required, score.constraints.forbidden, None)
    changes = OnDemandChanges(NeighbourScores(score).families())
    start = np.zeros((8, 5, 5), bool)

    def run(deadline: Any) -> structure.Chains:
        state = structure.init(start, score.log_score(start), changes, limits)
        return structure.run(
            jax.random.key(1),
            state,
            changes,
            limits,
            burn_in=0,
            num_steps=300,
            thinning=100,
            deadline=deadline,
        )

    stopped = run(Looks(3))
    assert stopped.share_done == 3 / 300
    assert stopped.proposed.sum() == 3 * 8
    np.testing.assert_allclose(stopped.log_scores[-1], score.log_score(stopped.graphs()[-1]), atol=1e-9)
    to_the_end, never = run(Looks(10**6)), run(Deadline())
    np.testing.assert_array_equal(to_the_end.graphs(), never.graphs())  # step by step or all at once
    assert to_the_end.share_done == never.share_done == 1


def test_masks_of_more_than_one_word_count_like_matrices():
    rng = np.random.default_rng(4)
    graphs = np.triu(rng.random((8, 40, 40)) < 0.1, 1)
    hood = hood_of(moves.dags_from_adjacency(graphs), free(40))
    for graph, size in zip(graphs, np.asarray(hood.sizes.sum(0)), strict=True):
        assert size == len(neighbours_by_hand(graph))


@pytest.fixture(scope="module")
def five_variables() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(2, 60))
    c = a - b + rng.normal(size=60)
    d = 0.5 * c + rng.normal(size=60)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d, "e": 0.4 * d + 0.3 * a + rng.normal(size=60)})


FAST = {"num_chains": 256, "burn_in": 2000, "num_steps": 4000, "thinning": 40, "random_state": 0}


def test_estimator_agrees_with_the_exact_posterior_and_says_so(five_variables):
    posterior = MC3(prior="uniform", **FAST).fit(five_variables).posterior_
    exact = gd.ExactPosterior(prior="uniform", random_state=0).fit(five_variables).posterior_
    error = np.abs(posterior.edge_probabilities().to_numpy() - exact.edge_probabilities().to_numpy())
    diagnostics = posterior.diagnostics()
    assert diagnostics["verdict"] == "trusted"
    assert diagnostics["r_hat"] <= 1.05
    # 400 effective samples or more: a standard error of at most 0.025 for each edge.
    assert error.max() < 4 * 0.5 / np.sqrt(diagnostics["effective_samples"])
    assert set(diagnostics["acceptance"]) == {"add", "remove", "reverse"}
    assert is_acyclic(posterior.samples).all()


def test_the_same_seed_gives_the_same_samples(five_variables):
    first, second = (MC3(**FAST).fit(five_variables).posterior_ for _ in range(2))
    np.testing.assert_array_equal(first.samples, second.samples)


def test_knowledge_holds_in_every_graph_and_marginal(five_variables):
    knowledge = Knowledge(
        required=[("d", "a")], forbidden=[("a", "c")], tiers=[["d", "c"], ["b"]], max_parents=2
    )
    posterior = MC3(knowledge=knowledge, **FAST).fit(five_variables).posterior_
    samples = posterior.samples
    assert samples[:, 3, 0].all()
    assert not (samples[:, 0, 2] | samples[:, 1, 2] | samples[:, 1, 3]).any()
    assert samples.sum(1).max() <= 2
    exact = gd.ExactPosterior(knowledge=knowledge, random_state=0).fit(five_variables).posterior_
    expected = exact.edge_probabilities().to_numpy()
    np.testing.assert_allclose(posterior.edge_probabilities().to_numpy(), expected, atol=0.05)


def test_interventions_are_used(five_variables):
    frame = five_variables.assign(target=["c" if row % 3 == 0 else None for row in range(60)])
    posterior = MC3(**FAST).fit(frame, interventions="target").posterior_
    exact = gd.ExactPosterior(random_state=0).fit(frame, interventions="target").posterior_
    expected = exact.edge_probabilities().to_numpy()
    np.testing.assert_allclose(posterior.edge_probabilities().to_numpy(), expected, atol=0.05)


def test_short_chains_are_not_trusted(five_variables):
    options = {**FAST, "burn_in": 0, "num_steps": 40, "thinning": 10}
    assert MC3(**options).fit(five_variables).posterior_.diagnostics()["verdict"] == "not converged"
    with pytest.raises(GFlowDAGError, match="num_steps"):
        MC3(**{**options, "num_steps": 30}).fit(five_variables)
