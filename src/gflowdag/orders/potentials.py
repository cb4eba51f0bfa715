"""Potentials on sets of nodes, for shaping: what placing a set first is worth, whatever its order.

The log-weights of an order are greedy in the wrong direction: someone has to be first and pays for all.
Subtracting the gain `φ(U ∪ j) − φ(U)` of a good set function makes the steps of an order comparable. Any set
function is allowed. Two of them for candidate tables, with one face: `start()`, `place(state, node)`, and
`gains(state)` for all nodes at once.

- `schur_potential`: normal-Wishart posteriors (BGe). The score of the complete DAG on the set, in closed
  form; with interventions, where that score depends on the order, on the pooled rows.
- `symmetric_potential`: any score. Half of what each member gains from parents in the set, as every
  dependence is seen from both of its ends.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from gflowdag.orders.candidates import CandidateTable
from gflowdag.score.normal_wishart import NormalWishart
from gflowdag.score.subsets import log_subset_sums


class Potential(Protocol):
    """A set function `φ` with its increments, for use inside `jit` and in double precision."""

    def start(self) -> Any:
        """State of the empty set, where `φ = 0`."""
        ...

    def place(self, state: Any, node: Array) -> Any:
        """State after `node` was added."""
        ...

    def gains(self, state: Any) -> Array:
        """`φ(U ∪ j) − φ(U)`, float64 [d]; finite and meaningless for nodes in `U`."""
        ...


class SchurPotentialState(NamedTuple):
    """The scatter matrix given the set."""

    complement: Array  # float64 [d, d]
    log_determinant: Array  # float64 [], of the set's own block
    size: Array  # int32 []


class SchurPotential(NamedTuple):
    """`φ(U) = Σ_{k<n} c_k − ½ (ν' + n) log |R_UU|`, `n = |U|`."""

    scatter: Any  # float64 [d, d]
    degrees: Any  # float64 [], ν'
    constants: Any  # float64 [d], c_k and log prior of k parents
    floor: Any  # float64 [], lower bound of all pivots

    def start(self) -> SchurPotentialState:
        zero = jnp.zeros((), jnp.float64)
        return SchurPotentialState(jnp.asarray(self.scatter), zero, jnp.zeros((), jnp.int32))

    def place(self, state: SchurPotentialState, node: Array) -> SchurPotentialState:
        column = state.complement[node]
        pivot = jnp.maximum(column[node], self.floor)
        return SchurPotentialState(
            state.complement - jnp.outer(column, column / pivot),
            state.log_determinant + jnp.log(pivot),
            state.size + 1,
        )

    def gains(self, state: SchurPotentialState) -> Array:
        variances = jnp.maximum(jnp.diagonal(state.complement), self.floor)
        shared = jnp.asarray(self.constants)[state.size] - 0.5 * state.log_determinant
        return shared - 0.5 * (self.degrees + state.size + 1) * jnp.log(variances)


def schur_potential(posterior: NormalWishart, prior_log_weights: NDArray[np.float64]) -> SchurPotential:
    """The potential of a normal-Wishart posterior; `prior_log_weights` [d]."""
    return SchurPotential(
        posterior.scatter[0],
        np.asarray(posterior.degrees[0]),
        posterior.constants[0] + prior_log_weights,
        np.asarray(posterior.scale, np.float64),
    )


class SymmetricPotentialState(NamedTuple):
    """The set, as seen by the candidates of each node."""

    placed: Array  # bool [d]
    index: Array  # int32 [d], local index of the placed candidates of each node


class SymmetricPotential(NamedTuple):
    """`φ(U) = Σ_{j∈U} LS(j, ∅) + ½ [log β_j(U) − LS(j, ∅)]`, `β_j(U)` the sum over the parent sets in `U`."""

    sums: Any  # float64 [d, 2^K], log β_j; bit k of the index stands for the k-th candidate of the node
    position: Any  # int32 [d (node), d (parent)], place among the node's candidates; K for the others

    def start(self) -> SymmetricPotentialState:
        d = self.position.shape[-1]
        return SymmetricPotentialState(jnp.zeros(d, bool), jnp.zeros(d, jnp.int32))

    def place(self, state: SymmetricPotentialState, node: Array) -> SymmetricPotentialState:
        return SymmetricPotentialState(state.placed.at[node].set(True), state.index | self._bits()[:, node])

    def gains(self, state: SymmetricPotentialState) -> Array:
        sums = jnp.asarray(self.sums)
        node = jnp.arange(state.placed.shape[0])
        now = sums[node, state.index]
        own = 0.5 * (now + sums[:, 0])
        others = sums[node[:, None], state.index[:, None] | self._bits()] - now[:, None]  # [member, added]
        return own + 0.5 * jnp.where(state.placed[:, None], others, 0.0).sum(axis=0)

    def _bits(self) -> Array:
        """The bit that a placed parent sets in each node's index, int32 [d (node), d (parent)]."""
        num_candidates = self.sums.shape[-1].bit_length() - 1
        position = jnp.asarray(self.position)
        return jnp.where(position < num_candidates, 1 << position, 0).astype(jnp.int32)


def symmetric_potential(table: CandidateTable, position: NDArray[np.int32]) -> SymmetricPotential:
    """From the table and `OrderWeights.position`."""
    return SymmetricPotential(log_subset_sums(table.scores), position)
