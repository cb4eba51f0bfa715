import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_flows import code, problem

from gflowdag.gflownet.balanced import balanced, balanced_dags, similar_first
from gflowdag.gflownet.policies.pairs import PairPolicy
from gflowdag.gflownet.sampling import sample
from gflowdag.graph.enumeration import all_dags
from gflowdag.graph.incremental import from_adjacency
from gflowdag_lab.measurements.policy_distribution import policy_distribution

REPETITIONS, SIZE = 20, 500


@pytest.fixture(scope="module")
def draws():
    """The law of an untrained policy on four nodes, and repeated draws of either kind."""
    with jax.enable_x64(True):
        _, space = problem(4, num_rows=8)
        policy = PairPolicy(4, width=8, key=jax.random.key(1))
        graphs = all_dags(4)
        keys = [jax.random.key(i) for i in range(REPETITIONS)]
        return (
            graphs,
            policy_distribution(space, policy, graphs),
            np.stack([sample(space, policy, key, SIZE, batch=SIZE).built for key in keys]),
            np.stack([balanced_dags(space, policy, key, SIZE).built for key in keys]),
        )


def test_every_graph_is_as_likely_in_balanced_draws_as_under_the_policy(draws):
    graphs, expected, _, balanced_graphs = draws
    counts = dict.fromkeys(map(code, graphs), 0)
    for graph in balanced_graphs.reshape(-1, 4, 4):
        counts[code(graph)] += 1
    total = REPETITIONS * SIZE
    # Five standard errors of independent draws, more than those of balanced ones; and two more for the rare.
    found = np.array(list(counts.values())) / total
    assert (np.abs(found - expected) < 5 * np.sqrt(expected / total) + 2 / total).all()


def test_edge_frequencies_vary_less_in_balanced_draws(draws):
    graphs, expected, *both = draws
    exact = np.tensordot(expected, graphs, axes=1)
    independent, even = [((drawn.mean(axis=1) - exact) ** 2).mean() for drawn in both]
    # Measured: 14 times less with 200 graphs, 37 with 1000. The mean of 20 × 12 squares is good to a tenth.
    assert even < independent / 10


def test_the_first_of_the_balanced_draws_are_no_special_ones(draws):
    graphs, expected, _, even = draws
    mean_edges = float(expected @ graphs.sum(axis=(1, 2)))
    first = even[:, : SIZE // 10].sum(axis=(2, 3))
    # Sorted by graph, their first tenth would be the sparse ones. Five standard errors.
    assert abs(first.mean() - mean_edges) < 5 * first.std() / np.sqrt(first.size)


def test_equal_graphs_share_an_action_out_to_within_one():
    with jax.enable_x64(True):
        probabilities = np.array([0.1, 0.0, 0.25, 0.0, 0.65])
        equal = from_adjacency(jnp.zeros((2, 2), bool))
        graphs = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (100, *leaf.shape)), equal)
        log_probabilities = jnp.log(jnp.broadcast_to(jnp.maximum(probabilities, 1e-300), (100, 5)))
        for seed in range(10):
            action = balanced(jax.random.key(seed), log_probabilities, graphs, jnp.zeros(100, bool))
            counts = np.bincount(action, minlength=5)
            # The golden sequence keeps within (1 + log₂ n / 2) of every interval's share; binomial: up to 15.
            assert (np.abs(counts - 100 * probabilities) < 1 + np.log2(100) / 2).all()


def test_equal_graphs_are_neighbours_in_the_order_of_similarity():
    with jax.enable_x64(True):
        graphs = all_dags(3)[np.random.default_rng(0).integers(25, size=200)]
        order = np.asarray(similar_first(jax.vmap(from_adjacency)(jnp.asarray(graphs))))
        changes = (graphs[order][1:] != graphs[order][:-1]).any(axis=(1, 2)).sum()
    assert changes == len(np.unique(graphs, axis=0)) - 1
