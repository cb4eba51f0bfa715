"""A ring buffer of transitions inside `jit`."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Replay(NamedTuple):
    """The last `capacity` items that were stored."""

    items: Any  # pytree, leaves [capacity, …]
    stored: Array  # int32 [], number of items ever stored


def empty_replay(example: Any, capacity: int) -> Replay:
    """A buffer for items like `example`."""
    items = jax.tree.map(lambda leaf: jnp.zeros((capacity, *jnp.shape(leaf)), jnp.result_type(leaf)), example)
    return Replay(items, jnp.zeros((), jnp.int32))


def store(replay: Replay, batch: Any, keep: Array) -> Replay:
    """Store the items of `batch` (leaves [n, …]) where `keep`, bool [n]; the oldest are overwritten."""
    capacity = jax.tree.leaves(replay.items)[0].shape[0]
    rank = jnp.cumsum(keep.astype(jnp.int32)) - 1
    # An index beyond the buffer is dropped by the scatter: that is where the items go that are not kept.
    slot = jnp.where(keep, (replay.stored + rank) % capacity, capacity)
    items = jax.tree.map(lambda all_items, new: all_items.at[slot].set(new, mode="drop"), replay.items, batch)
    return Replay(items, replay.stored + keep.sum(dtype=jnp.int32))


def draw_items(replay: Replay, key: Array, size: int) -> Any:
    """`size` items, uniformly and with replacement; leaves [size, …]."""
    capacity = jax.tree.leaves(replay.items)[0].shape[0]
    filled = jnp.clip(replay.stored, 1, capacity)
    index = jax.random.randint(key, (size,), 0, filled, dtype=jnp.int32)
    return jax.tree.map(lambda leaf: leaf[index], replay.items)
