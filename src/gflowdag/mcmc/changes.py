"""What a move does to the log score, for many chains at once: by look-up, Schur complements, or on demand.

All offer the same: `init` makes a chain's memory, `change` prices a move, and `update` takes the accepted
moves in. The first two also price every edge of a graph at once (`log_odds`).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gflowdag.graph.bits import compress
from gflowdag.mcmc.moves import ADD, REVERSE, DAGs, Move, adjacency_bits
from gflowdag.score.deltas import Deltas, TableDeltas
from gflowdag.score.on_demand import FamilyScores, OnDemandDeltas


class Changes(Protocol):
    """Changes of the log score; `memory` is whatever the implementation keeps for each chain."""

    def init(self, dags: DAGs) -> Any:
        """Memory of chains at `dags`."""
        ...

    def change(self, memory: Any, before: DAGs, after: DAGs, move: Move) -> Array:
        """Change of the log score by one move each, float64 [C]."""
        ...

    def update(self, memory: Any, move: Move, accepted: Array) -> Any:
        """Memory after the moves that were accepted, bool [C]."""
        ...


@runtime_checkable
class EdgePrices(Changes, Protocol):
    """Changes that know all edges of a graph at once, for little more than the price of a move."""

    def log_odds(self, memory: Any, dags: DAGs) -> Array:
        """Log score with `i -> j` minus the log score without it, all else equal, float64 [d, d, C]."""
        ...


def make_changes(deltas: Deltas) -> Changes:
    """The fastest implementation for a score's deltas."""
    if isinstance(deltas, TableDeltas):
        return TableChanges(jnp.asarray(deltas.table, jnp.float64))
    if isinstance(deltas, OnDemandDeltas):
        return OnDemandChanges(deltas.scores.families())
    return DeltaChanges(jax.tree.map(jnp.asarray, deltas))


class TableChanges(NamedTuple):
    """Look-ups in a dense table: two numbers for an addition or a removal, four for a reversal; no memory."""

    table: Any  # float64 [d, 2^(d−1)], finite

    def init(self, dags: DAGs) -> tuple[()]:
        return ()

    def change(self, memory: tuple[()], before: DAGs, after: DAGs, move: Move) -> Array:
        at_target = self._at(move.target, after) - self._at(move.target, before)
        at_source = self._at(move.source, after) - self._at(move.source, before)
        return at_target + jnp.where(move.kind == REVERSE, at_source, 0.0)

    def update(self, memory: tuple[()], move: Move, accepted: Array) -> tuple[()]:
        return ()

    def log_odds(self, memory: tuple[()], dags: DAGs) -> Array:
        nodes = jnp.arange(dags.parents.shape[0], dtype=jnp.uint32)
        bit, target = jnp.uint32(1) << nodes[:, None, None], nodes[:, None]
        parents = dags.parents[:, 0]
        return self._local(target, parents | bit) - self._local(target, parents & ~bit)

    def _at(self, node: Array, dags: DAGs) -> Array:
        return self._local(node, jnp.take_along_axis(dags.parents[:, 0], node[None], axis=0)[0])

    def _local(self, node: Array, parents: Array) -> Array:
        node = jnp.broadcast_to(node, parents.shape).astype(jnp.uint32)
        # Bit `node` is never meant: squeezing it out also makes sense of the diagonal of `log_odds`.
        return self.table[node, compress(parents, node).astype(jnp.int32)]


class OnDemandChanges(NamedTuple):
    """The scores of the two or four families that a move touches, from the host; no memory.

    Not those of all neighbours of a graph: each may be the fit of a regression.
    """

    scores: FamilyScores

    def init(self, dags: DAGs) -> tuple[()]:
        return ()

    def change(self, memory: tuple[()], before: DAGs, after: DAGs, move: Move) -> Array:
        # The source has its parents before and after, but for a reversal: its score then comes from memory.
        nodes = jnp.stack([move.target, move.source])  # [2, C]
        parents = jnp.stack([_parents_of(nodes, before), _parents_of(nodes, after)])  # [2, 2, C, d]
        was, becomes = self.scores(jnp.broadcast_to(nodes, parents.shape[:-1]), parents)
        return (becomes - was).sum(0)

    def update(self, memory: tuple[()], move: Move, accepted: Array) -> tuple[()]:
        return ()


def _parents_of(nodes: Array, dags: DAGs) -> Array:
    """Parents of a node of each graph, int [..., C] -> bool [..., C, d]."""
    parents = adjacency_bits(dags.parents)  # [source, target, C]
    return jnp.moveaxis(parents, 0, -1)[nodes, jnp.arange(nodes.shape[-1])]


class DeltaChanges(NamedTuple):
    """Any `Deltas` whose state keeps its leaves by node; memory O(d³) and time O(d²) for each chain."""

    deltas: Any

    def init(self, dags: DAGs) -> Any:
        return jax.vmap(self.deltas.init)(jnp.moveaxis(adjacency_bits(dags.parents), -1, 0))

    def change(self, memory: Any, before: DAGs, after: DAGs, move: Move) -> Array:
        added, removed = jax.vmap(self.deltas.all)(memory), jax.vmap(self.deltas.all_removals)(memory)
        chain = jnp.arange(len(added))
        with_edge, without = added[chain, move.source, move.target], removed[chain, move.source, move.target]
        reverse = jnp.where(move.kind == REVERSE, added[chain, move.target, move.source], 0.0)
        return jnp.where(move.kind == ADD, with_edge, without + reverse)

    def update(self, memory: Any, move: Move, accepted: Array) -> Any:
        is_add = move.kind == ADD
        memory = self._toggle(memory, move.source, move.target, is_add, accepted)
        reversed_ = accepted & (move.kind == REVERSE)
        return self._toggle(memory, move.target, move.source, jnp.ones_like(is_add), reversed_)

    def log_odds(self, memory: Any, dags: DAGs) -> Array:
        added, removed = jax.vmap(self.deltas.all)(memory), jax.vmap(self.deltas.all_removals)(memory)
        return jnp.where(
            adjacency_bits(dags.parents), -jnp.moveaxis(removed, 0, -1), jnp.moveaxis(added, 0, -1)
        )

    def _toggle(self, memory: Any, source: Array, target: Array, is_add: Array, where: Array) -> Any:
        """Add or remove one edge in each chain `where` asked for, touching the target's block alone."""
        chain = jnp.arange(len(target))
        block = jax.tree.map(lambda leaf: leaf[chain, target][:, None], memory)
        only = jnp.zeros_like(target)
        added = jax.vmap(self.deltas.add)(block, source, only)
        removed = jax.vmap(self.deltas.remove)(block, source, only)

        def chosen(new: Array, old: Array, same: Array) -> Array:
            shape = (-1,) + (1,) * (new.ndim - 1)
            return jnp.where(where.reshape(shape), jnp.where(is_add.reshape(shape), new, old), same)[:, 0]

        block = jax.tree.map(chosen, added, removed, block)
        return jax.tree.map(lambda leaf, new: leaf.at[chain, target].set(new), memory, block)


def memory_per_chain(deltas: Deltas, d: int) -> int:
    """Bytes that each chain keeps besides its graph."""
    if isinstance(deltas, TableDeltas | OnDemandDeltas):
        return 0
    state = jax.eval_shape(deltas.init, jax.ShapeDtypeStruct((d, d), np.bool_))
    return sum(int(np.prod(leaf.shape)) * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
