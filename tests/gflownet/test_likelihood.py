from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_flows import exact_policy, posterior, problem

from gflowdag.data import Knowledge
from gflowdag.data.simulate import linear_gaussian
from gflowdag.estimators.dag_gflownet import DAGGFlowNet
from gflowdag.estimators.exact import ExactPosterior
from gflowdag.gflownet.learners.likelihood import LikelihoodLearner, step_surprise
from gflowdag.gflownet.policies.pairs import PairPolicy
from gflowdag.gflownet.trainer import Options, train
from gflowdag.posterior.metrics import jsd
from gflowdag_lab.measurements.policy_distribution import policy_distribution


def test_single_states_bound_the_likelihood_as_whole_trajectories_do():
    with jax.enable_x64(True):
        score, space = problem(3, Knowledge(required=[("X1", "X3")]))
        graphs, probabilities, log_evidence = posterior(score)
        graph = jnp.asarray(graphs[np.argmax(probabilities * graphs.sum(axis=(1, 2)))])
        keys = jax.random.split(jax.random.key(0), 20_000)
        policy = exact_policy(score)
        surprise, added = jax.jit(jax.vmap(lambda key: step_surprise(space, policy, key, graph)))(keys)
    steps = int(added[0]) + 1
    assert steps == int(graph.sum())  # one edge is there from the start, and the stop is one more step
    # Under the exact flows every trajectory to a graph has the probability P(G) / (number of orders).
    log_orders = np.log(np.arange(1, steps)).sum()
    expected = log_orders + log_evidence - score.log_score(np.asarray(graph)[None])[0]
    error = steps * float(surprise.std()) / np.sqrt(len(keys))
    assert abs(steps * float(surprise.mean()) - expected) < 4 * error + 1e-4  # standard errors, and float32


def test_the_posterior_is_learnt_from_its_graphs():
    with jax.enable_x64(True):
        score, space = problem(4)
        graphs, probabilities, log_evidence = posterior(score)
        rows = np.random.default_rng(0).choice(len(graphs), 20_000, p=probabilities)
        learner = LikelihoodLearner(
            space,
            jnp.asarray(graphs[rows]),
            jnp.asarray(score.log_score(graphs[rows])),
            partial(PairPolicy, 4, width=64, backward="uniform"),
            256,
        )
        trained = train(learner, jax.random.key(0), iterations=600, options=Options(learning_rate=3e-3))
        learnt = policy_distribution(space, trained.params, graphs)
    with np.errstate(divide="ignore"):
        divergence = jsd(np.log(learnt), np.log(probabilities))
    assert divergence < 0.01  # an untrained policy is at 0.1
    # `above` is the evidence plus a Kullback–Leibler divergence that is nearly zero, here within its noise.
    assert abs(trained.history[-1]["above"] - log_evidence) < 0.5


@pytest.mark.long
def test_the_estimator_learns_from_chains():
    frame = linear_gaussian(3, 60, random_state=1).frame
    settings = {"iterations": 300, "batch_size": 256, "num_weighted": 2000, "random_state": 0}
    learnt = DAGGFlowNet(preset="chains", chain_steps=150, num_chains=32, **settings).fit(frame).posterior_
    exact = ExactPosterior().fit(frame).posterior_
    assert learnt.diagnosis.ess > 0.9
    assert learnt.diagnosis.unseen_share < 0.05
    # 2000 weights of a policy close to the posterior
    np.testing.assert_allclose(learnt.log_evidence, exact.log_evidence, atol=0.1)
    difference = learnt.edge_probabilities() - exact.edge_probabilities()
    assert abs(difference.to_numpy()).max() < 0.06  # four standard errors of 2000 samples, and half again
