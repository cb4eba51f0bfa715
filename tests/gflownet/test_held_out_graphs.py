import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_flows import exact_policy, posterior, problem

from gflowdag.data import Knowledge
from gflowdag.estimators.dag_gflownet import weighted_posterior
from gflowdag.estimators.held_out import held_out_log_weights, unseen_share
from gflowdag.gflownet.objectives import evidence_estimates
from gflowdag.gflownet.retrace import walk_back, weigh
from gflowdag.gflownet.rollout import steps_of
from gflowdag.gflownet.sampling import sample


@pytest.mark.parametrize("knowledge", [None, Knowledge(required=[("X2", "X3")])])
def test_every_way_back_from_every_graph_weighs_the_evidence_under_the_exact_flows(knowledge):
    with jax.enable_x64(True):
        score, space = problem(3, knowledge)
        graphs, probabilities, log_evidence = posterior(score)
        graphs = graphs[probabilities > 0]
        weighed = weigh(space, exact_policy(score), jax.random.key(0), jnp.asarray(graphs))
    start = score.log_score(score.constraints.required[None])[0]
    np.testing.assert_allclose(start + weighed.log_reward, score.log_score(graphs), atol=1e-9)
    # float32 log probabilities of up to a hundred nats
    np.testing.assert_allclose(start + weighed.log_weights, log_evidence, atol=1e-4)


@pytest.mark.parametrize("knowledge", [None, Knowledge(required=[("X2", "X3")])])
def test_a_recorded_way_back_leads_to_the_graph_and_balances_under_the_exact_flows(knowledge):
    with jax.enable_x64(True):
        score, space = problem(3, knowledge)
        graphs, probabilities, log_evidence = posterior(score)
        graphs = graphs[probabilities > 0]
        policy = exact_policy(score)

        @eqx.filter_jit
        def retrace(policy, graphs):
            walked = walk_back(space, policy, jax.random.key(0), graphs)
            steps = steps_of(policy, walked)
            log_forward = jnp.where(walked.last, 0.0, steps.log_forward)
            log_flow = walked.log_reward + steps.log_flow
            return walked, evidence_estimates(log_flow, log_forward, steps.log_backward)

        walked, estimates = retrace(policy, jnp.asarray(graphs))
    stopped, added = np.asarray(walked.last), graphs.sum(axis=(1, 2)) - score.constraints.required.sum()
    np.testing.assert_array_equal(stopped.argmax(axis=0), added)
    np.testing.assert_array_equal(np.asarray(walked.active).sum(axis=0), added + 1)
    last = np.asarray(walked.observation.adjacency)[added, np.arange(len(graphs))]
    np.testing.assert_array_equal(last, graphs)
    start = score.log_score(score.constraints.required[None])[0]
    found = np.asarray(estimates)[np.asarray(walked.active)] + start
    # Every state on the way gives the evidence; float32 log probabilities of up to a hundred nats.
    np.testing.assert_allclose(found, log_evidence, atol=1e-4)


def test_weights_miss_a_forgotten_mode_and_held_out_graphs_show_it():
    without_edge = Knowledge(forbidden=[("X1", "X2")])
    with jax.enable_x64(True):
        score, space = problem(3)
        collapsed = exact_policy(problem(3, without_edge)[0])  # right, but for one edge that it never adds
        samples = sample(space, collapsed, jax.random.key(0), 4000)
        held_out = held_out_log_weights(score, 0, 256, space, collapsed)
    graphs, probabilities, log_evidence = posterior(score)
    forgotten = probabilities[graphs[:, 0, 1]].sum()

    alone = weighted_posterior(score, samples, 1000, np.zeros(0))
    assert alone.diagnosis.verdict == "trusted"
    assert alone.diagnosis.ess > 0.999
    assert log_evidence - alone.log_evidence > 0.1

    tested = weighted_posterior(score, samples, 1000, held_out)
    assert tested.diagnosis.verdict == "not converged"
    # four standard errors of a share in 256 graphs, which the chains do not draw independently
    assert abs(tested.diagnosis.unseen_share - forgotten) < 0.15


def test_held_out_graphs_find_nothing_against_the_exact_flows():
    with jax.enable_x64(True):
        score, space = problem(3)
        samples = sample(space, exact_policy(score), jax.random.key(0), 2000)
        held_out = held_out_log_weights(score, 0, 256, space, exact_policy(score))
    assert weighted_posterior(score, samples, 1000, held_out).diagnosis.unseen_share == 0.0


def test_a_held_out_graph_counts_only_beyond_the_largest_of_the_own_weights():
    own = np.array([0.0, 1.0, -3.0])
    assert unseen_share(own, np.array([-50.0, 0.0, 1.9, 2.1])) == 0.25
