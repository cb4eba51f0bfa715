"""Tables of BDeu scores: blocks by one walk over refinements of the contingency table, each kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gflowdag.mcmc.unrestricted.tables import CachedTables
from gflowdag.score.bdeu import BDeuLikelihood, _all_log_marginals


class BDeuTables(CachedTables):
    """Like `CachedTables`; a set of the core costs two passes over the distinct rows."""

    def blocks(self, node: int, beside: NDArray[np.bool_]) -> NDArray[np.float64]:
        likelihood = self._score.likelihood
        assert isinstance(likelihood, BDeuLikelihood)
        codes, counts = likelihood._counts[int(likelihood.group_of_node[node])]
        core = self._pools.core[node, : self._pools.core_sizes[node]].astype(np.int64)
        num_core = np.bitwise_count(np.arange(1 << len(core), dtype=np.uint32))
        limit = self._score.constraints.max_parents
        prior = self._score.prior_log_weights
        out = np.full((len(beside), 1 << len(core)), -np.inf)
        marginals = np.empty((2, 1 << len(core)))  # without and with the node
        for row, others in enumerate(beside):
            size = int(others.sum())
            if limit is not None and size > limit:
                continue
            variables = np.concatenate([core, np.flatnonzero(others), [node]])
            for with_node in range(2):
                upper = (1 << size) - 1 | with_node << size
                _all_log_marginals(
                    codes[variables], counts, likelihood.cardinalities[variables], likelihood.ess,
                    len(core), upper, marginals[with_node],
                )  # fmt: skip
            num_parents = size + num_core.astype(np.int64)
            known = num_parents < len(prior) if limit is None else num_parents <= limit
            scores = marginals[1] - marginals[0] + prior[np.minimum(num_parents, len(prior) - 1)]
            out[row, known] = scores[known]
        return out
