"""The structure prior as methods add it to likelihoods: numbers of parents, and a factor for each edge.

log P(G) = Σ_j [ w(number of parents of j) + Σ_{i ∈ Pa_j} log f(i, j) ] + const
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.errors import ScoreError
from gflowdag.graph.bits import popcount
from gflowdag.score.priors import Prior, checked_log_weights
from gflowdag.score.subsets import member_sums


class StructurePrior(NamedTuple):
    """Log weights; what knowledge rules out is not in them."""

    counts: NDArray[np.float64]  # [d], of each number of parents; a factor that all edges share is in them
    edges: NDArray[np.float64] | None  # [d, d], of each edge, rows are sources; None where all share theirs

    @classmethod
    def of(cls, prior: Prior, edge_factor: float | NDArray[np.float64], d: int) -> StructurePrior:
        """A prior on numbers of parents times a factor for every edge, or for each, [d, d]."""
        counts, factor = checked_log_weights(prior, d), np.asarray(edge_factor, np.float64)
        if factor.shape not in ((), (d, d)) or not ((factor > 0) & (factor < np.inf)).all():
            raise ScoreError(
                f"edge_factor must be a positive number, or one for each edge, shape ({d}, {d}), not "
                f"{edge_factor!r}."
            )
        if factor.ndim:
            return cls(counts, np.log(factor))
        return cls(counts + np.arange(d) * np.log(factor), None)

    def of_sets(self, node: int, parents: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Of parent sets of a node, bool [m, d] -> [m]."""
        counts = self.counts[parents.sum(axis=1)]
        return counts if self.edges is None else counts + parents @ self.edges[:, node]

    def of_subsets(
        self, node: int, candidates: NDArray[np.integer[Any]], beside: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """Of every subset of `candidates` [k], with the parents `beside` them, bool [d] -> [2^k]."""
        beside = np.zeros(len(self.counts), bool) if beside is None else beside
        counts = self.counts[beside.sum() + popcount(np.arange(1 << len(candidates)))]
        if self.edges is None:
            return counts
        own = self.edges[:, node]
        return counts + own[beside].sum() + member_sums(own[candidates])

    def with_one_more(self, node: int, parents: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Of parent sets with each other node beside them, bool [m, d] -> [m, d].

        Finite and meaningless where the node is in the set.
        """
        larger = np.minimum(parents.sum(axis=1) + 1, len(self.counts) - 1)
        counts = np.broadcast_to(self.counts[larger][:, None], parents.shape)
        if self.edges is None:
            return counts
        own = self.edges[:, node]
        return counts + (parents @ own)[:, None] + own

    def of_graphs(self, graphs: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Of graphs, bool [n, d, d] -> [n]."""
        counts = self.counts[graphs.sum(axis=1)].sum(axis=1)
        return counts if self.edges is None else counts + (graphs * self.edges).sum(axis=(1, 2))
