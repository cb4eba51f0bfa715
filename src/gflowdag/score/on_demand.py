"""Local scores of any kind inside `jit`, computed on the host when they are first asked for.

Where a table of all parent sets does not fit and no closed form is known, compiled loops call back to the
host (`jax.pure_callback`). One call serves a whole batch, also under `vmap`, and what was computed before is
looked up in a bounded memory. Only NumPy and numba run inside the call: JAX must not be entered again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from gflowdag.runtime.host_calls import host_call
from gflowdag.score.known_values import KnownValues
from gflowdag.score.local_score import LocalScore, local_values
from gflowdag.score.structure_prior import StructurePrior

if TYPE_CHECKING:
    from gflowdag.score.base import Score


def _from_host(
    function: Callable[..., NDArray[np.float64]], shape: tuple[int, ...], *arguments: Array
) -> Array:
    """`function` of NumPy arrays, called on the host: float64 of this shape, and more axes under `vmap`."""

    @host_call
    def call(*given: Any) -> NDArray[np.uint32]:
        # As two words each: the thread of the call does not know of the scope of double precision, and JAX
        # would round there to float32.
        return function(*map(np.asarray, given))[..., None].view(np.uint32)

    words = jax.pure_callback(
        call, jax.ShapeDtypeStruct((*shape, 2), np.uint32), *arguments, vmap_method="broadcast_all"
    )
    return jax.lax.bitcast_convert_type(words, jnp.float64)


@jax.tree_util.register_static
class FamilyScores:
    """Scores of single families: a node with a parent set.

    Knowledge does not enter: all scores are finite. As an argument of compiled functions it is static: every
    one has machine code of its own.
    """

    def __init__(self, likelihood: LocalScore, prior: StructurePrior) -> None:
        self._likelihood, self._prior = likelihood, prior
        self._known = KnownValues(likelihood.num_variables, 1, self._compute)

    def __call__(self, node: Array, parents: Array) -> Array:
        """Local score plus log prior of nodes int [...] with parents bool [..., d], float64 [...]."""
        return _from_host(self._on_host, node.shape, node, parents)

    def _on_host(self, node: NDArray[np.int32], parents: NDArray[np.bool_]) -> NDArray[np.float64]:
        return self._known(node.reshape(-1), parents.reshape(-1, parents.shape[-1])).reshape(node.shape)

    def _compute(self, node: int, parents: NDArray[np.bool_]) -> NDArray[np.float64]:
        values = local_values(self._likelihood, node, parents)
        return (values + self._prior.of_sets(node, parents))[:, None]


@jax.tree_util.register_static
class NeighbourScores:
    """Scores of a node with each of the parent sets that differ from a given one in one parent.

    Knowledge does not enter: all scores are finite. As an argument of compiled functions it is static: every
    one has machine code of its own.
    """

    def __init__(self, score: Score) -> None:
        d = score.num_variables
        self._likelihood, self._prior = score.likelihood, score.structure_prior
        self._known = KnownValues(d, d, self._compute)

    def families(self) -> FamilyScores:
        """The same scores one by one, for those who need few of each node's neighbours."""
        return FamilyScores(self._likelihood, self._prior)

    def __call__(self, node: Array, parents: Array) -> Array:
        """Local score plus log prior after each toggle.

        Args:
            node: int [...].
            parents: bool [..., d]; the node itself is not in it.

        Returns:
            float64 [..., d]: entry `i` with `i` taken out of the parents or put in; that of the node itself
            with the parents as they are.
        """
        return _from_host(self._on_host, parents.shape, node, parents)

    def _on_host(self, node: NDArray[np.int32], parents: NDArray[np.bool_]) -> NDArray[np.float64]:
        return self._known(node.reshape(-1), parents.reshape(-1, parents.shape[-1])).reshape(parents.shape)

    def _compute(self, node: int, parents: NDArray[np.bool_]) -> NDArray[np.float64]:
        out = self._likelihood.extended_local(node, parents) + self._prior.with_one_more(node, parents)
        rows, members = np.nonzero(parents)
        smaller = parents[rows]
        smaller[np.arange(len(rows)), members] = False
        for place, sets in (((rows, members), smaller), ((slice(None), node), parents)):
            out[place] = local_values(self._likelihood, node, sets) + self._prior.of_sets(node, sets)
        return out


class OnDemandState(NamedTuple):
    """A DAG by its parent sets."""

    parents: Array  # bool [d, d], rows are targets


class OnDemandDeltas(NamedTuple):
    """`Deltas` of any score at any number of variables."""

    scores: NeighbourScores

    def init(self, adjacency: Array) -> OnDemandState:
        return OnDemandState(adjacency.T)

    def add(self, state: OnDemandState, source: Array, target: Array) -> OnDemandState:
        return OnDemandState(state.parents.at[target, source].set(True))

    def remove(self, state: OnDemandState, source: Array, target: Array) -> OnDemandState:
        return OnDemandState(state.parents.at[target, source].set(False))

    def all(self, state: OnDemandState) -> Array:
        return jnp.where(state.parents, 0.0, self._changes(state)).T

    def all_removals(self, state: OnDemandState) -> Array:
        return jnp.where(state.parents, self._changes(state), 0.0).T

    def _changes(self, state: OnDemandState) -> Array:
        node = jnp.arange(state.parents.shape[0])
        rows = self.scores(node, state.parents)
        return rows - rows[node, node][:, None]


@jax.tree_util.register_static
class OnDemandGraphScore:
    """Log score of any directed graph, cyclic ones too: bool [n, d, d] -> float64 [n].

    Knowledge does not enter, but for a cost of each parent in sets that are larger than the limits allow.
    """

    def __init__(self, score: Score, crowding_cost: float) -> None:
        """`crowding_cost` is what each parent costs in a set that is larger than allowed."""
        d = score.num_variables
        self._score, self._crowding_cost = score, crowding_cost
        self._known = KnownValues(d, 1, self._compute)

    def __call__(self, graphs: Array, /) -> Array:
        return _from_host(self._on_host, graphs.shape[:-2], graphs)

    def _on_host(self, graphs: NDArray[np.bool_]) -> NDArray[np.float64]:
        parents = np.swapaxes(graphs, -1, -2)
        d: int = parents.shape[-1]
        flat = np.ascontiguousarray(parents).reshape(-1, d)
        node = np.tile(np.arange(d), len(flat) // d)
        return self._known(node, flat).reshape(parents.shape[:-1]).sum(axis=-1)

    def _compute(self, node: int, parents: NDArray[np.bool_]) -> NDArray[np.float64]:
        score, size = self._score, parents.sum(axis=1)
        crowded = ~score.has_room(node, parents)
        values = local_values(score.likelihood, node, parents) + score.structure_prior.of_sets(node, parents)
        return (values - np.where(crowded, self._crowding_cost * size, 0.0))[:, None]
