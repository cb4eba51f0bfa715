import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_flows import posterior, problem

from gflowdag.data import Knowledge
from gflowdag.errors import TooLargeError
from gflowdag.gflownet.rollout import draw_action
from gflowdag.gflownet.spaces import NEVER, edges
from gflowdag.gflownet.spaces.edges import DAGState
from gflowdag.graph.closure import is_acyclic
from gflowdag.graph.incremental import from_adjacency


def test_the_mask_is_exactly_what_can_be_added():
    knowledge = Knowledge(required=[("X1", "X2")], forbidden=[("X4", "X1")], max_parents=2)
    with jax.enable_x64(True):
        score, space = problem(4, knowledge)
        graphs, probabilities, _ = posterior(score)
        allowed = graphs[probabilities > 0][::7]
        mask = np.asarray(jax.vmap(lambda g: space.legal_edges(from_adjacency(g)))(jnp.asarray(allowed)))
    for graph, legal in zip(allowed, mask, strict=True):
        for source in range(4):
            for target in range(4):
                child = graph.copy()
                child[source, target] = True
                expected = (
                    not graph[source, target]
                    and is_acyclic(child)
                    and score.log_score(child[None])[0] > -np.inf
                )
                assert legal[source, target] == expected


def test_deltas_add_up_to_the_score():
    with jax.enable_x64(True):
        score, space = problem(4)
        state = space.start()
        for edge in (1, 7, 3):  # 0 → 1, 1 → 3, 0 → 3
            state = space.step(state, jnp.asarray(edge))
        graph, gain = np.asarray(state.graph.adjacency), float(state.gain)
    empty = np.zeros((1, 4, 4), bool)
    # float64 sums of a few terms of a hundred nats
    np.testing.assert_allclose(gain, score.log_score(graph[None])[0] - score.log_score(empty)[0], atol=1e-9)


def test_exponent_one_is_the_posterior_itself():
    with jax.enable_x64(True):
        _, space = problem(4)
        state = space.start()
        observation = space.observe(state)
        expected = np.where(observation.legal, space.deltas.all(state.scores), 0.0)
        np.testing.assert_allclose(observation.deltas, expected, rtol=1e-6)  # float32


def test_actions_follow_the_policy_and_never_the_impossible():
    log_forward = jnp.array([NEVER, jnp.log(0.75), NEVER, NEVER, jnp.log(0.25)], jnp.float32)
    keys = jax.random.split(jax.random.key(0), 4000)
    drawn = np.asarray(jax.vmap(lambda key: draw_action(key, log_forward))(keys))
    assert set(drawn) == {1, 4}
    assert abs((drawn == 4).mean() - 0.25) < 0.03  # four standard errors of 4000 draws


def test_memory_is_refused_before_it_is_needed():
    assert edges.check_memory(5, 128) == 11 * 128 * 25 * 8
    with pytest.raises(TooLargeError, match="batch_size of at most"):
        edges.check_memory(50, 4096)


def test_the_start_state_holds_the_required_edges():
    with jax.enable_x64(True):
        _, space = problem(3, Knowledge(required=[("X3", "X1")]))
        state: DAGState = space.start()
        assert np.argwhere(state.graph.adjacency).tolist() == [[2, 0]]
        after = space.observe(space.step(state, jnp.asarray(7)))
        removals = np.exp(edges.uniform_removals(after.removable))
        assert removals[2, 1] == 1.0  # the only edge that can be taken back
        assert removals.sum() == 1.0
