"""The neighbourhood of a DAG: every legal addition, removal and reversal, for thousands of DAGs at once.

A batch of DAGs is a set of bit masks with the chain as the last axis, `uint32 [d, W, C]` with W = ⌈d / 32⌉
words per node: one machine instruction serves whole rows of the adjacency matrices of several chains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gflowdag.score.cell_limit import CellLimit

ADD, REMOVE, REVERSE = 0, 1, 2
MOVES = ("add", "remove", "reverse")
_WORD = 32


class DAGs(NamedTuple):
    """A batch of C DAGs as bit masks over the nodes."""

    parents: Array  # uint32 [d, W, C], bit i of row j: i -> j
    children: Array  # uint32 [d, W, C], bit j of row i: i -> j
    indirect: Array  # uint32 [d, W, C], bit i of row j: a directed path i ~> j of two or more edges


class CellMasks(NamedTuple):
    """A limit on the cells of a family, for sources grouped by their numbers of levels."""

    levels: Array  # float64 [d], of each variable
    most: Array  # float64 [d], configurations of the parents of each node
    groups: Array  # float64 [L], the different numbers of levels
    group: Array  # int32 [d], of each variable


class Limits(NamedTuple):
    """What background knowledge leaves open to the moves."""

    addable: Array  # uint32 [d, W], bit j of row i: i -> j may be added (not forbidden)
    removable: Array  # uint32 [d, W], bit i of row j: i -> j may be removed (not required)
    reversible: Array  # uint32 [d, W], bit i of row j: i -> j may become j -> i
    max_parents: Array  # int32 []
    cells: CellMasks | None = None


class Neighbourhood(NamedTuple):
    """The legal moves from each DAG."""

    additions: Array  # uint32 [d, W, C], bit j of row i: i -> j may be added
    removals: Array  # uint32 [d, W, C], bit i of row j: i -> j may be removed
    reversals: Array  # uint32 [d, W, C], bit i of row j: i -> j may be reversed
    sizes: Array  # int32 [3, C], the number of each


class Move(NamedTuple):
    """One change of one edge per chain."""

    kind: Array  # int32 [C], ADD, REMOVE or REVERSE
    source: Array  # int32 [C], of the edge before the move (of the new edge for ADD)
    target: Array  # int32 [C]


def num_words(d: int) -> int:
    """Words of 32 bits that hold a set of `d` nodes."""
    return -(-d // _WORD)


def pack(matrix: np.ndarray) -> np.ndarray:
    """Bit masks of the rows of 0/1 matrices: bool [..., d] -> uint32 [..., W]."""
    d = matrix.shape[-1]
    padding = [(0, 0)] * (matrix.ndim - 1) + [(0, num_words(d) * _WORD - d)]
    octets = np.packbits(np.pad(np.asarray(matrix, bool), padding), axis=-1, bitorder="little")
    return np.ascontiguousarray(octets).view("<u4").astype(np.uint32)


def unpack(words: np.ndarray, d: int) -> np.ndarray:
    """The inverse of `pack`: uint32 [..., W] -> bool [..., d]."""
    octets = np.ascontiguousarray(words, dtype="<u4").view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=d, bitorder="little").astype(bool)


def dags_from_adjacency(graphs: np.ndarray) -> DAGs:
    """Pack adjacency matrices bool [C, d, d] (rows are sources)."""
    children = jnp.asarray(np.moveaxis(pack(graphs), 0, -1))
    parents = jnp.asarray(np.moveaxis(pack(np.swapaxes(graphs, 1, 2)), 0, -1))
    return DAGs(parents, children, indirect_ancestors(parents))


def adjacency(parents: np.ndarray) -> np.ndarray:
    """Adjacency matrices bool [..., C, d, d] of packed parent sets uint32 [..., d, W, C]."""
    child_rows = unpack(np.moveaxis(np.asarray(parents), -1, -3), parents.shape[-3])
    return np.swapaxes(child_rows, -1, -2)


def adjacency_bits(parents: Array) -> Array:
    """Inside `jit`: adjacency matrices bool [d, d, C] of packed parent sets uint32 [d, W, C]."""
    nodes = jnp.arange(parents.shape[0])
    return (
        (parents[:, nodes // _WORD] >> (nodes % _WORD).astype(jnp.uint32)[:, None] & 1)
        .astype(bool)
        .transpose(1, 0, 2)
    )


def limits_from_constraints(
    required: np.ndarray, forbidden: np.ndarray, max_parents: int | None, cells: CellLimit | None = None
) -> Limits:
    """Translate edge constraints, bool [d, d] with rows as sources, and limits into masks of moves."""
    d = len(required)
    allowed = ~np.asarray(forbidden, bool) & ~np.eye(d, dtype=bool)
    removable = ~np.asarray(required, bool)
    # Bit i of row j of `reversible`: the edge i -> j is not required, and j -> i is allowed.
    return Limits(
        addable=jnp.asarray(pack(allowed)),
        removable=jnp.asarray(pack(removable.T)),
        reversible=jnp.asarray(pack(removable.T & allowed)),
        max_parents=jnp.int32(d if max_parents is None else max_parents),
        cells=None if cells is None else _cell_masks(cells),
    )


def _cell_masks(limit: CellLimit) -> CellMasks:
    groups, group = np.unique(limit.levels, return_inverse=True)
    levels, most, groups = (jnp.asarray(array, jnp.float64) for array in (limit.levels, limit.most, groups))
    return CellMasks(levels, most, groups, jnp.asarray(group, jnp.int32))


def num_configurations(parents: Array, levels: Array) -> Array:
    """Configurations of the parents of each node, uint32 [d, W, C] and float64 [d] -> float64 [d, C]."""

    def with_parent(k: Array, product: Array) -> Array:
        present = parents[:, k // _WORD] >> (k % _WORD).astype(jnp.uint32) & 1
        return jnp.where(present == 1, product * levels[k], product)

    start = jnp.ones((parents.shape[0], parents.shape[-1]), jnp.float64)
    return _over_nodes(with_parent, parents.shape[0], start)


def _within_cells(parents: Array, cells: CellMasks) -> Array:
    """Targets whose family has few enough cells with one more parent, uint32 [d (source), W, C]."""
    d, words, chains = parents.shape
    configurations = num_configurations(parents, cells.levels)
    itself = _one_hot_words(jnp.arange(d, dtype=jnp.int32), words).T[:, :, None]  # [d, W, 1]
    orphan = (parents == 0).all(1)  # [d, C]

    def with_target(k: Array, masks: Array) -> Array:
        fits = (cells.groups[:, None] * configurations[k] <= cells.most[k]) | orphan[k]  # [L, C]
        return masks | jnp.where(fits[:, None], itself[k], 0)

    none = jnp.zeros((cells.groups.shape[0], words, chains), jnp.uint32)
    return _over_nodes(with_target, d, none)[cells.group]


def indirect_ancestors(parents: Array) -> Array:
    """Which nodes reach each node by a path of two or more edges, uint32 [d, W, C].

    Warshall's closure on bit masks: when `k` is allowed as an intermediate, whatever reaches `k` reaches all
    that `k` reaches. Every such path has two edges or more, and the path's highest intermediate finds it.
    """
    d = parents.shape[0]

    def through(k: Array, indirect: Array) -> Array:
        ancestors = parents | indirect
        below_k = (ancestors[:, k // _WORD] >> (k % _WORD).astype(jnp.uint32)) & 1
        return indirect | ((0 - below_k)[:, None] & ancestors[k])

    return _over_nodes(through, d, jnp.zeros_like(parents))


def neighbourhood(dags: DAGs, limits: Limits) -> Neighbourhood:
    """Every legal move from each DAG, and how many there are of each kind.

    Adding i -> j makes a cycle iff j is an ancestor of i; reversing it does iff another path leads from i
    to j.
    """
    d, words, _ = dags.parents.shape
    itself = _one_hot_words(jnp.arange(d, dtype=jnp.int32), words).T[:, :, None]  # [d, W, 1]

    def with_room(k: Array, room: Array) -> Array:
        return room | jnp.where(_popcount(dags.parents[k]).sum(0) < limits.max_parents, itself[k], 0)

    room = _over_nodes(with_room, d, jnp.zeros_like(dags.parents[0]))  # [W, C]
    if limits.cells is not None:
        room = room & _within_cells(dags.parents, limits.cells)  # [d, W, C], bit j of row i: i -> j
    blocked = dags.parents | dags.indirect | dags.children | itself
    additions = ~blocked & limits.addable[:, :, None] & room
    removals = dags.parents & limits.removable[:, :, None]
    reversals = dags.parents & ~dags.indirect & limits.reversible[:, :, None] & room

    def count(k: Array, sizes: tuple[Array, ...]) -> tuple[Array, ...]:
        masks = (additions, removals, reversals)
        return tuple(
            size + _popcount(mask[k]).sum(0, dtype=jnp.int32) for size, mask in zip(sizes, masks, strict=True)
        )

    none = jnp.zeros(dags.parents.shape[-1], jnp.int32)
    return Neighbourhood(additions, removals, reversals, jnp.stack(_over_nodes(count, d, (none, none, none))))


def nth_move(moves: Neighbourhood, index: Array) -> Move:
    """The `index`-th legal move of each chain (int32 [C], smaller than the neighbourhood's size)."""
    additions, removals, reversals, sizes = moves
    first_removal, first_reversal = sizes[ADD], sizes[ADD] + sizes[REMOVE]
    kind = (index >= first_removal).astype(jnp.int32) + (index >= first_reversal)
    index = index - jnp.where(kind == ADD, 0, jnp.where(kind == REMOVE, first_removal, first_reversal))

    masks = jnp.where(kind == ADD, additions, jnp.where(kind == REMOVE, removals, reversals))
    d, words, chains = masks.shape
    masks = masks.reshape(d * words, chains)

    def search(k: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        left, row, word, rank = carry
        count = _popcount(masks[k])
        here = (left >= 0) & (left < count)
        return (
            left - count,
            jnp.where(here, k, row),
            jnp.where(here, masks[k], word),
            jnp.where(here, left, rank),
        )

    zero = jnp.zeros_like(index)
    _, row, word, rank = _over_nodes(search, d * words, (index, zero, masks[0], zero))
    below = jnp.uint32(2) ** jnp.arange(1, _WORD, dtype=jnp.uint32) - 1
    bit = (_popcount(word & below[:, None]) <= rank).sum(0, dtype=jnp.int32)

    row, bit = row // words, (row % words) * _WORD + bit
    is_addition = kind == ADD
    return Move(kind, jnp.where(is_addition, row, bit), jnp.where(is_addition, bit, row))


def apply_move(dags: DAGs, move: Move) -> DAGs:
    """The DAGs after one move each."""
    d, words, _ = dags.parents.shape
    nodes = jnp.arange(d, dtype=jnp.int32)[:, None, None]
    at_source, at_target = nodes == move.source, nodes == move.target  # [d, 1, C]
    source_bit, target_bit = _one_hot_words(move.source, words), _one_hot_words(move.target, words)  # [W, C]
    reverse = move.kind == REVERSE
    parents = (
        dags.parents ^ jnp.where(at_target, source_bit, 0) ^ jnp.where(at_source & reverse, target_bit, 0)
    )
    children = (
        dags.children ^ jnp.where(at_source, target_bit, 0) ^ jnp.where(at_target & reverse, source_bit, 0)
    )
    return DAGs(parents, children, indirect_ancestors(parents))


def _over_nodes(body: Callable[[Array, Any], Any], count: int, start: Any) -> Any:
    """A loop over the rows that stays a loop: XLA's reductions over the leading axis, and its fusion of an
    unrolled closure, are 4 and 30 times slower on CPU."""
    return jax.lax.fori_loop(jnp.int32(0), jnp.int32(count), body, start)


def _popcount(words: Array) -> Array:
    return jax.lax.population_count(words).astype(jnp.int32)


def _one_hot_words(nodes: Array, words: int) -> Array:
    """The set that holds one node: int [n] -> uint32 [W, n]."""
    bit = jnp.uint32(1) << (nodes % _WORD).astype(jnp.uint32)
    return jnp.where(jnp.arange(words)[:, None] == nodes // _WORD, bit, 0)
