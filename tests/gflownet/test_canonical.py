"""DAGs along their canonical order: one path to each, sums over parent sets, learning."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

import gflowdag as gd
from gflowdag.errors import GFlowDAGError
from gflowdag.gflownet.policies.canonical import CanonicalPolicy, summed_scores
from gflowdag.gflownet.retrace import weigh
from gflowdag.gflownet.rollout import num_taken
from gflowdag.gflownet.spaces.canonical import canonical_positions, canonical_space, parent_sums, times
from gflowdag.graph import all_dags
from gflowdag.graph.bits import compress, parent_masks
from gflowdag.graph.order import canonical_order
from gflowdag.runtime.precision import double_precision
from gflowdag.score import make_score


def random_table(d: int) -> np.ndarray:
    """Scores without any structure."""
    return 2 * np.random.default_rng(d).normal(size=(d, 2 ** (d - 1))) - 50


def log_scores(table: np.ndarray, graphs: np.ndarray) -> np.ndarray:
    """Of all graphs, from the table."""
    nodes = np.arange(len(table))
    return table[nodes, compress(parent_masks(graphs), nodes)].sum(axis=1)


@pytest.mark.parametrize("d", [3, 4])
@pytest.mark.parametrize("learnt", [False, True])
@double_precision
def test_every_dag_has_one_path_and_the_policy_is_a_distribution_over_dags(d, learnt):
    graphs, table = all_dags(d), random_table(d)
    space = canonical_space(table, np.random.default_rng(0).permutation(d))
    states = jax.vmap(space.state_of)(jnp.asarray(graphs))
    # One edge leads to each DAG but the empty one, from one DAG.
    assert jax.vmap(space.legal)(states)[:, :-1].sum() == len(graphs) - 1
    policy = CanonicalPolicy(d, width=8, depth=2, key=jax.random.key(0)) if learnt else summed_scores
    weighed = weigh(space, policy, jax.random.key(0), jnp.asarray(graphs))
    # The path is certain, so this is the probability of each DAG; float32 sums of up to seven decisions.
    assert np.exp(-np.asarray(weighed.log_ratio)).sum() == pytest.approx(1.0, abs=1e-5)
    empty = log_scores(table, np.zeros((1, d, d), bool))
    np.testing.assert_allclose(weighed.log_reward, log_scores(table, graphs) - empty, atol=1e-9)
    np.testing.assert_array_equal(jax.vmap(space.built)(states), graphs)


@double_precision
def test_each_action_on_the_path_is_taken_at_its_time():
    graphs = all_dags(4)
    space = canonical_space(random_table(4), np.arange(4))

    @jax.vmap
    def last_actions(graph):
        when = times(graph)
        last = jnp.argmax(when.reshape(-1))
        observed = space.observe(space.state_of(graph)).latest
        return last, observed, num_taken(space, space.state_of(graph)), jnp.sort(when.reshape(-1))

    last, observed, sizes, when = (np.asarray(part) for part in last_actions(jnp.asarray(graphs[1:])))
    assert graphs[0].sum() == 0
    np.testing.assert_array_equal(last, observed)
    for row, size in zip(when, sizes, strict=True):
        np.testing.assert_array_equal(row[row >= 0], np.arange(size))


@double_precision
def test_the_path_follows_the_canonical_order():
    graphs = all_dags(4)
    _, orders = jax.vmap(canonical_positions)(jnp.asarray(graphs))
    np.testing.assert_array_equal(orders, canonical_order(graphs))


@double_precision
def test_the_parents_of_a_single_node_are_drawn_exactly_without_a_network():
    d, node = 4, 2
    table = np.full((d, 2 ** (d - 1)), -np.inf)
    table[:, 0] = 0.0
    table[node] = np.random.default_rng(0).normal(size=2 ** (d - 1))
    graphs = all_dags(d)
    exact = log_scores(table, graphs)
    possible = np.isfinite(exact) & graphs.any(axis=(1, 2))
    for order in np.random.default_rng(1).permuted(np.tile(np.arange(d), (5, 1)), axis=1):
        space = canonical_space(table, order)
        weighed = weigh(space, summed_scores, jax.random.key(0), jnp.asarray(graphs[possible]))
        # Equal weights, but for stopping at once. Float32 log-probabilities of four steps.
        np.testing.assert_allclose(weighed.log_weights, weighed.log_weights[0], atol=1e-5)


def test_parent_sums_are_those_of_enumeration():
    d, table, order = 4, random_table(4), np.array([3, 1, 0, 2])
    sums = parent_sums(table, order)
    for label, node in enumerate(order):
        others = [k for k in range(d) if k != label]
        for stage in range(d):
            for fixed in range(2 ** (d - 1)):
                free = fixed & ((1 << stage) - 1)
                terms = []
                for low in range(free + 1):
                    if low & ~free:
                        continue
                    members = [others[bit] for bit in range(d - 1) if (fixed & ~free | low) >> bit & 1]
                    mask = sum(1 << int(order[member]) for member in members)
                    terms.append(table[node, compress(mask, node)])
                assert sums[label, stage, fixed] == pytest.approx(logsumexp(terms), abs=1e-12)


def linear_gaussian(d: int) -> gd.Dataset:
    drawn = gd.simulate.linear_gaussian(num_variables=d, num_rows=60, random_state=1)
    return gd.Dataset.from_frame(drawn.frame)


def test_a_short_training_comes_near_the_exact_posterior():
    data = linear_gaussian(4)
    estimator = gd.DAGGFlowNet(
        preset="canonical",
        iterations=300,
        batch_size=128,
        chain_steps=120,
        num_chains=16,
        num_weighted=2000,
        random_state=0,
    )
    posterior = estimator.fit(data).posterior_
    exact = gd.fit(data, method="exact")
    error = np.abs(np.asarray(posterior.edge_probabilities()) - np.asarray(exact.edge_probabilities())).max()
    # Without training it is 0.4; 2,000 graphs alone leave 0.03.
    assert error < 0.1
    assert posterior.log_evidence == pytest.approx(exact.log_evidence, abs=0.15)
    assert posterior.diagnostics()["preset"] == "canonical"


@pytest.mark.parametrize(
    ("d", "options", "preset"),
    [
        (5, {}, "fast"),
        (8, {}, "canonical"),
        (8, {"objective": "subtrajectory"}, "fast"),
        (8, {"draws": "balanced"}, "fast"),
        (8, {"required": True}, "fast"),
        (14, {"required": True}, "chains"),
        (21, {}, "chains"),
    ],
)
def test_the_preset_follows_the_size_and_what_is_asked(d, options, preset):
    data, settings = linear_gaussian(d), {name: options[name] for name in options if name != "required"}
    knowledge = gd.Knowledge(required=[(data.names[0], data.names[1])]) if "required" in options else None
    score = make_score(data, knowledge=knowledge)
    chosen = gd.DAGGFlowNet(**settings).for_score(score)
    assert chosen.preset == preset
    assert gd.DAGGFlowNet(preset="paper").for_score(score).preset == "paper"


def test_what_the_canonical_preset_cannot_do_is_refused_with_the_way_out():
    data = linear_gaussian(4)
    moment = {"preset": "canonical", "iterations": 1, "chain_steps": 6, "num_chains": 4}
    knowledge = gd.Knowledge(required=[(data.names[0], data.names[1])])
    with pytest.raises(GFlowDAGError, match="no required edges: set preset='chains'"):
        gd.DAGGFlowNet(**moment, knowledge=knowledge).fit(data)
    with pytest.raises(GFlowDAGError, match="balanced draws need edges in any order"):
        gd.DAGGFlowNet(**moment, draws="balanced").fit(data)
    with pytest.raises(GFlowDAGError, match="'canonical' maximises a likelihood: leave objective out"):
        gd.DAGGFlowNet(**moment, objective="trajectory").fit(data)
