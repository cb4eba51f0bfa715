"""All DAGs on a few nodes, for brute force."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from gflowdag.errors import TooLargeError
from gflowdag.graph.closure import is_acyclic

MAX_LISTED = 5  # 29,281 DAGs; 3,781,503 on six nodes


@functools.cache
def all_dags(d: int) -> NDArray[np.bool_]:
    """Every labelled DAG on `d` nodes, once each.

    Args:
        d: number of nodes, 1 to 5.

    Returns:
        bool [n, d, d], read-only, with n = 1, 3, 25, 543, 29281; the empty graph comes first.
    """
    if not 1 <= d <= MAX_LISTED:
        raise TooLargeError(f"all DAGs can be listed for 1 to {MAX_LISTED} nodes, not {d}")
    source, target = np.triu_indices(d, 1)
    # Each pair of nodes has three states: no edge, forward, backward.
    num_states: int = 3 ** len(source)
    digits = np.arange(num_states)[:, None] // 3 ** np.arange(len(source)) % 3
    graphs = np.zeros((len(digits), d, d), dtype=bool)
    graphs[:, source, target] = digits == 1
    graphs[:, target, source] = digits == 2
    graphs = graphs[is_acyclic(graphs)]
    graphs.flags.writeable = False  # the cache hands out one array to all callers
    return graphs
