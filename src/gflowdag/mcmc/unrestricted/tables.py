"""Local scores of the parent sets that one refresh tabulates, for any score.

A table holds, for every node, the local score of `base ∪ S` for every subset `S` of its candidates.
"""

from __future__ import annotations

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


class CachedTables:
    """Local scores of any score, each computed once.

    They come in blocks: all subsets of a node's core beside one set of outsiders. A refresh asks for `2^r`
    blocks of each node, most of which were seen before. When there is no more room, all are forgotten.
    """

    def __init__(self, score: Score, pools: Pools, *, memory_limit: int = KEPT_BYTES):
        d, num_words = pools.required.shape
        block_size = 1 << pools.core.shape[1]
        num_outsiders = pools.power_sums.shape[1] - 1
        fewest = d << num_outsiders  # of one refresh
        self._score = score
        self._pools = pools
        self._capacity = max(fewest, memory_limit // (8 * block_size + 8 * num_words + 16))
        self._blocks = _Blocks(
            np.full(1 << (2 * self._capacity - 1).bit_length(), -1, np.int32),
            np.empty(self._capacity, np.int32),
            np.empty((self._capacity, num_words), np.uint64),
            np.empty((self._capacity, block_size)),  # memory is taken as it is written
        )
        self._number = 0
        self._lock = Lock()  # of the blocks; scores are computed without it

    def fill(self, sets: CandidateSets, scores: NDArray[np.float64]) -> None:
        with self._lock:
            nodes, parts, beside = _look_up(sets, self._pools.core_sizes, self._blocks, scores)
        if len(nodes) == 0:
            return
        fresh = self._compute(nodes, beside)
        for node, part, block in zip(nodes, parts, fresh, strict=True):
            size = 1 << self._pools.core_sizes[node]
            scores[node, part * size : (part + 1) * size] = block[:size]
        with self._lock:
            if self._number + len(nodes) > self._capacity:
                self._blocks.slots[:] = -1
                self._number = 0
            self._number = _store(self._blocks, self._number, nodes, beside, fresh)

    def _compute(self, nodes: NDArray[np.int32], beside: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Blocks of these nodes, in ascending order, float64 [m, 2^c]."""
        out = np.zeros((len(nodes), self._blocks.scores.shape[1]))
        sets = bools_of(beside, len(self._pools.required))
        distinct, first = np.unique(nodes, return_index=True)
        for node, rows in zip(distinct, np.split(np.arange(len(nodes)), first[1:]), strict=True):
            core = self._pools.core[node, : self._pools.core_sizes[node]].astype(np.int64)
            out[rows, : 1 << len(core)] = self._score.local_blocks(int(node), core, sets[rows])
        return out


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
