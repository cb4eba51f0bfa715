"""How likely rows are that have not been seen yet, by any score: that of all rows less that of those seen.

For every score that is a log marginal likelihood this is the predictive density, parameters integrated out.
Every table of new rows is one binding of the score, so it is slow where the score is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gflowdag.data import Dataset
from gflowdag.graph.bits import distinct_parent_sets
from gflowdag.score.local_score import UnboundScore, local_values


def rescored_predictive(
    score: UnboundScore,
    data: Dataset,
    graphs: NDArray[np.bool_],
    rows: NDArray[np.float64],
    target: int | None,
) -> NDArray[np.float64]:
    """Log density of each table of rows given each graph and the rows seen.

    Args:
        score: hyper-parameters.
        data: the rows seen.
        graphs: bool [n, d, d].
        rows: float64 [k, m, d], coded as `data` is.
        target: the variable that was set in them, whose density is not part of it; None for nothing.

    Returns:
        float64 [k, n].
    """
    d = data.num_variables
    nodes = [node for node in range(d) if node != target]
    sets, which = zip(*(distinct_parent_sets(graphs, node) for node in nodes), strict=True)
    before = score.bind(data)
    seen = [local_values(before, node, chosen) for node, chosen in zip(nodes, sets, strict=True)]
    out = np.zeros((len(rows), len(graphs)))
    for place, more in enumerate(rows):
        after = score.bind(_with_rows(data, more, target))
        for node, chosen, graph, known in zip(nodes, sets, which, seen, strict=True):
            out[place] += (local_values(after, node, chosen) - known)[graph]
    return out


def _with_rows(data: Dataset, rows: NDArray[np.float64], target: int | None) -> Dataset:
    """The table with further rows, in which the `target` was set."""
    intervened = data.intervened
    if intervened is not None or target is not None:
        before = np.zeros(data.values.shape, bool) if intervened is None else intervened
        new = np.zeros(rows.shape, bool)
        if target is not None:
            new[:, target] = True
        intervened = np.concatenate([before, new])
    return replace(data, values=np.concatenate([data.values, rows]), intervened=intervened)
