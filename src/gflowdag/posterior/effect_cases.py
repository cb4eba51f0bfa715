"""What all effects start from: graphs grouped by what an effect depends on, columns and their levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.data.columns import Column
from gflowdag.graph.closure import transitive_closure
from gflowdag.graph.order import topological_order
from gflowdag.graph.separation import reaches
from gflowdag.posterior.effect import Effect
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.statement_language import written


class Case(NamedTuple):
    """Samples that agree in all that one effect depends on."""

    graph: NDArray[np.bool_]  # [d, d]; edges that do not matter are left out
    present: bool  # whether there is a directed path
    weight: float
    num_draws: int
    members: NDArray[np.int64]  # indices of its samples
    table: int  # whose parameters its samples have


def graph_cases(
    posterior: Posterior,
    of_sample: NDArray[np.int64],
    i: int,
    j: int,
    num_draws: int,
    *,
    whole_past: bool,
) -> Iterator[Case]:
    """The sampled graphs, grouped by what an effect of i on j depends on; draws in proportion to weights.

    That is their table, which `of_sample` numbers [n], and a part of the graph.

    In a linear network that is the parents of every node on a directed path; in a discrete one (`whole_past`)
    the parents of every ancestor of j, with the edges into i cut.
    """
    graphs = posterior.samples.copy()
    present = reaches(graphs, (j,))[:, i]
    graphs[:, :, i] = False  # i is set from outside
    relevant = reaches(graphs, (j,))
    if not whole_past:
        relevant &= (transitive_closure(graphs) | np.eye(len(posterior.names), dtype=bool))[:, i]
    graphs &= relevant[:, None, :]
    packed = np.packbits(graphs.reshape(len(graphs), -1), axis=1)
    keys = np.column_stack([packed, present, of_sample])
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    order = np.argsort(inverse, kind="stable")
    bounds = np.searchsorted(inverse[order], np.arange(len(first) + 1))
    for case, sample in enumerate(first):
        members = order[bounds[case] : bounds[case + 1]]
        weight = float(posterior.weights[members].sum())
        draws = max(round(num_draws * weight), 1)
        yield Case(graphs[sample], bool(present[sample]), weight, draws, members, int(of_sample[sample]))


def any_effect(posterior: Posterior, cause: str, outcome: str) -> Effect:
    """Whether there is an effect at all: whether a directed path leads from one to the other."""
    found = posterior.probability(f"{written(cause)} ~> {written(outcome)}")
    return Effect(cause, outcome, found.probability, found.error, found.verdict, found.assumed)


def weights_of_draws(
    cases: Sequence[Case], probability: float
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The weight of each draw, and whether there is an effect in its graph, which has this probability."""
    weights = np.concatenate([np.full(case.num_draws, case.weight / case.num_draws) for case in cases])
    present = np.concatenate([np.full(case.num_draws, case.present) for case in cases])
    for part, mass in ((present, probability), (~present, 1 - probability)):
        weights[part] = scaled(weights[part], mass)
    return weights / weights.sum(), present


def scaled(weights: NDArray[np.float64], mass: float) -> NDArray[np.float64]:
    """Weights with the sum `mass`, where they have any."""
    total = weights.sum()
    return weights * (mass / total) if total > 0 else weights


def column_of(posterior: Posterior, name: str) -> Column:
    """How the column was coded; as it is where nobody knows."""
    if posterior.table is None:
        return Column(name, "continuous")
    return posterior.table.columns[posterior.table.names.index(name)]


def levels_of(posterior: Posterior, name: str, number: int) -> tuple[Any, ...]:
    levels = None if posterior.table is None else column_of(posterior, name).levels
    return tuple(range(number)) if levels is None else levels


def past_of(graph: NDArray[np.bool_], i: int, j: int) -> Iterator[tuple[int, list[int]]]:
    """The ancestors of j and j itself, each with its parents, in a topological order; i is left out."""
    ancestors = reaches(graph, (j,))
    for node in topological_order(graph).tolist():
        if ancestors[node] and node != i:
            yield node, np.flatnonzero(graph[:, node]).tolist()
