"""The posterior of a Gaussian network under a normal-Wishart prior, in closed form."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class NormalWishart(NamedTuple):
    """What determines every local score of BGe, and the posteriors of regression coefficients.

    Nodes whose scores rest on the same rows form a group; group 0 has all rows.
    """

    scatter: NDArray[np.float64]  # [g, d, d], posterior scale matrix R of each group of rows
    degrees: NDArray[np.float64]  # [g], ν' = N + α_w − d of each group
    constants: NDArray[np.float64]  # [g, d], c_l: the part of a score with l parents without determinants
    scale: float  # the prior scale t, a lower bound of every eigenvalue of `scatter`
    group_of_node: NDArray[np.int64]  # [d]

    def log_marginals(
        self, group: int, sizes: NDArray[np.integer[Any]], log_determinants: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """`M(S) = Σ_{k<n} c_k − ½ (ν' + n) log |R_SS|` with `n = |S|`, for many sets of columns, [m].

        Args:
            group: whose rows count.
            sizes: number of columns of each set, [m].
            log_determinants: `log |R_SS|`, [m].
        """
        constants = np.append(0.0, self.constants[group].cumsum())
        weight = 0.5 * (self.degrees[group] + np.arange(len(constants)))
        return constants[sizes] - weight[sizes] * log_determinants
