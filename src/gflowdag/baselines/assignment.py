"""The linear assignment problem inside `jit`: shortest augmenting paths (Jonker & Volgenant 1987)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class _Search(NamedTuple):
    """A partial assignment and one search for an augmenting path in it.

    One turn of the loop is one step of the search or one flip on the way back along the path found, so that
    under `vmap` the problems advance side by side, each in its own phase.
    """

    column_of: Array  # int32 [d], -1 where the row is not assigned yet
    row_of: Array  # int32 [d], -1 where the column is free
    price: Array  # float [d], dual variable of each column
    root: Array  # int32 [], the row that the search started from
    row: Array  # int32 [], the row being scanned
    distance: Array  # float [d], length of the shortest path to each column
    before: Array  # int32 [d], the row before each column on that path
    scanned: Array  # bool [d]
    flip: Array  # int32 [], the column to be given to `before` of it, or -1 while searching
    turns: Array  # int32 []


def max_assignment(weights: Array) -> Array:
    """The permutation with the largest total weight.

    Rows whose largest weights stand in different columns are assigned at once, the others by augmenting
    paths: the closer `weights` is to a log doubly stochastic matrix, the fewer turns are needed.

    Args:
        weights: float [d, d], finite.

    Returns:
        The column of each row, int32 [d].
    """
    d = weights.shape[0]
    cost = -weights

    def unfinished(search: _Search) -> Array:
        # At most d searches of at most d steps and d flips each: also not-a-numbers come to an end.
        return ((search.flip >= 0) | jnp.any(search.column_of < 0)) & (search.turns < 2 * d * d)

    def turn(search: _Search) -> _Search:
        flipping = search.flip >= 0
        searched, flipped = _scan(cost, search), _flip(search)
        chosen = jax.tree.map(lambda a, b: jnp.where(flipping, a, b), flipped, searched)
        return chosen._replace(turns=search.turns + 1)

    return jax.lax.while_loop(unfinished, turn, _first_matches(cost)).column_of


def _first_matches(cost: Array) -> _Search:
    d = cost.shape[0]
    rows = jnp.arange(d, dtype=jnp.int32)
    favourite = jnp.argmin(cost, axis=1).astype(jnp.int32)
    row_of = jnp.full(d, d, jnp.int32).at[favourite].min(rows)
    row_of = jnp.where(row_of < d, row_of, -1)
    column_of = jnp.where(row_of[favourite] == rows, favourite, -1)
    return _restart(column_of, row_of, jnp.zeros(d, cost.dtype), jnp.int32(0))


def _restart(column_of: Array, row_of: Array, price: Array, turns: Array) -> _Search:
    """Begin the search from the first row that is not assigned."""
    d = len(price)
    root = jnp.argmax(column_of < 0).astype(jnp.int32)
    infinite = jnp.full(d, jnp.inf, price.dtype)
    nobody = jnp.full(d, -1, jnp.int32)
    return _Search(
        column_of, row_of, price, root, root, infinite, nobody, jnp.zeros(d, bool), jnp.int32(-1), turns
    )


def _scan(cost: Array, search: _Search) -> _Search:
    """One step of Dijkstra's algorithm; at a free column the prices are updated and the flips begin."""
    own = search.column_of[search.row]
    reduced = cost[search.row] - search.price
    # The row was reached through its own column, whose reduced cost is the smallest of the row.
    at_root = own < 0
    offset = jnp.where(at_root, -jnp.min(reduced), search.distance[own] - reduced[own])
    through = reduced + offset
    shorter = ~search.scanned & (through < search.distance)
    distance = jnp.where(shorter, through, search.distance)
    before = jnp.where(shorter, search.row, search.before)
    nearest = jnp.argmin(jnp.where(search.scanned, jnp.inf, distance)).astype(jnp.int32)
    free = search.row_of[nearest] < 0
    settled = search.price - jnp.where(search.scanned, distance[nearest] - distance, 0)
    return search._replace(
        price=jnp.where(free, settled, search.price),
        row=jnp.where(free, search.row, search.row_of[nearest]),
        distance=distance,
        before=before,
        scanned=search.scanned.at[nearest].set(True),
        flip=jnp.where(free, nearest, -1),
    )


def _flip(search: _Search) -> _Search:
    """Give the column to the row before it on the path, which frees the column that the row had."""
    row = search.before[search.flip]
    freed = search.column_of[row]
    column_of = search.column_of.at[row].set(search.flip)
    row_of = search.row_of.at[search.flip].set(row)
    fresh = _restart(column_of, row_of, search.price, search.turns)
    onward = search._replace(column_of=column_of, row_of=row_of, flip=freed)
    return jax.tree.map(lambda a, b: jnp.where(row == search.root, a, b), fresh, onward)
