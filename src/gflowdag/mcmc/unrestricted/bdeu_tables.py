"""Tables of BDeu scores: blocks by one walk over refinements of the contingency table, each kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gflowdag.mcmc.unrestricted.tables import CachedTables
from gflowdag.score.bdeu import BDeuLikelihood


class BDeuTables(CachedTables):
    """Like `CachedTables`; a set of the core costs two passes over the distinct rows."""

    def blocks(self, node: int, beside: NDArray[np.bool_]) -> NDArray[np.float64]:
        likelihood = self._score.likelihood
        assert isinstance(likelihood, BDeuLikelihood)
        group = int(likelihood.group_of_node[node])
        core = self._pools.core[node, : self._pools.core_sizes[node]].astype(np.int64)
        num_core = np.bitwise_count(np.arange(1 << len(core), dtype=np.uint32)).astype(np.int64)
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
                likelihood.fill_log_marginals(group, variables, len(core), upper, marginals[with_node])
            out[row] = marginals[1] - marginals[0] + prior[np.minimum(size + num_core, len(prior) - 1)]
            self._score.forbid(node, core, out[row], beside=others)
        return out
