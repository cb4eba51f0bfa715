"""The state space of canonical orders without any table: what is known is how likely each edge is.

Nodes are numbered by their labels, so that a canonical order always places the smallest node whose parents
are all placed. What an order weighs takes sums over all parent sets (`orders.all_sums`), which are taken
where orders are finished: inside a trajectory every order has the log reward 0.

In place of weights a state has the log-odds of each node to be *ready*, its parents among the placed nodes,
given what the order says about it so far: a node that was passed over has a parent in its window (the nodes
since the last one with a larger label, that one included). With edges `i → j` of probability `p_ij`,
independent of each other,

    log-odds = log c_j − log(1 − c_j) + log f_j,    c_j = Π_{i not placed} (1 − p_ij),

and `f_j = 1 − Π_{i in the window} (1 − p_ij)`, or 1 where nothing larger was placed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from gflowdag.gflownet.spaces.orders import legal_nodes

_LEAST, _LARGEST = 1e-3, 0.98  # probabilities of edges are taken to be between these
_SURE = 1e-4  # least log-probability, in absolute value, that all parents are placed


class LabelOrder(NamedTuple):
    """A partially built order."""

    time: Array  # int32 [d], when each node was placed; d for those that are not
    covered: Array  # float32 [d], −log probability that no node of the window is a parent
    answered: Array  # bool [d], some node of the window may be a parent
    free: Array  # bool [d], no larger label was placed: nothing is asked

    @property
    def placed(self) -> Array:
        """bool [d]."""
        return self.time < self.time.shape[0]


class LabelOrderView(NamedTuple):
    """What a policy sees of a state."""

    placed: Array  # bool [d]
    legal: Array  # bool [d]
    log_odds: Array  # float32 [d], to be ready, by independent edges
    log_covered: Array  # float32 [d], log probability of a parent in the window
    latest: Array  # int32 [], the node that was placed last; −1 in the empty order


class LabelOrderSpace(NamedTuple):
    """What is known of the edges; arrays, so that it can be traced. See `spaces.StateSpace`."""

    absent: Any  # float32 [d, d], −log probability that there is no such edge; rows are sources
    possible: Any  # bool [d, d], edges that are not forbidden
    required: Any  # bool [d, d]

    @property
    def num_variables(self) -> int:
        """Number of nodes, `d`."""
        return self.possible.shape[0]

    @property
    def max_steps(self) -> int:
        """Every node is placed once."""
        return self.num_variables

    @property
    def stop(self) -> None:
        """An order ends with its last node."""

    def start(self) -> LabelOrder:
        """The empty order."""
        d = self.num_variables
        everywhere = jnp.ones(d, bool)
        return LabelOrder(jnp.full(d, d, jnp.int32), jnp.zeros(d, jnp.float32), ~everywhere, everywhere)

    def state_of(self, built: Array) -> LabelOrder:
        """A complete order, int32 [d]."""
        return self._first(built, self.num_variables)

    def built(self, state: LabelOrder) -> Array:
        """The order, int32 [d]."""
        return jnp.argsort(state.time).astype(jnp.int32)

    def size(self, state: LabelOrder) -> Array:
        """Number of nodes that are placed."""
        return state.placed.sum(dtype=jnp.int32)

    def observe(self, state: LabelOrder) -> LabelOrderView:
        """The placed nodes, and how likely the others are ready."""
        size, placed = self.size(state), state.placed
        latest = jnp.where(size == 0, -1, jnp.argmax(state.time == size - 1))
        missing = (~placed).astype(jnp.float32) @ jnp.asarray(self.absent) + _SURE
        log_covered = _log_some(jnp.where(state.free, jnp.inf, state.covered))
        log_odds = log_covered - missing - _log_some(missing)
        return LabelOrderView(placed, self.legal(state), log_odds, log_covered, latest.astype(jnp.int32))

    def legal(self, state: LabelOrder) -> Array:
        """Nodes with their required parents placed and a possible one in the window; else all the rest."""
        complete = (jnp.asarray(self.required) <= state.placed[:, None]).all(axis=0)
        is_legal = ~state.placed & complete & (state.free | state.answered)
        return legal_nodes(jnp.where(is_legal, 0.0, -jnp.inf), state.placed)

    def step(self, state: LabelOrder, action: Array) -> LabelOrder:
        """Append a node, in O(d): the windows of smaller nodes begin with it."""
        passed_over = jnp.arange(self.num_variables) < action
        covered, possible = jnp.asarray(self.absent)[action], jnp.asarray(self.possible)[action]
        return LabelOrder(
            state.time.at[action].set(self.size(state)),
            covered + jnp.where(passed_over, 0.0, state.covered),
            possible | (~passed_over & state.answered),
            state.free & ~passed_over,
        )

    def undo(self, state: LabelOrder, action: Array) -> LabelOrder:
        """Take back the last node, in O(d²): the others are placed again."""
        del action
        return self._first(self.built(state), self.size(state) - 1)

    def log_reward(self, state: LabelOrder) -> Array:
        """Not known here: 0."""
        return jnp.zeros((), jnp.float64)

    def _first(self, sequence: Array, number: Array | int) -> LabelOrder:
        """The first nodes of a sequence placed."""
        return jax.lax.fori_loop(
            0, number, lambda time, state: self.step(state, sequence[time]), self.start()
        )


def label_order_space(
    edges: NDArray[np.float64], required: NDArray[np.bool_], forbidden: NDArray[np.bool_]
) -> LabelOrderSpace:
    """The space of edges with such probabilities; all [d, d], numbered by label, rows are sources."""
    absent = -np.log1p(-np.clip(edges, _LEAST, _LARGEST)) * ~np.eye(len(edges), dtype=bool)
    return LabelOrderSpace(
        jnp.asarray(absent, jnp.float32),
        jnp.asarray(~forbidden & ~np.eye(len(edges), dtype=bool)),
        jnp.asarray(required),
    )


def _log_some(intensity: Array) -> Array:
    """`log(1 − exp(−intensity))`, finite."""
    return jnp.log(-jnp.expm1(-jnp.maximum(intensity, 1e-8)))
