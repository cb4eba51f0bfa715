"""A bounded memory of what was computed for pairs of a node and a parent set."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gflowdag.runtime.compiled import compiled

MEMORY = 64 * 2**20  # bytes; where they are used up everything is forgotten, and starts afresh

Compute = Callable[[int, NDArray[np.bool_]], NDArray[np.float64]]
"""From a node and parent sets bool [m, d] to rows of numbers, float64 [m, width]."""


class KnownValues:
    """A hash table from (node, parent set) to a row of `width` numbers; safe to use from several threads."""

    def __init__(self, num_variables: int, width: int, compute: Compute, *, memory: int = MEMORY) -> None:
        """Nothing is known yet, and nothing allocated beside a small table.

        Args:
            num_variables: `d`.
            width: numbers in a row.
            compute: asked for what is not known.
            memory: bytes that the table may take.
        """
        self._words = 1 + -(-num_variables // 64)
        self._width, self._compute = width, compute
        row = 8 * (self._words + width) + 1
        self._most = 1 << max(int(memory / row).bit_length() - 1, 4)  # slots
        self._lock = threading.Lock()
        self._clear(min(self._most, 1 << 10))

    def __call__(self, nodes: NDArray[np.integer[Any]], parents: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Rows of pairs, int [m] and bool [m, d] -> float64 [m, width]."""
        keys = self._keys_of(nodes, parents)
        out = np.empty((len(keys), self._width))
        with self._lock:
            missing = _look_up(self._keys, self._filled, self._rows, keys, out)
            if len(missing):
                first, inverse = _distinct(keys, missing)
                fresh = self._fresh(nodes[first], parents[first])
                out[missing] = fresh[inverse]
                self._remember(keys[first], fresh)
        return out

    def _keys_of(self, nodes: NDArray[np.integer[Any]], parents: NDArray[np.bool_]) -> NDArray[np.uint64]:
        octets = np.zeros((len(parents), 8 * self._words), np.uint8)
        packed = np.packbits(parents, axis=1)
        octets[:, 8 : 8 + packed.shape[1]] = packed
        keys = octets.view(np.uint64)
        keys[:, 0] = nodes
        return keys

    def _fresh(self, nodes: NDArray[np.integer[Any]], parents: NDArray[np.bool_]) -> NDArray[np.float64]:
        out = np.empty((len(nodes), self._width))
        for node in np.unique(nodes):
            own = nodes == node
            out[own] = self._compute(int(node), parents[own])
        return out

    def _remember(self, keys: NDArray[np.uint64], rows: NDArray[np.float64]) -> None:
        wanted = 2 * (self._count + len(keys))  # slots, so that at most half of them are filled
        if wanted > len(self._keys):
            known = self._keys[self._filled], self._rows[self._filled]
            self._clear(min(self._most, 1 << int(2 * wanted - 1).bit_length()))
            if wanted <= self._most:
                self._insert(*known)
        room = len(self._keys) // 2 - self._count
        self._insert(keys[:room], rows[:room])

    def _insert(self, keys: NDArray[np.uint64], rows: NDArray[np.float64]) -> None:
        _insert(self._keys, self._filled, self._rows, keys, rows)
        self._count += len(keys)

    def _clear(self, slots: int) -> None:
        self._keys = np.zeros((slots, self._words), np.uint64)
        self._rows = np.empty((slots, self._width))
        self._filled = np.zeros(slots, np.bool_)
        self._count = 0


@compiled
def _slot(keys: NDArray[np.uint64], filled: NDArray[np.bool_], key: NDArray[np.uint64]) -> np.int64:
    """Where a key is, or the free slot where it belongs; the number of slots is a power of two."""
    mixed = np.uint64(0)
    for word in key:  # splitmix64 of each word on top of those before
        mixed = (mixed ^ word) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
    last = len(filled) - 1
    slot = np.int64(mixed >> np.uint64(1)) & last
    while filled[slot]:
        same = True
        for word in range(len(key)):
            same = same and keys[slot, word] == key[word]
        if same:
            break
        slot = (slot + 1) & last
    return slot


@compiled
def _look_up(
    keys: NDArray[np.uint64],
    filled: NDArray[np.bool_],
    rows: NDArray[np.float64],
    wanted: NDArray[np.uint64],
    out: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Copy the rows that are known to `out`; returns the places of the others."""
    missing = np.empty(len(wanted), np.int64)
    num_missing = 0
    for place in range(len(wanted)):
        slot = _slot(keys, filled, wanted[place])
        if filled[slot]:
            out[place] = rows[slot]
        else:
            missing[num_missing] = place
            num_missing += 1
    return missing[:num_missing]


@compiled
def _distinct(
    keys: NDArray[np.uint64], places: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First place of each different key among `places` [m], and for each place which of them it is, [m]."""
    slots = 4
    while slots < 2 * len(places):
        slots *= 2
    seen, filled = np.empty((slots, keys.shape[1]), np.uint64), np.zeros(slots, np.bool_)
    number = np.empty(slots, np.int64)
    first, inverse = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
    count = 0
    for row in range(len(places)):
        key = keys[places[row]]
        slot = _slot(seen, filled, key)
        if not filled[slot]:
            filled[slot] = True
            seen[slot] = key
            number[slot] = count
            first[count] = places[row]
            count += 1
        inverse[row] = number[slot]
    return first[:count], inverse


@compiled
def _insert(
    keys: NDArray[np.uint64],
    filled: NDArray[np.bool_],
    rows: NDArray[np.float64],
    new_keys: NDArray[np.uint64],
    new_rows: NDArray[np.float64],
) -> None:
    for place in range(len(new_keys)):
        slot = _slot(keys, filled, new_keys[place])
        filled[slot] = True
        keys[slot] = new_keys[place]
        rows[slot] = new_rows[place]
