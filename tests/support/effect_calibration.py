"""Whether posteriors of effects are calibrated on tables whose graph and parameters come from the prior."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from gflowdag.graph import all_dags, transitive_closure


class Outcome(NamedTuple):
    """How one true effect stands to its posterior."""

    rank: float  # the posterior mass below the true effect, at random within that of its atom
    probability: float  # stated, that there is any effect
    present: bool  # whether there is one


def outcome(draws: Any, true: float, present: bool, rng: np.random.Generator) -> Outcome:
    """The rank of the `true` effect in `EffectDraws` whose mass without an effect is at zero."""
    absent = 1 - draws.probability
    below = draws.weights @ (draws.values < true) + absent * (true > 0)
    return Outcome(below + rng.random() * absent * (true == 0), draws.probability, present)


def normal_wishart_tables(
    rng: np.random.Generator, num_tables: int, num_rows: int = 30
) -> Iterator[tuple[pd.DataFrame, float, bool]]:
    """Tables of X1, X2, X3, the true effect of X1 on X3, and whether there is one.

    Graph and parameters come from the prior of BGe with its default parameters.
    """
    d, graphs = 3, all_dags(3)
    wishart = stats.wishart(df=d + 2, scale=2 * np.eye(d))  # t = (α_w − d − 1) / 2 = 1/2
    for _ in range(num_tables):
        graph = graphs[rng.integers(len(graphs))]
        order = np.argsort(transitive_closure(graph).sum(axis=0), kind="stable")
        coefficients, rows = np.zeros((d, d)), np.zeros((num_rows, d))
        for node in order:  # parameters of each node from a law of its own: they are independent
            covariance = np.linalg.inv(wishart.rvs(random_state=rng))
            mean = rng.multivariate_normal(np.zeros(d), covariance)
            parents = np.flatnonzero(graph[:, node])
            slope = np.linalg.solve(covariance[np.ix_(parents, parents)], covariance[parents, node])
            deviation = np.sqrt(covariance[node, node] - covariance[node, parents] @ slope)
            coefficients[parents, node] = slope
            centred = rows[:, parents] - mean[parents]
            rows[:, node] = mean[node] + centred @ slope + deviation * rng.normal(size=len(rows))
        present = bool(transitive_closure(graph)[0, 2])
        truth = np.linalg.inv(np.eye(d) - coefficients)[0, 2] * present
        yield pd.DataFrame(rows, columns=["X1", "X2", "X3"]), truth, present


def assert_calibrated(found: Sequence[Outcome]) -> None:
    """Ranks are uniform, and there are as many effects as the stated probabilities add up to."""
    ranks, p, present = np.array(found, dtype=float).T
    of_ranks = float(stats.kstest(ranks, "uniform").pvalue)
    error = np.sqrt((p * (1 - p)).sum())
    of_atom = float(2 * stats.norm.sf(abs(present.sum() - p.sum()) / error))
    print(
        f"{len(ranks)} tables: ranks p = {of_ranks:.3f}; effects {present.sum():.0f}, stated "
        f"{p.sum():.1f} ± {error:.1f}, p = {of_atom:.3f}"
    )
    assert of_ranks > 0.01
    assert of_atom > 0.01
