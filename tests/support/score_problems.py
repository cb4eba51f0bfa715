"""Small data sets that the score tests share."""

from __future__ import annotations

import numpy as np

from gflowdag.data import Dataset
from gflowdag.score import Score, make_score


def continuous(d=5, n=60, seed=0, *, interventions=False):
    """Linear-Gaussian data with edges i -> i + 1 and 0 -> d − 1; node 1 set from outside in some rows."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, d))
    for node in range(1, d):
        values[:, node] += 0.8 * values[:, node - 1]
    values[:, d - 1] -= values[:, 0]
    return Dataset.from_array(values, interventions=_mask(n, d) if interventions else None)


def discrete(d=5, n=80, seed=0, *, interventions=False):
    """Codes with 2, 3, 4, 2, … levels, each depending on the one before."""
    rng = np.random.default_rng(seed)
    levels = [2 + node % 3 for node in range(d)]
    codes = np.empty((n, d), int)
    for node in range(d):
        previous = codes[:, node - 1] if node else 0
        codes[:, node] = (
            np.where(rng.random(n) < 0.6, previous, rng.integers(levels[node], size=n)) % levels[node]
        )
    return Dataset.from_array(codes, kinds="discrete", interventions=_mask(n, d) if interventions else None)


def plain_score(data, **changes) -> Score:
    """The score of the textbook, with nothing but the likelihood unless something is added."""
    return make_score(data, **{"score": "bge" if data.is_continuous else "bde", "prior": "uniform"} | changes)


def _mask(n, d):
    mask = np.zeros((n, d), bool)
    mask[: n // 4, 1] = True
    mask[n // 4 : n // 3, 2] = True
    return mask


def random_dags(d, n, seed=0):
    """Random DAGs of all densities, bool [n, d, d]."""
    rng = np.random.default_rng(seed)
    graphs = np.triu(rng.random((n, d, d)) < rng.random((n, 1, 1)), 1)
    for graph in graphs:
        order = rng.permutation(d)
        graph[:] = graph[np.ix_(order, order)]
    return graphs
