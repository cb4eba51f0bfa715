"""The preset `retuned`: the paper's method with a network that sees the scores and a tempered reward."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import softmax

import gflowdag as gd
from gflowdag.errors import GFlowDAGError
from gflowdag.estimators.paper_recipe import RETUNED
from gflowdag.gflownet.learners.paper import Transition, residual_of
from gflowdag.gflownet.policies.linear_transformer import LinearTransformer, Sizes
from gflowdag.gflownet.policies.pairs import independent_pairs
from gflowdag.gflownet.spaces.edges import edge_space, tempered
from gflowdag.gflownet.trainer import train
from gflowdag.graph import all_dags
from gflowdag.runtime.precision import double_precision
from gflowdag.score import make_score
from gflowdag_lab.measurements.policy_distribution import policy_distribution

SMALL = Sizes(embedding=4, heads=1, head_size=4, hidden=8, shared_blocks=1, head_blocks=0)


def score(num_variables: int = 4):
    drawn = gd.simulate.linear_gaussian(num_variables=num_variables, num_rows=50, random_state=1)
    return make_score(gd.Dataset.from_frame(drawn.frame), prior="uniform")


@double_precision
def test_a_network_that_sees_the_scores_begins_near_independent_pairs():
    space = edge_space(score())
    observation = space.observe(space.start())
    policy = LinearTransformer(4, sizes=SMALL, sees_scores=True, key=jax.random.key(0))
    stop_logit, _ = independent_pairs(observation)
    log_stop = policy(observation).log_forward[space.stop]
    # The last layer starts at a hundredth of its usual weights.
    assert float(log_stop) == pytest.approx(float(jax.nn.log_sigmoid(stop_logit)), rel=0.05)


@double_precision
def test_the_balance_of_a_tempered_reward_is_that_of_the_reward_that_policies_see():
    """With one more nat of tempered gain the imbalance is one nat more."""
    space = replace(edge_space(score()), exponent=jnp.float32(0.25))
    policy = LinearTransformer(4, sizes=SMALL, key=jax.random.key(0))
    start = space.start().graph

    def imbalance(delta):
        return residual_of(space, policy, policy, Transition(start, jnp.int32(1), jnp.float32(delta)))

    difference = float(imbalance(8.0) - imbalance(0.0))
    assert difference == pytest.approx(0.25 * 8.0, rel=1e-4)
    assert float(tempered(4, 0.0, 1, jnp.float32(0.25))) < 0  # edges cost something in the easy target


@double_precision
def test_the_reward_rises_to_the_posterior_only_where_it_is_tempered():
    space = edge_space(score())
    small = replace(RETUNED, embedding=4, num_heads=1, head_size=4, hidden=8, prefill=5, replay_capacity=100)
    _, memory = small.learner(space, batch_size=4).init(jax.random.key(0))
    assert memory.exponent is not None
    assert 0 < float(memory.exponent) < 1
    plain = replace(small, tempering_spread=None).learner(space, batch_size=4)
    assert plain.init(jax.random.key(0))[1].exponent is None


def test_the_constants_are_in_one_place_and_belong_to_their_preset():
    preset = gd.DAGGFlowNet(preset="retuned").training_preset(5)
    assert preset.batch_size == RETUNED.batch_size
    assert preset.options == RETUNED.options()
    with pytest.raises(GFlowDAGError, match="for the preset 'paper', not for 'retuned'"):
        gd.DAGGFlowNet(preset="retuned", recipe=RETUNED).training_preset(5)
    with pytest.raises(GFlowDAGError, match="'retuned' is trained by detailed balance"):
        gd.DAGGFlowNet(preset="retuned", objective="trajectory").make_learner(score(), preset, 0)


@pytest.mark.long
@double_precision
def test_the_recipe_learns_four_variables():
    problem = score()
    preset = gd.DAGGFlowNet(preset="retuned").training_preset(4)
    learner = RETUNED.learner(edge_space(problem), batch_size=preset.batch_size)
    trained = train(learner, jax.random.key(0), iterations=1000, options=preset.options)
    graphs = all_dags(4)
    learnt = policy_distribution(learner.space, trained.params, graphs)
    exact = softmax(problem.log_score(graphs))
    edges, truth = (np.tensordot(weights, graphs, axes=1) for weights in (learnt, exact))
    assert np.abs(edges - truth).max() < 0.05  # half of the preset's own iterations


@pytest.mark.long
def test_many_discrete_columns_are_scored_on_demand():
    """Beyond the variables that a table of all parent sets can hold."""
    rng = np.random.default_rng(0)
    data = gd.Dataset.from_array(rng.integers(0, 2, size=(60, 22)))
    options = {"num_weighted": 8, "num_samples": 8, "num_training_graphs": 0, "num_held_out_graphs": 0}
    training = {"iterations": 2, "batch_size": 4, "random_state": 0}
    estimator = gd.DAGGFlowNet(score="bde", **training, **options)
    posterior = estimator.fit(data).posterior_
    fresh = make_score(data, score="bde", prior=estimator.structure_prior).log_score(posterior.samples)
    assert posterior.log_scores == pytest.approx(fresh)
