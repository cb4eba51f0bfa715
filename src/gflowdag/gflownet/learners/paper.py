"""The `paper` learner: detailed balance on replayed transitions (paper, sec. 5.2).

A few environments run on from iteration to iteration; each takes one step, its transition goes into the
replay buffer unless it is a stop, and the loss is computed on a uniform batch from the buffer, with a target
network for the stop probability of the next state.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from optax.losses import huber_loss

from gflowdag.gflownet.policies.linear_transformer import LinearTransformer, Sizes
from gflowdag.gflownet.replay import Replay, draw_items, empty_replay, store
from gflowdag.gflownet.rollout import draw_action
from gflowdag.gflownet.spaces import Policy
from gflowdag.gflownet.spaces.edges import DAGState, EdgeSpace, Observation, uniform_policy
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

    @property
    def plans_ahead(self) -> bool:
        """Whether exploration follows the planned number of iterations."""
        return self.exploration_iterations is None

    def init(self, key: Array) -> tuple[LinearTransformer, Memory]:
        """A fresh network, and a replay buffer filled by random steps."""
        network_key, prefill_key = jax.random.split(key)
        policy = LinearTransformer(self.space.num_variables, sizes=self.sizes, key=network_key)
        start = self.space.start()
        count = self.num_environments
        environments = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), start)
        example = Transition(start.graph, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.float32))
        replay = empty_replay(example, self.capacity)
        memory = Memory(split(environments), replay._replace(items=split(replay.items)))

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
        residual = jax.vmap(lambda transition: residual_of(self.space, params, target, transition))(batch)
        edges_now = memory.environments.graph.num_edges.astype(jnp.float32).mean()
        loss = huber_loss(residual, delta=self.huber_delta).mean()
        return loss, (memory, {"exploration": exploration, "edges": edges_now})

    def exploration_length(self, planned: Any) -> Any:
        """Iterations in which the share of random actions falls to the least one."""
        return (planned + 1) // 2 if self.exploration_iterations is None else self.exploration_iterations

    def _exploration(self, moment: Moment) -> Array:
        """Share of random actions: it falls linearly from 1."""
        grown = jnp.minimum(moment.step.astype(jnp.float32) / self.exploration_length(moment.planned), 1.0)
        return 1.0 - (1.0 - self.min_exploration) * grown

    def _collect(self, policy: Policy, memory: Memory, key: Array, exploration: Array | float) -> Memory:
        """One step of every environment; its transition is stored unless it is a stop."""

        def one(state: DAGState, key: Array):
            observation = self.space.observe(state)
            explores, key = jax.random.split(key)
            explore = jax.random.uniform(explores, dtype=jnp.float32) < exploration
            chosen, random = policy(observation), uniform_policy(observation)
            action = draw_action(key, jnp.where(explore, random.log_forward, chosen.log_forward))
            stops = action == self.space.stop
            edge = jnp.where(stops, 0, action)
            transition = Transition(state.graph, edge, observation.deltas.reshape(-1)[edge])
            after = self.space.step(state, edge)
            after = jax.tree.map(lambda new, old: jnp.where(stops, old, new), after, self.space.start())
            return after, transition, ~stops

        keys = split(jax.random.split(key, self.num_environments))
        environments, transitions, keep = jax.vmap(one)(memory.environments, keys)
        return Memory(environments, store(memory.replay, transitions, keep))


def residual_of(space: EdgeSpace, policy: Policy, target: Policy, transition: Transition) -> Array:
    """Violation of the modified detailed-balance condition by one transition, in nats."""
    source, sink = jnp.divmod(transition.edge, space.num_variables)
    after = incremental.add_edge(transition.graph, source, sink)
    before = policy(_observation(space, transition.graph))
    then = jax.lax.stop_gradient(target(_observation(space, after)))
    log_forward, log_backward = before.log_forward[transition.edge], then.log_backward[transition.edge]
    log_stop, log_stop_then = before.log_forward[space.stop], then.log_forward[space.stop]
    return transition.delta + log_backward + log_stop - log_forward - log_stop_then


def _observation(space: EdgeSpace, graph: EdgeState) -> Observation:
    """What the paper's network looks at: the graph and the mask."""
    legal = space.legal_edges(graph)
    removable = graph.adjacency & ~space.required
    nothing = jnp.zeros(legal.shape, jnp.float32)
    return Observation(graph.adjacency, graph.ancestors, legal, removable, nothing, jnp.ones((), jnp.float32))
