"""Local scores of the parent sets that one refresh tabulates, for any score.

A table holds, for every node, the local score of `base ∪ S` for every subset `S` of its candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import NamedTuple, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.graph.bits import bools_of
from gflowdag.mcmc.bit_graphs import add
from gflowdag.mcmc.unrestricted.candidate_sets import CandidateSets, Pools
from gflowdag.mcmc.unrestricted.gaussian_tables import GaussianTables
from gflowdag.score import Score

KEPT_BYTES = 2**29  # bytes of local scores that are kept


class LocalTables(Protocol):
    """What the chains need of a score; several threads call it at the same time."""

    def fill(self, sets: CandidateSets, scores: NDArray[np.float64]) -> None:
        """Write the local score (likelihood and prior) of every tabulated parent set.

        Args:
            sets: candidates and base of every node.
            scores: float64 [d, 2^K]; entry `[j, s]` is that of node `j` with its base and those candidates
                whose bit is set in `s`, −inf where knowledge forbids the set. Entries beyond
                `2^sizes[j]` are not read.
        """
        ...

    def extend(self, bases: NDArray[np.uint64], scores: NDArray[np.float64]) -> None:
        """Write the local score of every node with one more parent beside its base.

        Args:
            bases: [d, W], a parent set of every node.
            scores: float64 [d, d]; entry `[j, i]` is that of node `j` with the parent `i` beside them,
                `[j, j]` that of the base alone; −inf where there are more parents than knowledge allows.
                Entries of parents that are in the base, or that knowledge forbids, are not read.
        """
        ...


def local_tables(score: Score, pools: Pools) -> LocalTables:
    """The fastest way to fill the tables of a score."""
    if (posterior := score.likelihood.normal_wishart) is not None:
        return GaussianTables(score, posterior)
    return CachedTables(score, pools)


class _Blocks(NamedTuple):
    """A hash table with linear probing: local scores by the node and the parents beside its core."""

    slots: NDArray[np.int32]  # [a power of two], number of a block, or −1
    nodes: NDArray[np.int32]  # [capacity]
    beside: NDArray[np.uint64]  # [capacity, W]
    scores: NDArray[np.float64]  # [capacity, 2^c], of all subsets of the core


_Missing = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint64]]  # node, place, parents beside


class _Kept:
    """Blocks of one size, which several threads may ask for; all are forgotten when there is no more room."""

    def __init__(self, num_words: int, block_size: int, *, fewest: int, memory_limit: int):
        self._capacity = max(fewest, memory_limit // (8 * block_size + 8 * num_words + 16))
        self._blocks = _Blocks(
            np.full(1 << (2 * self._capacity - 1).bit_length(), -1, np.int32),
            np.empty(self._capacity, np.int32),
            np.empty((self._capacity, num_words), np.uint64),
            np.empty((self._capacity, block_size)),  # memory is taken as it is written
        )
        self._number = 0
        self._lock = Lock()  # of the blocks; scores are computed without it

    def look_up(self, copy_known: Callable[[_Blocks], _Missing]) -> _Missing:
        with self._lock:
            return copy_known(self._blocks)

    def store(self, nodes: NDArray[np.int32], beside: NDArray[np.uint64], fresh: NDArray[np.float64]) -> None:
        with self._lock:
            if self._number + len(nodes) > self._capacity:
                self._blocks.slots[:] = -1
                self._number = 0
            self._number = _store(self._blocks, self._number, nodes, beside, fresh)


class CachedTables:
    """Local scores of any score, each computed once.

    They come in blocks: all subsets of a node's core beside one set of outsiders. A refresh asks for `2^r`
    blocks of each node, most of which were seen before. Sets with one more parent are blocks of their own.
    """

    def __init__(self, score: Score, pools: Pools, *, memory_limit: int = KEPT_BYTES):
        d, num_words = pools.required.shape
        num_outsiders = pools.power_sums.shape[1] - 1
        self._score = score
        self._pools = pools
        self._subsets = _Kept(
            num_words, 1 << pools.core.shape[1], fewest=d << num_outsiders, memory_limit=memory_limit // 2
        )
        self._extended = _Kept(num_words, d, fewest=d, memory_limit=memory_limit // 2)

    def fill(self, sets: CandidateSets, scores: NDArray[np.float64]) -> None:
        core_sizes = self._pools.core_sizes
        nodes, parts, beside = self._subsets.look_up(
            lambda blocks: _look_up(sets, core_sizes, blocks, scores)
        )
        if len(nodes) == 0:
            return
        fresh = self._by_node(nodes, beside, self._of_core, 1 << self._pools.core.shape[1])
        for node, part, block in zip(nodes, parts, fresh, strict=True):
            size = 1 << core_sizes[node]
            scores[node, part * size : (part + 1) * size] = block[:size]
        self._subsets.store(nodes, beside, fresh)

    def extend(self, bases: NDArray[np.uint64], scores: NDArray[np.float64]) -> None:
        nodes, _, beside = self._extended.look_up(lambda blocks: _look_up_extended(bases, blocks, scores))
        if len(nodes) == 0:
            return
        fresh = self._by_node(nodes, beside, self._of_one_more, len(bases))
        scores[nodes] = fresh
        self._extended.store(nodes, beside, fresh)

    def _by_node(
        self,
        nodes: NDArray[np.int32],
        beside: NDArray[np.uint64],
        compute: Callable[[int, NDArray[np.bool_]], NDArray[np.float64]],
        block_size: int,
    ) -> NDArray[np.float64]:
        """Blocks of these nodes, in ascending order, float64 [m, block size]."""
        out = np.zeros((len(nodes), block_size))
        sets = bools_of(beside, len(self._pools.required))
        distinct, first = np.unique(nodes, return_index=True)
        for node, rows in zip(distinct, np.split(np.arange(len(nodes)), first[1:]), strict=True):
            blocks = compute(int(node), sets[rows])
            out[rows, : blocks.shape[1]] = blocks
        return out

    def _of_core(self, node: int, beside: NDArray[np.bool_]) -> NDArray[np.float64]:
        core = self._pools.core[node, : self._pools.core_sizes[node]].astype(np.int64)
        return self._score.local_blocks(node, core, beside)

    def _of_one_more(self, node: int, bases: NDArray[np.bool_]) -> NDArray[np.float64]:
        blocks = self._score.extended_local(node, bases)
        blocks[:, node] = self._score.local(node, bases)
        return blocks


@njit(cache=True, nogil=True)
def _look_up(sets, core_sizes, blocks, scores):
    """Copy the blocks that are known; node, place and parents beside the core of the others."""
    d, num_words = sets.base.shape
    most = sets.correction.shape[1]
    nodes, parts = np.empty(d * most, np.int32), np.empty(d * most, np.int64)
    missing = np.empty((d * most, num_words), np.uint64)
    number = 0
    beside = np.empty(num_words, np.uint64)
    for node in range(d):
        core_size = core_sizes[node]
        size = 1 << core_size
        for part in range(1 << (sets.sizes[node] - core_size)):
            beside[:] = sets.base[node]
            for k in range(core_size, sets.sizes[node]):
                if part >> (k - core_size) & 1:
                    add(beside, sets.candidates[node, k])
            block = blocks.slots[_slot(blocks, node, beside)]
            if block >= 0:
                scores[node, part * size : (part + 1) * size] = blocks.scores[block, :size]
            else:
                nodes[number], parts[number], missing[number] = node, part, beside
                number += 1
    return nodes[:number], parts[:number], missing[:number]


@njit(cache=True, nogil=True)
def _look_up_extended(bases, blocks, scores):
    """Copy the blocks that are known; node, nothing and base of the others."""
    d = len(bases)
    missing = np.empty(d, np.int32)
    number = 0
    for node in range(d):
        block = blocks.slots[_slot(blocks, node, bases[node])]
        if block >= 0:
            scores[node] = blocks.scores[block]
        else:
            missing[number] = node
            number += 1
    nodes = missing[:number]
    return nodes, np.zeros(number, np.int64), bases[nodes]


@njit(cache=True, nogil=True)
def _slot(blocks, node, beside):
    """Where the block is, or the free slot where it belongs."""
    mixed = np.uint64(node + 1) * np.uint64(0x9E3779B97F4A7C15)
    for w in range(len(beside)):
        mixed = (mixed ^ beside[w]) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    last = len(blocks.slots) - 1
    place = np.int64(mixed & np.uint64(last))
    while True:
        block = blocks.slots[place]
        if block < 0:
            return place
        if blocks.nodes[block] == node:
            same = True
            for w in range(len(beside)):
                same &= blocks.beside[block, w] == beside[w]
            if same:
                return place
        place = (place + 1) & last


@njit(cache=True, nogil=True)
def _store(blocks, number, nodes, beside, fresh):
    """Add blocks, but for those that another thread has added; how many there are then."""
    for row in range(len(nodes)):
        place = _slot(blocks, nodes[row], beside[row])
        if blocks.slots[place] >= 0:
            continue
        blocks.slots[place] = number
        blocks.nodes[number] = nodes[row]
        blocks.beside[number] = beside[row]
        blocks.scores[number] = fresh[row]
        number += 1
    return number
