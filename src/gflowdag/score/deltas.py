"""Changes of the log score by single edges, all of them at once, inside `jit` and `vmap`.

Three ways with one face. `TableDeltas` looks them up in a dense table: any score, few variables.
`SchurDeltas` keeps for each node the scatter matrix swept by its parents: normal-Wishart posteriors (BGe),
any number of variables, O(d²) for one edge. `OnDemandDeltas` asks the host: any score, any number of
variables.

The first two are named tuples of arrays, so that those of several data sets with equal `d` can be stacked and
mapped over. Use all in double precision (`gflowdag.runtime.precision`). None knows which edges are legal:
entries for edges that cannot be added (or removed) are finite and mean nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from gflowdag.score.normal_wishart import NormalWishart
from gflowdag.score.on_demand import NeighbourScores, OnDemandDeltas

if TYPE_CHECKING:
    from gflowdag.score.base import Score


class Deltas(Protocol):
    """What all ways offer; `state` belongs to one DAG."""

    def init(self, adjacency: Array) -> Any:
        """State of a DAG, bool [d, d]."""
        ...

    def add(self, state: Any, source: Array, target: Array) -> Any:
        """State after `source -> target` was added."""
        ...

    def remove(self, state: Any, source: Array, target: Array) -> Any:
        """State after `source -> target` was removed."""
        ...

    def all(self, state: Any) -> Array:
        """Change of the log score by adding `i -> j`, float64 [d, d]."""
        ...

    def all_removals(self, state: Any) -> Array:
        """Change of the log score by removing `i -> j`, float64 [d, d]."""
        ...


def make_deltas(score: Score) -> Deltas:
    """The fastest way: tables up to 20 variables; beyond, Schur complements for BGe, else on demand."""
    if score.has_small_table:
        return TableDeltas(score.unconstrained_table())
    if (posterior := score.likelihood.normal_wishart) is not None:
        return schur_deltas(posterior, score.prior_log_weights)
    return OnDemandDeltas(NeighbourScores(score))


class TableState(NamedTuple):
    """A DAG as table indices."""

    indices: Array  # int32 [d], compressed index of each parent set


class TableDeltas(NamedTuple):
    """Deltas by look-up."""

    table: Any  # float64 [d, 2^(d−1)], finite

    def init(self, adjacency: Array) -> TableState:
        return TableState(
            jnp.where(adjacency, _index_bits(adjacency.shape[-1]), 0).sum(axis=0, dtype=jnp.int32)
        )

    def add(self, state: TableState, source: Array, target: Array) -> TableState:
        return TableState(state.indices.at[target].set(state.indices[target] | _index_bit(source, target)))

    def remove(self, state: TableState, source: Array, target: Array) -> TableState:
        return TableState(state.indices.at[target].set(state.indices[target] & ~_index_bit(source, target)))

    def all(self, state: TableState) -> Array:
        return self._change(state, state.indices | _index_bits(state.indices.shape[0]))

    def all_removals(self, state: TableState) -> Array:
        return self._change(state, state.indices & ~_index_bits(state.indices.shape[0]))

    def _change(self, state: TableState, index: Array) -> Array:
        node = jnp.arange(state.indices.shape[0])
        return jnp.asarray(self.table)[node, index] - jnp.asarray(self.table)[node, state.indices]


def _index_bit(source: Array, target: Array) -> Array:
    """The bit of `source` in the compressed index of `target`; none for `source = target`."""
    shift = source - (source > target)
    return jnp.where(source == target, 0, 1 << shift).astype(jnp.int32)


def _index_bits(d: int) -> Array:
    node = jnp.arange(d, dtype=jnp.int32)
    return _index_bit(node[:, None], node)


class SchurState(NamedTuple):
    """A DAG and, for each node, the scatter matrix swept by its parents."""

    swept: Array  # float64 [d, d, d]; block of node j: Schur complement given Pa_j off Pa_j, −R⁻¹ on Pa_j
    parents: Array  # bool [d, d], rows are targets
    num_parents: Array  # int32 [d]


class SchurDeltas(NamedTuple):
    """Deltas of a normal-Wishart posterior by Schur complements.

    With `s` the complement of node `j` given its `l` parents, adding `i` changes the score by
    `c_{l+1} − c_l − ½ log s_ii − ½ (ν' + l + 2) log(s_jj − s_ij² / s_ii) + ½ (ν' + l + 1) log s_jj`.
    """

    scatter: Any  # float64 [d, d, d], posterior scale matrix R of each node's rows
    degrees: Any  # float64 [d], ν' of each node
    constants: Any  # float64 [d, d + 1], c_l and log prior of l parents, for each node
    floor: Any  # float64 [], lower bound of all pivots

    def init(self, adjacency: Array) -> SchurState:
        d = adjacency.shape[-1]
        parents = adjacency.T

        def sweep_one(source: Array, swept: Array) -> Array:
            after = jax.vmap(_sweep, (0, None, None))(swept, source, self.floor)
            return jnp.where(parents[:, source, None, None], after, swept)

        loop = cast(Any, jax.lax).fori_loop  # JAX leaves it without types
        swept: Array = loop(0, d, sweep_one, jnp.asarray(self.scatter))
        return SchurState(swept, parents, parents.sum(axis=1, dtype=jnp.int32))

    def add(self, state: SchurState, source: Array, target: Array) -> SchurState:
        return SchurState(
            state.swept.at[target].set(_sweep(state.swept[target], source, self.floor)),
            state.parents.at[target, source].set(True),
            state.num_parents.at[target].add(1),
        )

    def remove(self, state: SchurState, source: Array, target: Array) -> SchurState:
        return SchurState(
            state.swept.at[target].set(_unsweep(state.swept[target], source, self.floor)),
            state.parents.at[target, source].set(False),
            state.num_parents.at[target].add(-1),
        )

    def all(self, state: SchurState) -> Array:
        variance, covariance, own = self._entries(state)
        addable = ~state.parents & ~jnp.eye(variance.shape[0], dtype=bool)
        pivot = jnp.where(addable, jnp.maximum(variance, self.floor), 1.0)
        after = jnp.maximum(own - jnp.where(addable, covariance**2 / pivot, 0.0), self.floor)
        return self._gain(state.num_parents[:, None], pivot, own, after).T

    def all_removals(self, state: SchurState) -> Array:
        variance, covariance, own = self._entries(state)
        # A swept pivot is −1/p, with p the variance of the parent given the other parents.
        pivot = jnp.where(state.parents, jnp.maximum(-1.0 / variance, self.floor), 1.0)
        before = own + jnp.where(state.parents, covariance**2 * pivot, 0.0)
        return -self._gain(jnp.maximum(state.num_parents - 1, 0)[:, None], pivot, before, own).T

    def _entries(self, state: SchurState) -> tuple[Array, Array, Array]:
        """Diagonal, own row [d, d] and own entry [d, 1] of each node's matrix; rows are targets."""
        node = jnp.arange(state.swept.shape[0])
        own = jnp.maximum(state.swept[node, node, node], self.floor)
        return state.swept.diagonal(axis1=1, axis2=2), state.swept[node, node], own[:, None]

    def _gain(self, l: Array, pivot: Array, before: Array, after: Array) -> Array:
        """Gain by parent `l + 1` of variance `pivot`, which takes the node's own from `before` to `after`."""
        node = jnp.arange(self.degrees.shape[0])[:, None]
        constants = jnp.asarray(self.constants)
        degrees = jnp.asarray(self.degrees)[:, None] + l
        return (
            constants[node, l + 1]
            - constants[node, l]
            - 0.5 * jnp.log(pivot)
            - 0.5 * (degrees + 2) * jnp.log(after)
            + 0.5 * (degrees + 1) * jnp.log(before)
        )


def schur_deltas(posterior: NormalWishart, prior_log_weights: NDArray[np.float64]) -> SchurDeltas:
    """The deltas of a normal-Wishart posterior; `prior_log_weights` [d]."""
    group = posterior.group_of_node
    constants = posterior.constants[group] + prior_log_weights
    padded = np.concatenate(
        [constants, constants[:, -1:]], axis=1
    )  # d parents: read only where nothing is legal
    return SchurDeltas(
        posterior.scatter[group], posterior.degrees[group], padded, np.asarray(posterior.scale, np.float64)
    )


def _sweep(matrix: Array, pivot: Array, floor: Array) -> Array:
    """Condition a symmetric matrix on one variable (symmetric sweep operator), undone by `_unsweep`."""
    column = matrix[pivot]
    scaled = column / jnp.maximum(column[pivot], floor)
    swept = matrix - column[:, None] * scaled
    swept = swept.at[pivot].set(scaled).at[:, pivot].set(scaled)
    return swept.at[pivot, pivot].set(-1.0 / jnp.maximum(column[pivot], floor))


def _unsweep(matrix: Array, pivot: Array, floor: Array) -> Array:
    """Take the condition on one variable back."""
    column = matrix[pivot]
    variance = jnp.maximum(-1.0 / column[pivot], floor)
    scaled = column * variance
    swept = matrix + column[:, None] * scaled
    swept = swept.at[pivot].set(scaled).at[:, pivot].set(scaled)
    return swept.at[pivot, pivot].set(variance)
