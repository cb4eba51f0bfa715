"""One DAG that grows edge by edge inside `jit`: the closure is kept up to date in O(d²) per edge."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike


class EdgeState(NamedTuple):
    """A partially built DAG."""

    adjacency: Array  # bool [d, d], rows are sources
    ancestors: Array  # bool [d, d], [j, i]: i reaches j; the closure of the transpose, diagonal set
    num_edges: Array  # int32 []


def from_adjacency(adjacency: ArrayLike) -> EdgeState:
    """The state of a given DAG, bool [d, d], in O(d³)."""
    adjacency = jnp.asarray(adjacency, dtype=jnp.bool_)
    d = adjacency.shape[-1]

    def through(via: Array | int, reached: Array) -> Array:
        return reached | (reached[:, via, None] & reached[None, via, :])

    start = adjacency.T | jnp.eye(d, dtype=jnp.bool_)
    ancestors: Array = cast(Any, lax).fori_loop(0, d, through, start)  # JAX leaves it without types
    return EdgeState(adjacency, ancestors, adjacency.sum(dtype=jnp.int32))


def legal_edges(state: EdgeState) -> Array:
    """Edges `i -> j` that are absent and would close no cycle, bool [d, d]."""
    # ancestors[i, j]: j reaches i, so that i -> j would close a cycle.
    return ~(state.adjacency | state.ancestors)


def add_edge(state: EdgeState, source: ArrayLike, target: ArrayLike) -> EdgeState:
    """Add the legal edge `source -> target`.

    Everything that `target` reaches now descends from everything that reaches `source`.
    """
    descends = state.ancestors[:, target, None] & state.ancestors[None, source, :]
    return EdgeState(
        adjacency=state.adjacency.at[source, target].set(True),
        ancestors=state.ancestors | descends,
        num_edges=state.num_edges + 1,
    )
