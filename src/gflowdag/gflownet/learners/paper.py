"""The `paper` learner: detailed balance on replayed transitions (paper, sec. 5.2).

A few environments run on from iteration to iteration; each takes one step, its transition goes into the
replay buffer unless it is a stop, and the loss is computed on a uniform batch from the buffer, with a target
network for the stop probability of the next state.

Not in the paper: a network that sees the scores (`sees_scores`); a reward that is tempered up to the
posterior, so that the imbalance stays small all the time (`tempering`); further edges of each replayed graph,
which cost less than further graphs, since the network looks at the graph once (`edges_per_graph`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from optax.losses import huber_loss

from gflowdag.gflownet.learners.edges import Tempering
from gflowdag.gflownet.policies.linear_transformer import LinearTransformer, Sizes
from gflowdag.gflownet.replay import Replay, draw_items, empty_replay, store
from gflowdag.gflownet.rollout import draw_action
from gflowdag.gflownet.spaces import NEVER, Decision, Policy
from gflowdag.gflownet.spaces.edges import DAGState, EdgeSpace, Observation, tempered, uniform_policy
from gflowdag.gflownet.trainer import Moment
from gflowdag.graph import incremental
from gflowdag.graph.incremental import EdgeState
from gflowdag.runtime.devices import gathered, split


class Transition(NamedTuple):
    """An edge that was added to a graph."""

    graph: EdgeState  # before
    edge: Array  # int32 [], flat index
    delta: Array  # float32 [], change of the log score


class Memory(NamedTuple):
    """What the learner carries on besides its parameters."""

    environments: DAGState  # leaves [environments, …]
    replay: Replay
    exponent: Array | None = None  # float32 [], of a tempered reward


class PaperLearner(eqx.Module):
    """Off-policy learning as in the paper; see `trainer.Learner`."""

    space: EdgeSpace
    batch_size: int = eqx.field(static=True, default=32)
    num_environments: int = eqx.field(static=True, default=8)
    capacity: int = eqx.field(static=True, default=100_000)
    prefill: int = eqx.field(static=True, default=1000)  # random steps of each environment before training
    exploration_iterations: int | None = eqx.field(static=True, default=None)  # half of the planned ones
    min_exploration: float = eqx.field(static=True, default=0.1)
    huber_delta: float = eqx.field(static=True, default=1.0)
    sizes: Sizes = eqx.field(static=True, default=Sizes())
    sees_scores: bool = eqx.field(static=True, default=False)
    tempering: Tempering | None = eqx.field(static=True, default=None)
    edges_per_graph: int = eqx.field(static=True, default=1)

    @property
    def plans_ahead(self) -> bool:
        """Whether exploration follows the planned number of iterations."""
        return self.exploration_iterations is None

    def init(self, key: Array) -> tuple[LinearTransformer, Memory]:
        """A fresh network, and a replay buffer filled by random steps."""
        network_key, prefill_key = jax.random.split(key)
        policy = LinearTransformer(
            self.space.num_variables, sizes=self.sizes, sees_scores=self.sees_scores, key=network_key
        )
        start = self.space.start()
        count = self.num_environments
        environments = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), start)
        example = Transition(start.graph, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.float32))
        replay = empty_replay(example, self.capacity)
        exponent = None if self.tempering is None else self.tempering.start(self.space)
        memory = Memory(split(environments), replay._replace(items=split(replay.items)), exponent)

        def random_step(i: Array | int, memory: Memory) -> Memory:
            return self._collect(uniform_policy, memory, jax.random.fold_in(prefill_key, i), 0.0)

        return policy, jax.lax.fori_loop(0, self.prefill, random_step, memory)

    def loss(
        self,
        params: LinearTransformer,
        target: LinearTransformer,
        memory: Memory,
        key: Array,
        moment: Moment,
    ):
        """Modified detailed balance on a batch from the buffer, after one step of every environment."""
        collect_key, replay_key = jax.random.split(key)
        exploration = self._exploration(moment)
        memory = jax.lax.stop_gradient(self._collect(params, memory, collect_key, exploration))
        # Rows are fetched where they lie and only then shared out: the buffer itself is never gathered.
        batch = split(gathered(draw_items(memory.replay, replay_key, self.batch_size)))
        space = self._tempered(memory)
        if self.edges_per_graph == 1:
            residual = jax.vmap(lambda transition: residual_of(space, params, target, transition))(batch)
        else:
            keys = split(jax.random.split(jax.random.fold_in(replay_key, 0), self.batch_size))
            residual = jax.vmap(
                lambda key, transition: residuals_of(
                    space, params, target, key, transition, self.edges_per_graph - 1
                )
            )(keys, batch)
        edges_now = memory.environments.graph.num_edges.astype(jnp.float32).mean()
        loss = huber_loss(residual, delta=self.huber_delta).mean()
        metrics = {"exploration": exploration, "edges": edges_now}
        if self.tempering is not None:
            metrics["exponent"] = space.exponent
            risen = self.tempering.update(space.exponent, jax.lax.stop_gradient(residual).reshape(-1))
            memory = memory._replace(exponent=risen)
        return loss, (memory, metrics)

    def exploration_length(self, planned: Any) -> Any:
        """Iterations in which the share of random actions falls to the least one."""
        return (planned + 1) // 2 if self.exploration_iterations is None else self.exploration_iterations

    def _exploration(self, moment: Moment) -> Array:
        """Share of random actions: it falls linearly from 1."""
        grown = jnp.minimum(moment.step.astype(jnp.float32) / self.exploration_length(moment.planned), 1.0)
        return 1.0 - (1.0 - self.min_exploration) * grown

    def _tempered(self, memory: Memory) -> EdgeSpace:
        """The space with the reward as it is tempered now."""
        return self.space if memory.exponent is None else replace(self.space, exponent=memory.exponent)

    def _collect(self, policy: Policy, memory: Memory, key: Array, exploration: Array | float) -> Memory:
        """One step of every environment; its transition is stored unless it is a stop."""

        space = self._tempered(memory)

        def one(state: DAGState, key: Array):
            observation = space.observe(state)
            explores, key = jax.random.split(key)
            explore = jax.random.uniform(explores, dtype=jnp.float32) < exploration
            chosen, random = policy(observation), uniform_policy(observation)
            action = draw_action(key, jnp.where(explore, random.log_forward, chosen.log_forward))
            stops = action == self.space.stop
            edge = jnp.where(stops, 0, action)
            delta = self.space.observe(state).deltas.reshape(-1)[edge]
            transition = Transition(state.graph, edge, delta)
            after = self.space.step(state, edge)
            after = jax.tree.map(lambda new, old: jnp.where(stops, old, new), after, self.space.start())
            return after, transition, ~stops

        keys = split(jax.random.split(key, self.num_environments))
        environments, transitions, keep = jax.vmap(one)(memory.environments, keys)
        return memory._replace(environments=environments, replay=store(memory.replay, transitions, keep))


def residual_of(space: EdgeSpace, policy: Policy, target: Policy, transition: Transition) -> Array:
    """Violation of the modified detailed-balance condition by one transition, in nats."""
    before = policy(_observation(space, transition.graph))
    return _residual(space, before, target, transition)


def residuals_of(
    space: EdgeSpace, policy: Policy, target: Policy, key: Array, transition: Transition, others: int
) -> Array:
    """The same for a transition and for `others` further edges of its graph, float32 [1 + others].

    Half of them are drawn evenly from the legal ones, half as the policy would.
    """
    before = policy(_observation(space, transition.graph))
    legal = space.legal_edges(transition.graph).reshape(-1)
    log_policy = jax.nn.log_softmax(jnp.where(legal, jax.lax.stop_gradient(before.log_forward[:-1]), NEVER))
    log_even = jnp.where(legal, -jnp.log(legal.sum().astype(jnp.float32)), NEVER)
    edges = jax.random.categorical(key, jnp.logaddexp(log_policy, log_even), shape=(others,)).astype(
        jnp.int32
    )
    deltas = space.deltas.all(space.deltas.init(transition.graph.adjacency)).reshape(-1)[edges]
    further = jax.vmap(
        lambda edge, delta: _residual(space, before, target, Transition(transition.graph, edge, delta))
    )(edges, deltas.astype(jnp.float32))
    return jnp.append(_residual(space, before, target, transition), further)


def _residual(space: EdgeSpace, before: Decision, target: Policy, transition: Transition) -> Array:
    """From what the policy decides before."""
    source, sink = jnp.divmod(transition.edge, space.num_variables)
    after = incremental.add_edge(transition.graph, source, sink)
    then = jax.lax.stop_gradient(target(_observation(space, after)))
    log_forward, log_backward = before.log_forward[transition.edge], then.log_backward[transition.edge]
    log_stop, log_stop_then = before.log_forward[space.stop], then.log_forward[space.stop]
    delta = tempered(space.num_variables, transition.delta, 1, space.exponent)
    return delta + log_backward + log_stop - log_forward - log_stop_then


def _observation(space: EdgeSpace, graph: EdgeState) -> Observation:
    """What a network sees of a graph; what it does not look at is not computed."""
    return space.observe(DAGState(graph, space.deltas.init(graph.adjacency), jnp.zeros((), jnp.float64)))
