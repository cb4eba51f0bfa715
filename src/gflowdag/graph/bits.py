"""Parent sets as bit masks, and graphs as keys.

Bit `i` of a mask is set iff node `i` is a parent. In a dense table the sets of node `j` are indexed without
bit `j`, which is never set: see `compress`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_NODES = 62  # bits of a non-negative int64, one of them spare so that `1 << d` still fits


def parent_masks(adjacency: ArrayLike) -> NDArray[np.int64]:
    """The parent sets of all nodes.

    Args:
        adjacency: bool [..., d, d] with d ≤ 62.

    Returns:
        int64 [..., d]; bit `i` of entry `j` says whether `i -> j`.
    """
    adjacency = np.asarray(adjacency, dtype=bool)
    bit = np.int64(1) << np.arange(_checked(adjacency.shape[-1]), dtype=np.int64)
    return np.where(adjacency, bit[:, None], 0).sum(axis=-2, dtype=np.int64)


def graphs_from_masks(masks: ArrayLike, d: int) -> NDArray[np.bool_]:
    """Graphs with these parent sets, int64 [..., d] to bool [..., d, d]: the inverse of `parent_masks`."""
    node = np.arange(_checked(d), dtype=np.int64)
    return (np.asarray(masks, dtype=np.int64)[..., None, :] >> node[:, None] & 1).astype(bool)


def compress(mask: Any, j: Any) -> Any:
    """Table index of a parent set of node `j`: the mask with bit `j` squeezed out.

    Plain operators only, so that it serves Python integers, NumPy and JAX arrays alike.
    """
    return (mask & ((1 << j) - 1)) | ((mask >> (j + 1)) << j)


def expand(index: Any, j: Any) -> Any:
    """Parent set behind a table index of node `j`: the inverse of `compress`, bit `j` is zero."""
    return (index & ((1 << j) - 1)) | ((index >> j) << (j + 1))


def popcount(masks: ArrayLike) -> NDArray[np.int64]:
    """Number of set bits, int64 of the shape of `masks`."""
    return np.bitwise_count(np.asarray(masks, dtype=np.int64)).astype(np.int64)


def graph_keys(adjacency: ArrayLike) -> NDArray[np.bytes_]:
    """One hashable, sortable key for each graph, equal iff the graphs are equal (and have the same d).

    Args:
        adjacency: bool [..., d, d], any d.

    Returns:
        bytes [...], for `np.unique`, dictionaries and joins.
    """
    adjacency = np.asarray(adjacency, dtype=bool)
    return _keys(adjacency.reshape(*adjacency.shape[:-2], -1))


def distinct_parent_sets(graphs: NDArray[np.bool_], node: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """The different parent sets of a node in graphs [n, d, d], bool [s, d], and which each graph has, [n]."""
    sets = graphs[:, :, node]
    _, first, which = np.unique(_keys(sets), return_index=True, return_inverse=True)
    return sets[first], which.reshape(-1)


def _keys(bits: NDArray[np.bool_]) -> NDArray[np.bytes_]:
    packed = np.packbits(bits, axis=-1)
    # NumPy drops trailing zero bytes of a bytes entry; among keys of one length that loses nothing.
    return np.ascontiguousarray(packed).view(f"S{max(packed.shape[-1], 1)}")[..., 0]


def words_of(sets: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Sets of nodes as machine words, bool [..., d] -> uint64 [..., W]."""
    d = sets.shape[-1]
    padded = np.zeros((*sets.shape[:-1], 64 * ((d + 63) // 64)), bool)
    padded[..., :d] = sets
    packed = np.packbits(padded, axis=-1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u8").astype(np.uint64)


def bools_of(words: NDArray[np.uint64], d: int) -> NDArray[np.bool_]:
    """The inverse of `words_of`, uint64 [..., W] -> bool [..., d]."""
    packed = np.ascontiguousarray(words.astype("<u8")).view(np.uint8)
    return np.unpackbits(packed, axis=-1, count=d, bitorder="little").astype(bool)


def _checked(d: int) -> int:
    if d > MAX_NODES:
        raise ValueError(f"parent sets are bit masks over at most {MAX_NODES} nodes, got {d}")
    return d
