import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_flows import problem
from scipy import stats

from gflowdag.gflownet.learners.paper import PaperLearner
from gflowdag.gflownet.policies.linear_transformer import LinearTransformer, Sizes
from gflowdag.gflownet.spaces.edges import Observation
from gflowdag.gflownet.trainer import Options, train
from gflowdag.graph.incremental import from_adjacency, legal_edges

SMALL = Sizes(embedding=8, heads=2, head_size=4, hidden=16, shared_blocks=1, head_blocks=1)


def test_renaming_the_nodes_renames_the_policy():
    d = 4
    rng = np.random.default_rng(0)
    policy = eqx.filter_jit(LinearTransformer)(d, sizes=SMALL, key=jax.random.key(0))
    graph = np.triu(rng.random((d, d)) < 0.5, 1)
    order = rng.permutation(d)
    renamed_policy = eqx.tree_at(
        lambda p: (p.sources, p.targets), policy, (policy.sources[order], policy.targets[order])
    )

    @eqx.filter_jit
    def ask(policy, graph):
        state = from_adjacency(graph)
        legal = legal_edges(state)
        nothing = jnp.zeros((d, d))
        return policy(
            Observation(state.adjacency, state.ancestors, legal, state.adjacency, nothing, jnp.ones(()))
        )

    *log_edges, log_stop = np.asarray(ask(policy, jnp.asarray(graph)).log_forward)
    renamed_graph = jnp.asarray(graph[np.ix_(order, order)])
    *renamed_edges, renamed_stop = np.asarray(ask(renamed_policy, renamed_graph).log_forward)
    np.testing.assert_allclose(renamed_stop, log_stop, rtol=1e-4)  # float32 sums in another order
    expected = np.reshape(log_edges, (d, d))[np.ix_(order, order)]
    np.testing.assert_allclose(np.reshape(renamed_edges, (d, d)), expected, rtol=1e-4)


def test_the_network_has_the_size_of_the_official_one():
    policy = eqx.filter_eval_shape(lambda key: LinearTransformer(5, key=key), jax.random.key(0))
    count = sum(np.prod(leaf.shape) for leaf in jax.tree.leaves(policy) if hasattr(leaf, "shape"))
    assert 4.5e6 < count < 5.5e6  # 5.04 million there


def test_the_recipe_of_the_paper_lowers_the_imbalance():
    with jax.enable_x64(True):
        _, space = problem(3)
        learner = PaperLearner(
            space,
            batch_size=16,
            num_environments=4,
            capacity=500,
            prefill=20,
            exploration_iterations=200,
            sizes=SMALL,
        )
        options = Options(learning_rate=2e-3, warmup=1, target_period=20, cooldown=0.0, chunk_seconds=0.2)
        history = train(learner, jax.random.key(0), iterations=400, options=options).history
    assert history[-1]["loss"] < 0.5 * history[0]["loss"]
    assert history[0]["exploration"] > 0.9 > 0.2 > history[-1]["exploration"]


def test_initial_weights_are_those_of_the_official_implementation():
    """Variance 0.4 / n in the blocks; in the heads normal with deviation 1 / √n, cut off at two of them."""
    policy = LinearTransformer(5, key=jax.random.key(0))

    def deviation(layer) -> float:
        return float(layer.weight.std()) * layer.in_features**0.5

    cut_off = stats.truncnorm(-2, 2).std()
    for head in (policy.stop_head, policy.edge_head):
        for layer in head[:2]:  # at least 32,768 weights: their deviation is known to half a percent
            assert deviation(layer) == pytest.approx(cut_off, rel=0.02)
    for block in (*policy.trunk, *policy.stop_blocks, *policy.edge_blocks):
        for layer in (block.project, block.join, block.widen, block.narrow):
            assert deviation(layer) == pytest.approx(0.4**0.5, rel=0.02)
