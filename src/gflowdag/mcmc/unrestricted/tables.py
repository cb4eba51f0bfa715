"""Local scores of the parent sets that one refresh tabulates, for any score.

A table holds, for every node, the local score of `base ∪ S` for every subset `S` of its candidates. Whoever
can fill it faster than by asking for one set after the other says so by a `LocalTables` of its own: a score
through a method `local_tables(score, pools)`, where `score` has the prior and the knowledge too.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gflowdag.mcmc.unrestricted.candidate_sets import CandidateSets, Pools, bools_of
from gflowdag.score import Score
from gflowdag.score.bdeu import BDeuLikelihood

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
    from gflowdag.mcmc.unrestricted.bdeu_tables import BDeuTables
    from gflowdag.mcmc.unrestricted.gaussian_tables import GaussianTables

    likelihood = score.likelihood
    if (own := getattr(likelihood, "local_tables", None)) is not None:
        return own(score, pools)
    if likelihood.normal_wishart is not None:
        return GaussianTables(score, likelihood.normal_wishart)
    if isinstance(likelihood, BDeuLikelihood):
        return BDeuTables(score, pools)
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
            fresh = self.blocks(node, bools_of(beside[missing], len(sets.sizes)))
            if len(known) + len(missing) > self._most_blocks:
                known = self._blocks[node] = {key: known[key] for key in keys if key in known}
            known.update(zip([keys[row] for row in missing], fresh, strict=True))
        for row, key in enumerate(keys):
            scores[row * num_subsets : (row + 1) * num_subsets] = known[key]

    def blocks(self, node: int, beside: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Scores of all subsets of the core beside each set, bool [m, d] -> [m, 2^c]."""
        core = self._pools.core[node, : self._pools.core_sizes[node]]
        subsets = np.zeros((1 << len(core), beside.shape[1]), bool)
        subsets[:, core] = np.arange(len(subsets))[:, None] >> np.arange(len(core)) & 1
        parents = (beside[:, None] | subsets).reshape(-1, beside.shape[1])
        return self._score.local(node, parents).reshape(len(beside), -1)
