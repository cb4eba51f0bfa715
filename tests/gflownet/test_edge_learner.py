import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_flows import posterior, problem

from gflowdag.data import Knowledge
from gflowdag.data.simulate import linear_gaussian
from gflowdag.errors import GFlowDAGError
from gflowdag.estimators.dag_gflownet import DAGGFlowNet
from gflowdag.gflownet.learners.edges import EdgeLearner, Tempering
from gflowdag.gflownet.trainer import Options, train
from gflowdag.graph.closure import is_acyclic
from gflowdag.posterior.metrics import jsd
from gflowdag_lab.measurements.policy_distribution import policy_distribution

QUICK = Tempering(rate=0.02)
KNOWLEDGE = Knowledge(required=[("X1", "X2")], forbidden=[("X3", "X2")], max_parents=2)


def divergence(p, q):
    with np.errstate(divide="ignore"):
        return jsd(np.log(p), np.log(q))


@pytest.mark.parametrize("objective", ["trajectory", "subtrajectory", "detailed"])
def test_every_objective_learns_the_posterior_of_three_variables(objective):
    with jax.enable_x64(True):
        score, space = problem(3)
        learner = EdgeLearner(space, batch_size=64, objective=objective, width=32, tempering=QUICK)
        trained = train(
            learner, jax.random.key(0), iterations=300, options=Options(learning_rate=5e-3, warmup=10)
        )
        graphs, probabilities, _ = posterior(score)
        learnt = policy_distribution(space, trained.params, graphs)
    # An untrained policy is at 0.02 to 0.1 nats; 300 short iterations leave an order less.
    assert divergence(learnt, probabilities) < 0.005


def test_four_variables_with_knowledge_are_learnt():
    with jax.enable_x64(True):
        score, space = problem(4, KNOWLEDGE)
        learner = EdgeLearner(space, batch_size=64, width=64, tempering=QUICK)
        trained = train(learner, jax.random.key(0), iterations=400, options=Options(learning_rate=3e-3))
        graphs, probabilities, _ = posterior(score)
        learnt = policy_distribution(space, trained.params, graphs)
    assert learnt[probabilities == 0].max() == 0
    assert divergence(learnt, probabilities) < 0.01


class Prejudiced(EdgeLearner):
    """Begins with a policy that prefers every other edge to X1 → X2."""

    def init(self, key):
        policy, _ = super().init(key)
        prejudice = jnp.zeros_like(policy.last.bias).at[2].set(-30.0)  # after stop and X1 → X1
        policy = eqx.tree_at(lambda policy: policy.last.bias, policy, policy.last.bias + prejudice)
        return policy, jnp.ones((), jnp.float32)  # the reward is the posterior's own


def test_training_graphs_lead_to_a_mode_that_the_policy_would_not_draw():
    with jax.enable_x64(True):
        score, space = problem(3)
        graphs, probabilities, _ = posterior(score)
        seen = {}
        for name, training in (("alone", None), ("retraced", jnp.asarray(graphs))):
            learner = Prejudiced(space, training_graphs=training, batch_size=64, width=32, exploration=0.0)
            trained = train(
                learner, jax.random.key(0), iterations=600, options=Options(learning_rate=1e-2, warmup=10)
            )
            learnt = policy_distribution(space, trained.params, graphs)
            seen[name] = learnt[graphs[:, 0, 1]].sum()
    assert seen["alone"] < 0.1  # it takes the edge only where no other is legal
    # The training graphs are all graphs alike, not the posterior: the balance says how often to go there.
    assert seen["retraced"] == pytest.approx(probabilities[graphs[:, 0, 1]].sum(), abs=0.02)


def test_the_exponent_rises_only_while_the_policy_keeps_up():
    rule = Tempering(spread=2.0, rate=0.1)
    half = jnp.float32(0.5)
    close, far = jnp.linspace(-1.0, 1.0, 50), jnp.linspace(-9.0, 9.0, 50)
    assert float(rule.update(half, close)) > 0.5 > float(rule.update(half, far))
    assert float(rule.update(jnp.float32(0.99), close)) == 1.0


def test_estimator_is_reproducible_and_keeps_to_knowledge(tmp_path):
    frame = linear_gaussian(4, 60, random_state=1).frame
    settings = {
        "iterations": 60,
        "batch_size": 16,
        "knowledge": KNOWLEDGE,
        "num_samples": 200,
        "num_weighted": 1000,
        "num_held_out_graphs": 32,
        "random_state": 3,
    }
    first = DAGGFlowNet(**settings).fit(frame).posterior_
    second = DAGGFlowNet(**settings, folder=tmp_path).fit(frame).posterior_
    resumed = DAGGFlowNet(**settings, folder=tmp_path, resume=True).fit(frame).posterior_
    np.testing.assert_array_equal(first.samples, second.samples)
    np.testing.assert_array_equal(first.samples, resumed.samples)
    assert is_acyclic(first.samples).all()
    assert first.samples[:, 0, 1].all()
    assert not first.samples[:, 2, 1].any()
    assert first.samples.sum(axis=1).max() <= 2
    assert first.diagnosis.iterations == 60
    assert {"verdict", "explanation", "ess", "pareto_k", "raw_edge_probabilities"} <= set(first.diagnostics())
    assert 0.0 <= first.diagnosis.unseen_share <= 1.0


def test_estimator_refuses_what_it_does_not_know():
    frame = linear_gaussian(3, 30, random_state=1).frame
    with pytest.raises(GFlowDAGError, match="num_training_graphs must be 0 or more, got -5"):
        DAGGFlowNet(num_training_graphs=-5).fit(frame)
    with pytest.raises(GFlowDAGError, match="preset"):
        DAGGFlowNet(preset="slow").fit(frame)
    with pytest.raises(GFlowDAGError, match="draws"):
        DAGGFlowNet(draws="even").fit(frame)
    with pytest.raises(GFlowDAGError, match="objective"):
        DAGGFlowNet(objective="none").fit(frame)
    with pytest.raises(GFlowDAGError, match="detailed balance"):
        DAGGFlowNet(preset="paper", objective="trajectory").fit(frame)
    with pytest.raises(GFlowDAGError, match="likelihood"):
        DAGGFlowNet(preset="chains", objective="trajectory").fit(frame)
