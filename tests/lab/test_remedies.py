"""Taking a remedy away takes away that remedy and nothing else."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from gflowdag.gflownet.learners.edges import EdgeLearner
from gflowdag.runtime.precision import double_precision
from gflowdag.score import Score
from gflowdag_lab.model import paper_score
from gflowdag_lab.paper.problems import linear_gaussian
from gflowdag_lab.paper.remedies import BlindLearner, PartlyRemedied


@double_precision
def _learner(score: Score, *, schedule: bool, reparametrised: bool):
    estimator = PartlyRemedied(temperature_schedule=schedule, reparametrised=reparametrised)
    return estimator.make_learner(score, estimator.training_preset(score.num_variables), seed=0)


def _score() -> Score:
    return paper_score(linear_gaussian(3, 10_000, 0, standardize=True, edges_per_node=1.0).data)


@double_precision
def test_without_a_schedule_the_reward_is_never_tempered() -> None:
    learner = _learner(_score(), schedule=False, reparametrised=True)
    exponent = learner.tempering.start(learner.space)
    assert exponent == 1
    far_off = jnp.array([-1e4, 0.0, 1e4], jnp.float32)
    assert learner.tempering.update(exponent, far_off) == 1
    with_schedule = _learner(_score(), schedule=True, reparametrised=True)
    assert with_schedule.tempering.start(with_schedule.space) < 0.1  # one edge gains thousands of nats


@double_precision
def test_a_policy_that_is_not_reparametrised_does_not_see_the_scores() -> None:
    learner = _learner(_score(), schedule=True, reparametrised=False)
    assert isinstance(learner, BlindLearner)
    policy, _ = learner.init(jax.random.key(0))
    seeing, _ = EdgeLearner(learner.space, width=learner.width).init(jax.random.key(0))
    empty = learner.space.observe(learner.space.start())
    answers = []
    for gain in (0.0, 50.0):
        observation = empty._replace(deltas=jnp.zeros((3, 3), jnp.float32).at[0, 1].set(gain))
        answers.append((policy(observation).log_forward, seeing(observation).log_forward))
    np.testing.assert_array_equal(answers[0][0], answers[1][0])
    np.testing.assert_array_equal(answers[0][0], answers[0][1])  # the same network, where nothing is to see
    assert answers[1][1][1] > answers[0][1][1] + 0.5  # the edge from the first node to the second
