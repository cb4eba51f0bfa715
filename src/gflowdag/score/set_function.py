"""Scores that are differences of one set function: the marginal likelihoods BGe and BDeu.

Under BGe and BDeu the local score of node `j` with parents `P` is `M(P ∪ j) − M(P)`, where `M(S)` is the log
marginal likelihood of the columns `S` under the complete DAG on them: that is what score equivalence means.
So a score of this form only has to know `M`, and the `2^d` values of one `M` serve the tables of all nodes.

Interventions (Cooper & Yoo, 1999): the rows in which `j` was set from outside say nothing about how `j`
depends on its parents; they are left out of `j`'s local score and kept in all others. Nodes with the same
rows form one *group* with one `M`; group 0 is always the pooled data, all rows.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gflowdag.runtime.progress import Progress, silent
from gflowdag.score.local_score import LocalScore


class SetFunctionScore(LocalScore):
    """A score `M(P ∪ j) − M(P)`: a subclass knows `M`, the log marginal likelihood of a set of columns.

    Attributes:
        group_of_node: int [d], the group of rows that counts for each node; 0 is the pooled data.
    """

    uses_interventions = True
    group_of_node: NDArray[np.int64]

    @abstractmethod
    def log_marginals(self, group: int, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
        """`M(S)` on the rows of `group` for given sets of columns, bool [m, d] -> [m]."""

    @abstractmethod
    def all_log_marginals(
        self, group: int, variables: NDArray[np.integer[Any]], progress: Progress = silent
    ) -> NDArray[np.float64]:
        """`M(S)` on the rows of `group` for every subset of `variables` [k] -> [2^k].

        Bit `i` of the index stands for `variables[i]`.
        """

    def extended_log_marginals(self, group: int, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
        """`M(S ∪ i)` on the rows of `group` for given sets and every column `i`, bool [m, d] -> [m, d]."""
        extended = subsets[:, None, :] | np.eye(self.num_variables, dtype=bool)
        return self.log_marginals(group, extended.reshape(-1, self.num_variables)).reshape(subsets.shape)

    @property
    def score_equivalent(self) -> bool:
        """Whether all DAGs of an equivalence class have the same likelihood: without interventions."""
        return not np.any(self.group_of_node)

    def local(self, node: int, parents: NDArray[np.bool_]) -> NDArray[np.float64]:
        group = int(self.group_of_node[node])
        return self.log_marginals(group, _with(parents, node)) - self.log_marginals(group, parents)

    def extended_local(self, node: int, parents: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Log marginal likelihood of `node` given each set and one more parent, bool [m, d] -> [m, d].

        Zero where the parent is the node itself.
        """
        group = int(self.group_of_node[node])
        family = self.extended_log_marginals(group, _with(parents, node))
        return family - self.extended_log_marginals(group, parents)

    def local_subsets(self, node: int, candidates: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Log marginal likelihood of `node` given every subset of `candidates` [k] -> [2^k]."""
        family = np.append(candidates, node)  # the node is the highest bit
        without, with_node = self.all_log_marginals(int(self.group_of_node[node]), family).reshape(2, -1)
        return with_node - without

    def tables(self, progress: Progress = silent) -> NDArray[np.float64]:
        """Log marginal likelihood of every node given every parent set, [d, 2^(d−1)], compressed index."""
        d = self.num_variables
        out = np.empty((d, 1 << (d - 1)))
        groups = np.unique(self.group_of_node)
        for position, group in enumerate(groups):
            marginals = self.all_log_marginals(
                int(group), np.arange(d), _part(progress, position, len(groups))
            )
            for node in np.flatnonzero(self.group_of_node == group):
                # Axes: bits above the node, the node's own bit, bits below; dropping the middle compresses.
                split = marginals.reshape(-1, 2, 1 << node)
                np.subtract(split[:, 1], split[:, 0], out=out[node].reshape(-1, 1 << node))
            progress(position + 1, len(groups))
        return out


def _with(subsets: NDArray[np.bool_], variable: int) -> NDArray[np.bool_]:
    joined = np.array(subsets, bool)
    joined[:, variable] = True
    return joined


def _part(progress: Progress, position: int, num_parts: int) -> Progress:
    """Progress of one part of several."""

    def report(done: float, total: float, /, **values: float) -> None:
        progress(position + done / total, num_parts, **values)

    return report


def row_groups(
    intervened: NDArray[np.bool_] | None, num_rows: int, num_variables: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Which rows count for which node.

    Args:
        intervened: bool [n, d], True where the variable was set from outside; None for observational data.
        num_rows: `n`.
        num_variables: `d`.

    Returns:
        `group_of_node` int [d] and the rows of each group, bool [g, n]; group 0 has all rows.
    """
    everything = np.ones((1, num_rows), bool)
    if intervened is None:
        return np.zeros(num_variables, np.int64), everything
    kept = ~np.asarray(intervened, bool).T
    patterns, pattern_of_node = np.unique(kept, axis=0, return_inverse=True)
    partial = np.flatnonzero(~patterns.all(axis=1))
    group_of_pattern = np.zeros(len(patterns), np.int64)
    group_of_pattern[partial] = 1 + np.arange(len(partial))
    rows = np.concatenate([everything, patterns[partial]])
    return group_of_pattern[pattern_of_node.reshape(-1)], rows
