"""Local scores of the parent sets that one refresh tabulates, for any score.

A table holds, for every node, the local score of `base ∪ S` for every subset `S` of its candidates.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gflowdag.mcmc.unrestricted.candidate_sets import CandidateSets, Pools, bools_of
from gflowdag.mcmc.unrestricted.gaussian_tables import GaussianTables
from gflowdag.score import Score

MEMORY_LIMIT = 2**29  # bytes of local scores that are kept


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


class CachedTables:
    """Local scores of any score, each computed once.

    They come in blocks: all subsets of a node's core beside one set of outsiders. A refresh asks for `2^r`
    blocks of each node, most of which were seen before.
    """

    def __init__(self, score: Score, pools: Pools, *, memory_limit: int = MEMORY_LIMIT):
        d, core_size = pools.core.shape
        num_outsiders = pools.power_sums.shape[1] - 1
        self._score = score
        self._pools = pools
        self._blocks: list[dict[bytes, NDArray[np.float64]]] = [{} for _ in range(d)]
        self._most_blocks = max(2**num_outsiders, memory_limit // (d * (8 * 2**core_size + 300)))

    def fill(self, sets: CandidateSets, scores: NDArray[np.float64]) -> None:
        for node in range(len(scores)):
            self._fill_node(node, sets, scores[node])

    def _fill_node(self, node: int, sets: CandidateSets, scores: NDArray[np.float64]) -> None:
        core_size = int(self._pools.core_sizes[node])
        num_subsets = 1 << core_size
        outside = sets.candidates[node, core_size : sets.sizes[node]]
        beside = np.repeat(sets.base[node][None], 1 << len(outside), axis=0)  # [2^g, W]
        for bit, outsider in enumerate(outside):
            chosen = np.arange(len(beside)) >> bit & 1 == 1
            beside[chosen, outsider >> 6] |= np.uint64(1) << np.uint64(outsider & 63)
        known = self._blocks[node]
        keys = [words.tobytes() for words in beside]
        missing = [row for row, key in enumerate(keys) if key not in known]
        if missing:
            core = self._pools.core[node, :core_size].astype(np.int64)
            fresh = self._score.local_blocks(node, core, bools_of(beside[missing], len(sets.sizes)))
            if len(known) + len(missing) > self._most_blocks:
                known = self._blocks[node] = {key: known[key] for key in keys if key in known}
            known.update(zip([keys[row] for row in missing], fresh, strict=True))
        for row, key in enumerate(keys):
            scores[row * num_subsets : (row + 1) * num_subsets] = known[key]
