"""Tables from a score's own prior: a graph, its parameters given the graph, and rows given both.

On such tables the posterior of that score is the truth about what can be known, so that its probabilities
can be checked against frequencies. All scores here are regressions in the cells of the discrete parents: BDeu
where all columns are discrete, BGe where none is, and both kinds conditional Gaussian or generalised linear.

An equivalent sample size that is averaged out within the set function, `M(S) = log mean_e exp M_e(S)`, is
one random size for a complete graph on `S`. So the local likelihood of a node is a mixture over sizes whose
weights `∝ exp M_e(parents)` depend on the rows of its parents: size and table of a node are drawn once the
columns of its parents are there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gflowdag.data.mixed_network import MixedNetwork, cells, draw_column
from gflowdag.errors import ScoreError
from gflowdag.graph.order import topological_order
from gflowdag.graph.random import by_parent_counts
from gflowdag.score.bdeu import BDeu
from gflowdag.score.cell_limit import cell_limit
from gflowdag.score.local_score import UnboundScore
from gflowdag.score.parameter_prior import HasParameterPrior, ParameterPrior, no_parameter_prior
from gflowdag.score.prior_regressions import in_every_cell, logistic_slopes, with_shifts
from gflowdag.score.priors import Prior

_MOST_CELLS = 1e5
_ATTEMPTS = 20_000  # graphs that are drawn until one is allowed


def draw_graph(
    num_rows: int,
    num_levels: NDArray[np.int64],
    score: UnboundScore,
    prior: Prior,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """A graph of the structure prior, within what the score allows on so many rows, bool [d, d].

    Args:
        num_rows: of the table to come: the limit on the cells of a family depends on it.
        num_levels: of each variable, int [d], 0 for a continuous one.
        score: see `draw_table`.
        prior: on structures.
        rng: source of randomness.
    """
    d = len(num_levels)
    _, dirichlet, deviation, edge_factors = _parameter_prior(score, num_levels)
    levels = np.maximum(num_levels, 1).astype(float)
    weights = np.array(prior.log_weights(d), np.float64)
    log_factors, limit = np.log(edge_factors.between_kinds), None
    groups = num_levels > 0 if log_factors.any() else None
    if dirichlet is not None and (per_row := dirichlet.cells_per_row) is not None:
        limit = cell_limit(levels, np.full(d, per_row * num_rows), np.zeros((d, d), bool))
        fewest = np.cumprod(np.sort(levels))  # cells of the smallest sets of parents of each size
        weights[2:][fewest[1 : d - 1] > limit.most.max()] = -np.inf
    for _ in range(_ATTEMPTS):
        (graph,) = by_parent_counts(weights, 1, rng, groups=groups, log_factors=log_factors)
        if deviation is None and graph[np.ix_(num_levels == 0, num_levels > 0)].any():
            continue
        if limit is None or all(limit.allows(node, graph[None, :, node])[0] for node in range(d)):
            return graph
    raise ScoreError(
        f"None of {_ATTEMPTS} graphs drawn from the prior is allowed by the score: take fewer variables, or "
        "give a graph."
    )


def draw_table(
    graph: NDArray[np.bool_],
    num_rows: int,
    num_levels: NDArray[np.int64],
    score: UnboundScore,
    rng: np.random.Generator,
) -> tuple[MixedNetwork, NDArray[np.float64]]:
    """Parameters of the prior and a table of them.

    Args:
        graph: bool [d, d].
        num_rows: n.
        num_levels: of each variable, int [d], 0 for a continuous one.
        score: one that has a prior for columns of these kinds (`HasParameterPrior`).
        rng: source of randomness.

    Returns:
        The network and the values, float64 [n, d]; discrete columns hold codes.
    """
    d = len(graph)
    normal, dirichlet, deviation, _ = _parameter_prior(score, num_levels)
    if deviation is None and (graph & (num_levels == 0)[:, None] & (num_levels > 0)).any():
        raise ScoreError(f"{score!r} gives no discrete variable a continuous parent, but the graph does.")
    values = np.zeros((num_rows, d))
    coefficients: list[NDArray[np.float64]] = [np.empty(0)] * d
    deviations: list[NDArray[np.float64]] = [np.empty(0)] * d
    for node in topological_order(graph).tolist():
        parents, levels = graph[:, node], int(num_levels[node])
        is_discrete = parents & (num_levels > 0)
        count = float(num_levels[is_discrete].astype(float).prod())
        if count > _MOST_CELLS:
            raise ScoreError(
                f"A variable has more than {_MOST_CELLS:g} combinations of discrete parents; use fewer "
                "edges or levels."
            )
        if levels:
            assert dirichlet is not None
            size = _sample_size(values, is_discrete, num_levels, dirichlet, rng)
            tables = rng.dirichlet(np.full(levels, size / (count * levels)), size=int(count))
            with np.errstate(divide="ignore"):
                own: NDArray[np.float64] = np.log(tables)[:, :, None]
            noise: NDArray[np.float64] = np.zeros(int(count))
            if deviation is not None:
                rows = cells(values, parents, num_levels)
                num_numbers = int((parents & (num_levels == 0)).sum())
                slopes = logistic_slopes(rows, own.shape[:2], num_numbers, deviation, rng)
                own = np.concatenate([own, slopes], axis=2)
        elif deviation is not None and is_discrete.any() and rng.random() < 0.5:
            own, noise = with_shifts(normal, values, parents, num_levels, int(count), rng)
        else:
            numbers = np.flatnonzero(parents & (num_levels == 0))
            variances = int(count) if deviation is None else 1
            own, noise = in_every_cell(normal, node, numbers, int(count), rng, num_variances=variances)
        values[:, node] = draw_column(values, parents, num_levels, levels, own, noise, rng)
        coefficients[node], deviations[node] = own, noise
    names = tuple(f"X{number}" for number in range(1, d + 1))
    return MixedNetwork(names, graph, num_levels, tuple(coefficients), tuple(deviations)), values


def _parameter_prior(score: UnboundScore, num_levels: NDArray[np.int64]) -> ParameterPrior:
    if not isinstance(score, HasParameterPrior):
        raise no_parameter_prior(score)
    return score.parameter_prior(num_levels > 0)


def _sample_size(
    values: NDArray[np.float64],
    parents: NDArray[np.bool_],
    num_levels: NDArray[np.int64],
    score: BDeu,
    rng: np.random.Generator,
) -> float:
    """An equivalent sample size, in proportion to `exp M_e` of the parents' columns."""
    sizes = np.atleast_1d(np.asarray(score.ess, np.float64))
    if len(sizes) == 1:
        return float(sizes[0])
    occupied = np.unique(cells(values, parents, num_levels), return_counts=True)[1]
    pseudo_count = sizes / num_levels[parents].astype(float).prod()
    logs = gammaln(sizes) - gammaln(len(values) + sizes)
    for size, count in enumerate(pseudo_count):
        logs[size] += (gammaln(occupied + count) - gammaln(count)).sum()
    weights = np.exp(logs - np.logaddexp.reduce(logs))
    return float(rng.choice(sizes, p=weights / weights.sum()))
