"""A factor for every edge by the kinds of its ends: once for each edge, in every route to a score."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import gflowdag as gd
from gflowdag import exact
from gflowdag.baselines.graph_score import FORBIDDEN_PARENT
from gflowdag.data import Dataset
from gflowdag.data.columns import Kind
from gflowdag.errors import ScoreError
from gflowdag.graph.enumeration import all_dags
from gflowdag.orders.candidates import candidate_table
from gflowdag.runtime.precision import double_precision
from gflowdag.score import base, make_score
from gflowdag.score.on_demand import NeighbourScores, OnDemandDeltas, OnDemandGraphScore

KINDS: dict[str, Kind] = {"a": "discrete", "b": "continuous", "c": "discrete", "e": "continuous"}
RULE = {"discrete discrete": 1 / 4, "discrete continuous": 1 / 3, "continuous discrete": 5 / 3}
DAGS = all_dags(4)
SEARCH = 1e-4  # nats of a graph: where two searches for a logistic regression end; a factor is 0.5 at least


def mixed(n: int = 60) -> Dataset:
    rng = np.random.default_rng(0)
    a, b = rng.integers(3, size=n), rng.normal(size=n)
    c = (rng.logistic(size=n) < b).astype(int)
    return Dataset.from_frame(
        pd.DataFrame({"a": a, "b": b, "c": c, "e": rng.normal(size=n) + a}), kinds=KINDS
    )


def by_hand(graphs: np.ndarray, kinds: list[str]) -> np.ndarray:
    """Log of the product over the edges, one edge after the other."""
    total = np.zeros(len(graphs))
    for number, source, target in np.argwhere(graphs):
        total[number] += np.log(RULE.get(f"{kinds[source]} {kinds[target]}", 1.0))
    return total


class Flat(gd.LocalScore):
    """No data: the posterior is the prior."""

    def prepare(self, data: Dataset) -> None:
        self.edge_factor = gd.GeneralizedLinear().edge_factors.of(np.array(data.kinds) == "discrete")

    def local(self, node: int, parents: np.ndarray) -> np.ndarray:
        return np.zeros(len(parents))


@pytest.mark.parametrize("prior", ["fair", "uniform", "edge"])
def test_every_edge_multiplies_the_prior_by_the_factor_of_its_kinds(prior):
    data = mixed()
    plain = make_score(data, score=gd.GeneralizedLinear(edge_factor=1), prior=prior)
    default = make_score(data, prior=prior)
    factors = by_hand(DAGS, data.kinds)
    assert np.ptp(factors) > 3
    np.testing.assert_allclose(default.log_prior(DAGS), plain.log_prior(DAGS) + factors, atol=1e-9)
    np.testing.assert_allclose(default.log_likelihood(DAGS), plain.log_likelihood(DAGS), atol=1e-9)
    # The sum over all graphs, by the exact engine from its table.
    expected = logsumexp(plain.log_score(DAGS) + factors)
    assert exact.posterior(default.dense_table()).log_evidence == pytest.approx(expected, abs=SEARCH)
    shared = make_score(data, score=gd.GeneralizedLinear(edge_factor=0.5), prior=prior)
    halves = plain.log_prior(DAGS) + np.log(0.5) * DAGS.sum(axis=(1, 2))
    np.testing.assert_allclose(shared.log_prior(DAGS), halves, atol=1e-9)


@double_precision
def test_all_routes_to_a_score_have_each_factor_once():
    data = mixed()
    score = make_score(data)
    plain = make_score(data, score=gd.GeneralizedLinear(edge_factor=1))
    scores = plain.log_score(DAGS) + by_hand(DAGS, data.kinds)
    node, others = 2, np.array([3, 0, 1])  # bits that do not follow the columns
    sets = np.zeros((8, 4), bool)
    sets[:, others] = np.arange(8)[:, None] >> np.arange(3) & 1
    factors = by_hand(np.where(np.arange(4) == node, sets[:, :, None], False), data.kinds)
    local = plain.local(node, sets) + factors
    np.testing.assert_allclose(score.local(node, sets), local, atol=1e-9)
    none = np.zeros((1, 4), bool)
    np.testing.assert_allclose(score.local_blocks(node, others, none)[0], local, atol=SEARCH)
    beside = np.arange(4)[None] == 3
    np.testing.assert_allclose(score.local_blocks(node, others[1:], beside)[0], local[1::2], atol=SEARCH)
    extended = score.extended_local(node, sets)
    for place, parent in enumerate(others):
        without = np.flatnonzero(~sets[:, parent])
        np.testing.assert_allclose(extended[without, parent], local[without | 1 << place], atol=SEARCH)
    table = candidate_table(score, 2)
    inside = table.candidates[node]
    (outsider,) = np.setdiff1d(np.arange(4), [*inside, node])
    chosen = np.flatnonzero(~sets[:, outsider])
    index = [int(sets[number, inside] @ [1, 2]) for number in chosen]
    np.testing.assert_allclose(table.scores[node, index], local[chosen], atol=SEARCH)
    alone = np.flatnonzero(sets[:, outsider] & (sets.sum(axis=1) == 1))
    np.testing.assert_allclose(table.singles[node, outsider], local[alone[0]], atol=SEARCH)
    asked = OnDemandGraphScore(score, FORBIDDEN_PARENT)(jnp.asarray(DAGS))
    np.testing.assert_allclose(np.asarray(asked), scores, atol=SEARCH)


@pytest.mark.parametrize("from_table", [True, False])
@double_precision
def test_changes_by_single_edges_have_its_factor(from_table):
    data = mixed()
    score = make_score(data)
    plain = make_score(data, score=gd.GeneralizedLinear(edge_factor=1))
    deltas = score.deltas() if from_table else OnDemandDeltas(NeighbourScores(score))
    scores = plain.log_score(DAGS) + by_hand(DAGS, data.kinds)
    place = {graph.tobytes(): number for number, graph in enumerate(DAGS)}
    changes = jax.jit(jax.vmap(lambda graph: deltas.all(deltas.init(graph))))(jnp.asarray(DAGS))
    compared = 0
    for number, graph in enumerate(DAGS):
        for i, j in np.argwhere(~graph & ~np.eye(4, dtype=bool)):
            larger = graph.copy()
            larger[i, j] = True
            if larger.tobytes() in place:
                change = scores[place[larger.tobytes()]] - scores[number]
                assert float(changes[number, i, j]) == pytest.approx(change, abs=SEARCH)
                compared += 1
    assert compared > 1000


def from_the_prior_of_all_graphs(data: Dataset) -> np.ndarray:
    """Edge probabilities before any data, as a sum over all DAGs, [d, d]."""
    sizes = np.array([1, 3, 3, 1])  # sets of so many among three others, which share the weight of `fair`
    weight = by_hand(DAGS, data.kinds) - np.log(sizes[DAGS.sum(axis=1)]).sum(axis=1)
    return np.tensordot(np.exp(weight - logsumexp(weight)), DAGS, axes=1)


SAMPLERS = {
    "exact": (gd.ExactPosterior(), 1e-9),
    # Thousands of nearly independent graphs.
    "mc3": (gd.MC3(num_chains=64, burn_in=500, num_steps=4000, thinning=40), 0.03),
    "order-mcmc": (gd.OrderMCMC(iterations=600, num_chains=16), 0.03),
    "parent-set-mcmc": (gd.ParentSetMCMC(num_chains=16, iterations=600), 0.03),
    "gadget": (gd.Gadget(burn_in=250, num_steps=2000, n_jobs=1), 0.05),
}


@pytest.mark.parametrize("on_demand", [False, True])
@pytest.mark.parametrize("method", SAMPLERS)
def test_samplers_draw_from_the_sum_over_all_graphs(method, on_demand, monkeypatch):
    if method == "gadget":
        pytest.importorskip("sumu")
    if on_demand and method != "mc3":
        pytest.skip("takes the same route at any size")
    if on_demand:
        monkeypatch.setattr(base, "MAX_TABLE_VARIABLES", 1)
    data = mixed(20)
    right = from_the_prior_of_all_graphs(data)
    estimator, tolerance = SAMPLERS[method]
    posterior = estimator.set_params(score=Flat(), random_state=0).fit(data).posterior_
    np.testing.assert_allclose(posterior.edge_probabilities().to_numpy(), right, atol=tolerance)
    plain = np.full((4, 4), right[1, 3])
    assert np.abs(right - plain)[~np.eye(4, dtype=bool)].max() > 0.1  # what is missed without factors


@pytest.mark.parametrize("estimator", [
    gd.DAGGFlowNet(preset="fast", iterations=2, batch_size=2, num_weighted=8, num_samples=8,
                   num_training_graphs=0, num_held_out_graphs=0),
    gd.OrderGFlowNet(iterations=2, batch_size=4, num_samples=8, width=16, depth=1),
    gd.BootstrapGES(num_bootstraps=2, n_jobs=1),
], ids=lambda estimator: estimator.method)  # fmt: skip
def test_scores_of_learnt_graphs_have_each_factor_once(estimator):
    data = mixed()
    posterior = estimator.set_params(random_state=0).fit(data).posterior_
    plain = make_score(data, score=gd.GeneralizedLinear(edge_factor=1))
    expected = plain.log_score(posterior.samples) + by_hand(posterior.samples, data.kinds)
    np.testing.assert_allclose(posterior.log_scores, expected, atol=SEARCH)


def test_tables_of_one_kind_follow_the_same_rule():
    frame = pd.DataFrame(mixed().values, columns=list(KINDS))
    discrete = Dataset.from_frame(frame[["a", "c"]].astype(int), kinds={"a": "discrete", "c": "discrete"})
    continuous = Dataset.from_frame(frame[["b", "e"]])
    for data in (discrete, continuous):
        own, general = (make_score(data, score=score) for score in ("auto", gd.GeneralizedLinear()))
        np.testing.assert_allclose(own.dense_table(), general.dense_table(), atol=1e-9)


def test_graphs_of_simulated_tables_come_as_often_as_their_edges_weigh():
    levels, edges = [3, 0, 2, 0], np.zeros((4, 4))
    rng = np.random.default_rng(0)
    for _ in range(2000):
        edges += gd.simulate.from_prior(4, 60, num_levels=levels, random_state=rng).truth.to_numpy() / 2000
    np.testing.assert_allclose(edges, from_the_prior_of_all_graphs(mixed()), atol=0.05)  # four deviations


def test_a_fit_tells_the_factors_and_nothing_where_there_are_none():
    notes = " ".join(make_score(mixed()).likelihood.notes)
    assert (
        "by 0.25 between discrete columns, by 0.333 from a discrete to a continuous one, and by 1.67" in notes
    )
    without = make_score(mixed(), score=gd.GeneralizedLinear(edge_factor=1)).likelihood.notes
    assert "multiplies" not in " ".join(without)


def test_factors_that_are_none_are_refused():
    with pytest.raises(ScoreError, match="edge_factor"):
        gd.GeneralizedLinear(edge_factor=0)
    score = make_score(mixed(), score=Flat())
    for wrong in (np.ones((3, 3)), np.zeros((4, 4))):
        score.likelihood.edge_factor = wrong
        with pytest.raises(ScoreError, match=r"one for each edge, shape \(4, 4\)"):
            replace(score)
