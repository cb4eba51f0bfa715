"""Chains of graphs with fresh labels, reversals and temperatures, against all DAGs on four nodes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare

from gflowdag.graph import all_dags, is_acyclic
from gflowdag.graph.bits import graph_keys
from gflowdag.mcmc import order_chains
from gflowdag.mcmc.reversals import parent_sums, reverse_edges
from gflowdag.orders.candidates import CandidateTable, dense_candidates, table_log_scores
from gflowdag.orders.draws import draw_graphs
from gflowdag.orders.labels import canonical_orders
from gflowdag.orders.problem import OrderProblem
from gflowdag.orders.weights import order_weights
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.precision import double_precision

DAGS = all_dags(4)
KEYS = graph_keys(DAGS)


def dense(rng: np.random.Generator) -> CandidateTable:
    return dense_candidates(1.5 * rng.normal(size=(4, 8)))


def restricted(rng: np.random.Generator) -> CandidateTable:
    """Two candidates of each node, and the third one alone."""
    candidates = np.array([[1, 2], [0, 3], [1, 3], [0, 2]], np.int32)
    singles = np.full((4, 4), -np.inf)
    singles[np.arange(4), [3, 2, 0, 1]] = rng.normal(size=4)
    return CandidateTable(candidates, 1.5 * rng.normal(size=(4, 4)), singles)


def forbidding(rng: np.random.Generator) -> CandidateTable:
    scores = 1.5 * rng.normal(size=(4, 8))
    scores[:, 1:][rng.random((4, 7)) < 0.4] = -np.inf
    return dense_candidates(scores)


def problem_of(table: CandidateTable, rng: np.random.Generator) -> OrderProblem:
    weights = jax.tree.map(jnp.asarray, order_weights(table))
    return OrderProblem(table, weights, rng.permutation(4).astype(np.int32))


def posterior(table: CandidateTable) -> np.ndarray:
    """Probabilities of the 543 DAGs; those with an outsider beside others have none."""
    log_scores = table_log_scores(table, DAGS)
    outsiders = np.isfinite(table.singles).T & DAGS
    log_scores[(outsiders.any(axis=1) & (DAGS.sum(axis=1) > 1)).any(axis=1)] = -np.inf
    return np.exp(log_scores - logsumexp(log_scores))


def p_value(graphs: np.ndarray, exact: np.ndarray) -> float:
    ranks = np.argsort(KEYS)
    counts = np.bincount(ranks[np.searchsorted(KEYS[ranks], graph_keys(graphs))], minlength=len(DAGS))
    assert counts[exact == 0].sum() == 0
    common = exact * len(graphs) > 5
    observed = np.append(counts[common], counts[~common].sum())
    expected = np.append(exact[common], exact[~common].sum()) * len(graphs)
    return float(chisquare(observed[expected > 0], expected[expected > 0]).pvalue)


@pytest.mark.parametrize("make", [dense, restricted, forbidding])
@double_precision
def test_reversals_leave_the_posterior_as_it_is(make):
    rng = np.random.default_rng(0)
    problem = problem_of(make(rng), rng)
    exact = posterior(problem.table)
    graphs = DAGS[rng.choice(len(DAGS), 20_000, p=exact)]
    moved, share = reverse_edges(parent_sums(problem), graphs, 5, rng)
    assert is_acyclic(moved).all()
    assert share > 0.02
    assert (moved != graphs).any(axis=(1, 2)).mean() > 0.1
    assert p_value(moved, exact) > 1e-3


@pytest.mark.parametrize(
    ("make", "ladder"),
    [
        (dense, (1.0,)),
        (restricted, (1.0,)),
        (forbidding, (1.0,)),
        (restricted, (1.0, 0.5)),
        pytest.param(dense, (1.0, 0.5), marks=pytest.mark.long),
        pytest.param(forbidding, (1.0, 0.5), marks=pytest.mark.long),
    ],
)
@double_precision
def test_chains_visit_graphs_by_their_score(make, ladder):
    rng = np.random.default_rng(1)
    problem = problem_of(make(rng), rng)
    # The last state of many chains: independent draws, long after the start is forgotten.
    chains = order_chains.sample(
        problem,
        jax.random.key(0),
        num_chains=4000 // len(ladder),
        num_records=1,
        thinning=6 * order_chains.SWEEP.steps,
        burn_in=0,
        ladder=ladder,
    )
    graphs = draw_graphs(problem.weights, problem.table, chains.orders[:, 0], problem.labels, rng)
    assert p_value(graphs, posterior(problem.table)) > 1e-3
    assert chains.exchanged.shape == (len(ladder) - 1,)
    assert (chains.exchanged > 0.3).all()


@double_precision
def test_exchanges_alone_keep_each_temperature_at_its_own_posterior():
    rng = np.random.default_rng(2)
    problem = problem_of(dense(rng), rng)
    ladder, num_chains = (1.0, 0.6, 0.3), 20_000
    replicas = order_chains.Replicas(problem, ladder, num_chains, jax.random.key(0), rng)
    exact = [posterior(tempered.table) for tempered in replicas.problems]
    replicas.graphs = np.stack([DAGS[rng.choice(len(DAGS), num_chains, p=p)] for p in exact])
    for _ in range(4):
        replicas._exchange()
    assert min(p_value(graphs, p) for graphs, p in zip(replicas.graphs, exact, strict=True)) > 1e-3


def test_a_graph_has_its_canonical_order_under_every_labelling():
    rng = np.random.default_rng(3)
    graphs = DAGS[rng.integers(len(DAGS), size=50)]
    labels = np.array([rng.permutation(4) for _ in graphs])
    for graph, label, order in zip(graphs, labels, canonical_orders(graphs, labels), strict=True):
        placed: list[int] = []
        for node in order:
            ready = [
                j for j in range(4) if j not in placed and set(np.flatnonzero(graph[:, j])) <= set(placed)
            ]
            assert node == min(ready, key=lambda j: label[j])
            placed.append(int(node))


@double_precision
def test_the_clock_is_looked_at_after_every_sweep(monkeypatch):
    rng = np.random.default_rng(2)
    problem, sweeps = problem_of(dense(rng), rng), []
    swept = order_chains.Replicas.sweep
    monkeypatch.setattr(order_chains.Replicas, "sweep", lambda *given: sweeps.append(1) or swept(*given))
    chains = order_chains.sample(
        problem,
        jax.random.key(0),
        num_chains=2,
        num_records=10,
        thinning=20 * order_chains.SWEEP.steps,
        burn_in=0,
        deadline=Deadline.after(0.0),
    )
    assert len(sweeps) == 1
    assert chains.orders.shape == (2, 1, 4)
