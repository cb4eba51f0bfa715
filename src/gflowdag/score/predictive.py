"""Rows that have not been seen yet: draws of them, and how likely they are under each graph.

Both follow from the posterior of the parameters, so no table is needed, but for tables of both kinds, which
are kept and scored anew. Rows of an experiment have one variable set from outside; its own factor is left
out, as in the score of interventional data (Cooper & Yoo). Rows of continuous tables are deviations from the
posterior means, which are taken for known.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from gflowdag.data.mixed_network import draw_column
from gflowdag.errors import TooLargeError
from gflowdag.graph.bits import distinct_parent_sets
from gflowdag.graph.order import topological_order
from gflowdag.score.conjugate import (
    MAX_CELLS,
    ConjugateParameters,
    DiscreteParameters,
    GaussianParameters,
    ParameterPosterior,
)
from gflowdag.score.mixed_parameters import MixedParameters
from gflowdag.score.rescored import rescored_predictive


def draw_rows(
    parameters: ParameterPosterior,
    graph: NDArray[np.bool_],
    num_rows: int,
    target: int | None,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Tables of a network on `graph`, each with parameters of its own, [size, num_rows, d].

    The `target` is set: a number to draws of a normal distribution as wide as the column, a level to any of
    them with equal probability. `None` sets nothing.
    """
    d = len(graph)
    rows = np.zeros((size, num_rows, d))
    for node in topological_order(graph).tolist():
        parents = np.flatnonzero(graph[:, node]).tolist()
        if isinstance(parameters, MixedParameters):
            rows[:, :, node] = _of_both_kinds(parameters, node, graph[:, node], rows, node == target, rng)
        elif isinstance(parameters, GaussianParameters):
            rows[:, :, node] = _numbers(parameters, node, parents, rows, node == target, rng)
        else:
            rows[:, :, node] = _codes(parameters, node, parents, rows, node == target, rng)
    return rows


def log_predictive(
    parameters: ParameterPosterior,
    graphs: NDArray[np.bool_],
    rows: NDArray[np.float64],
    target: int | None,
) -> NDArray[np.float64]:
    """Log density of each table of rows given each graph and what is known, parameters integrated out.

    Args:
        parameters: their posterior.
        graphs: bool [n, d, d].
        rows: float64 [k, m, d], as `draw_rows` gives them.
        target: the variable that was set, whose density is not part of it.

    Returns:
        float64 [k, n].
    """
    if isinstance(parameters, MixedParameters):
        return rescored_predictive(parameters.score, parameters.data, graphs, rows, target)
    change = _Changes(parameters, rows)
    out = np.zeros((len(rows), len(graphs)))
    for node in range(graphs.shape[1]):
        if node == target:
            continue
        group = int(parameters.group_of_node[node])
        sets, which = distinct_parent_sets(graphs, node)
        local = np.empty((len(rows), len(sets)))
        for place, chosen in enumerate(sets):
            parents = tuple(np.flatnonzero(chosen).tolist())
            family = tuple(sorted((*parents, node)))
            local[:, place] = change.of(group, family) - change.of(group, parents)
        out += local[:, which]
    return out


class _Changes:
    """What rows add to the set function `M(S)` of a score, each set computed once."""

    def __init__(self, parameters: ConjugateParameters, rows: NDArray[np.float64]):
        self._parameters, self._rows = parameters, rows
        self._known: dict[tuple[int, tuple[int, ...]], NDArray[np.float64]] = {}
        if isinstance(parameters, GaussianParameters):
            self._products = np.einsum("kmi,kmj->kij", rows, rows)
        else:
            self._levels = rows.astype(np.int64)

    def of(self, group: int, members: tuple[int, ...]) -> NDArray[np.float64]:
        """`M(S)` of the rows seen and the new ones less that of the rows seen, [k]."""
        if not members:
            return np.zeros(len(self._rows))
        key = (group, members)
        if key not in self._known:
            if isinstance(self._parameters, GaussianParameters):
                self._known[key] = self._of_numbers(self._parameters, group, members)
            else:
                self._known[key] = self._of_codes(self._parameters, group, members)
        return self._known[key]

    def _of_numbers(
        self, parameters: GaussianParameters, group: int, members: tuple[int, ...]
    ) -> NDArray[np.float64]:
        """Matrix-t density: the covariance is inverse-Wishart with matrix `R_SS` and `ν' + |S|` degrees."""
        chosen = np.array(members)
        scatter = parameters.scatter[group][chosen[:, None], chosen]
        size, m = len(members), self._rows.shape[1]
        degrees = parameters.degrees[group] + size
        steps = np.arange(size)
        constant = (
            gammaln((degrees + m - steps) / 2).sum()
            - gammaln((degrees - steps) / 2).sum()
            - size * m / 2 * math.log(math.pi)
        )
        before = np.linalg.slogdet(scatter)[1]
        after = np.linalg.slogdet(scatter + self._products[:, chosen[:, None], chosen])[1]
        return constant + degrees / 2 * before - (degrees + m) / 2 * after

    def _of_codes(
        self, parameters: DiscreteParameters, group: int, members: tuple[int, ...]
    ) -> NDArray[np.float64]:
        shape = tuple(int(r) for r in parameters.cardinalities[list(members)])
        cells = math.prod(shape)
        if cells > MAX_CELLS:
            raise TooLargeError(
                f"A variable with {len(members) - 1} parents has a table of {cells:,} cells: bound the "
                "parents by knowledge (max_parents)."
            )
        seen: NDArray[np.float64] = np.bincount(
            np.ravel_multi_index(tuple(parameters.codes[list(members)]), shape),
            parameters.counts[group],
            minlength=cells,
        ).astype(np.float64)
        k, m = self._levels.shape[:2]
        new = np.ravel_multi_index(tuple(self._levels[:, :, v] for v in members), shape)
        pair, added = _occupied(np.asarray(np.arange(k)[:, None] * cells + new, np.int64), k * cells)
        table, cell = np.divmod(pair, cells)
        total = int(seen.sum())
        before = _log_marginals(seen[seen > 0], parameters.ess, cells)
        out = np.empty((len(parameters.ess), k))
        for place, ess in enumerate(parameters.ess / cells):
            rising = gammaln(seen[cell] + added + ess) - gammaln(seen[cell] + ess)
            out[place] = before[place] + np.bincount(table, rising, minlength=k)
        sizes = parameters.ess  # averaged within the set function, as BDeu does
        out -= gammaln(total + m + sizes)[:, None] - gammaln(sizes)[:, None]
        return logsumexp(out, axis=0) - logsumexp(before - gammaln(total + sizes) + gammaln(sizes))


def _occupied(cell: NDArray[np.int64], number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cells that occur, of so many, and how often each does."""
    if number > 16 * cell.size:
        return np.unique(cell, return_counts=True)
    counts = np.bincount(cell.reshape(-1), minlength=number)
    found = np.flatnonzero(counts)
    return found, counts[found]


def _log_marginals(
    counts: NDArray[np.float64], sizes: NDArray[np.float64], cells: int
) -> NDArray[np.float64]:
    """`Σ_cells lnΓ(count + e/q) − lnΓ(e/q)` for each equivalent sample size e."""
    each = sizes[:, None] / cells
    return (gammaln(counts + each) - gammaln(each)).sum(axis=1)


def _numbers(
    parameters: GaussianParameters,
    node: int,
    parents: list[int],
    rows: NDArray[np.float64],
    is_set: bool,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    size, m, _ = rows.shape
    if is_set:
        width = np.sqrt(parameters.scatter[0, node, node] / parameters.degrees[0])
        return rng.normal(size=(size, m)) * width
    coefficients, deviation = parameters.draw_regressions(node, parents, size, rng)
    mean = np.einsum("kml,kl->km", rows[:, :, parents], coefficients)
    return mean + rng.normal(size=(size, m)) * deviation[:, None]


def _codes(
    parameters: DiscreteParameters,
    node: int,
    parents: list[int],
    rows: NDArray[np.float64],
    is_set: bool,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    size, m, _ = rows.shape
    levels = int(parameters.cardinalities[node])
    if is_set:
        return rng.integers(levels, size=(size, m)).astype(np.float64)
    tables = parameters.draw_table(node, parents, size, rng)
    place = rows[:, :, parents].astype(np.int64)
    chosen = tables[(np.arange(size)[:, None], *(place[:, :, axis] for axis in range(len(parents))))]
    upper = np.cumsum(np.broadcast_to(chosen, (size, m, levels)), axis=-1)
    return (rng.random((size, m, 1)) > upper[:, :, :-1]).sum(axis=-1).astype(np.float64)


def _of_both_kinds(
    parameters: MixedParameters,
    node: int,
    parents: NDArray[np.bool_],
    rows: NDArray[np.float64],
    is_set: bool,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    size, m, _ = rows.shape
    levels = int(parameters.num_levels[node])
    if is_set and levels:
        return rng.integers(levels, size=(size, m)).astype(np.float64)
    if is_set:
        column = parameters.values[:, node]
        return column.mean() + column.std() * rng.normal(size=(size, m))
    drawn = parameters.draw(node, parents, size, rng)
    columns = [
        draw_column(table, parents, parameters.num_levels, levels, coefficients, deviations, rng)
        for table, coefficients, deviations in zip(rows, drawn.coefficients, drawn.deviations, strict=True)
    ]
    return np.stack(columns)
