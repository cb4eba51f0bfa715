"""Effects with the uncertainty of graph and parameters: both are drawn, and the effect follows from them.

Given a graph, the parameters have a conjugate posterior (`score.conjugate`). A draw of them makes the graph a
network of which every effect can be computed: in linear networks the sum over directed paths of the products
of coefficients, in discrete ones the truncated factorisation. Unlike back-door adjustment (`effects`), which
regresses on the parents of the cause alone, this uses all that a graph says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray

from gflowdag.data import Dataset
from gflowdag.data.columns import Column
from gflowdag.data.description import TableDescription
from gflowdag.errors import DataError, ScoreError
from gflowdag.graph.bits import graph_keys
from gflowdag.graph.closure import transitive_closure
from gflowdag.graph.order import topological_order
from gflowdag.graph.separation import reaches
from gflowdag.posterior.effect import DiscreteEffect, EffectDraws, LinearEffect
from gflowdag.posterior.effect_scale import EffectScale
from gflowdag.posterior.elimination import Factor, outcome_given_setting, simulated_outcome
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.truth import require_known
from gflowdag.runtime.messages import unknown_name
from gflowdag.runtime.place import option, typed
from gflowdag.score import UnboundScore
from gflowdag.score.conjugate import DiscreteParameters, GaussianParameters, ParameterPosterior
from gflowdag.score.registry import bind_score

NUM_DRAWS = 10_000  # of the parameters, over all graphs
_MOST_LEVELS = 1000  # of cause times outcome


class _Case(NamedTuple):
    """Graphs that agree in all that one effect depends on."""

    graph: NDArray[np.bool_]  # [d, d]; edges that do not matter are left out
    present: bool  # whether there is a directed path
    weight: float
    num_draws: int
    members: NDArray[np.int64]  # indices of its samples


def effect(
    posterior: Posterior,
    cause: str,
    outcome: str,
    *,
    num_draws: int = NUM_DRAWS,
    random_state: int | np.random.Generator | None = 0,
) -> LinearEffect | DiscreteEffect:
    """The total effect of `cause` on `outcome`; see `Posterior.effect`."""
    parameters = known_parameters(posterior)
    for name in (cause, outcome):
        if name not in posterior.names:
            raise DataError(unknown_name(name, posterior.names))
    if cause == outcome:
        raise DataError(f"cause and outcome are both {cause!r}: a variable has no effect on itself")
    if num_draws < 1:
        raise DataError(f"num_draws must be 1 or more, got {num_draws}")
    rng = np.random.default_rng(random_state)
    if isinstance(parameters, GaussianParameters):
        return _linear(posterior, parameters, cause, outcome, num_draws, rng)
    return _discrete(posterior, parameters, cause, outcome, num_draws, rng)


def effect_matrix(
    posterior: Posterior,
    *,
    num_draws: int = 1000,
    random_state: int | np.random.Generator | None = 0,
) -> pd.DataFrame:
    """The posterior mean of every effect, [source, target]; see `Posterior.effect_matrix`."""
    parameters = known_parameters(posterior)
    rng = np.random.default_rng(random_state)
    if isinstance(parameters, GaussianParameters):
        means = _linear_means(posterior, parameters, num_draws, rng)
    else:
        fewer = posterior.resample(num_draws, rng)
        means = np.zeros((posterior.num_variables, posterior.num_variables))
        for i, j in np.argwhere(transitive_closure(fewer.samples).any(axis=0)):
            source, target = fewer.names[int(i)], fewer.names[int(j)]
            found = _discrete(fewer, parameters, source, target, num_draws, rng)
            means[i, j] = found.largest_change().mean()
    source, target = pd.Index(posterior.names, name="source"), pd.Index(posterior.names, name="target")
    return pd.DataFrame(means, index=source, columns=target)


def known_parameters(posterior: Posterior) -> ParameterPosterior:
    """What the posterior remembers of its table, or an error that says what to do."""
    if posterior.parameters is not None:
        return posterior.parameters
    kinds = {column.kind for column in posterior.table.columns} if posterior.table is not None else set[str]()
    if len(kinds) > 1:
        raise ScoreError(
            "Effects are for tables of one kind. In a table with continuous and discrete columns, scores "
            "assume the directions between the kinds, or treat levels as numbers: neither is a basis for "
            f"effects. Cut the continuous columns into bins, {option('discretize', 'quantile')}, and fit."
        )
    raise ScoreError(
        "This posterior does not hold what effects need, the posterior of the parameters: its score has none "
        "in closed form, its table was too large to keep, or it was made by hand or by an earlier version. "
        "Give it the table: "
        + typed(python="posterior.with_parameters(table).", command_line="gflowdag effect --table TABLE.")
    )


def with_parameters(
    posterior: Posterior, data: Any, score: str | UnboundScore, interventions: Any
) -> Posterior:
    """See `Posterior.with_parameters`."""
    if posterior.table is not None:
        coded = posterior.table.prepare(data, interventions=interventions)
    else:
        coded = Dataset.as_dataset(data, interventions=interventions)
        require_known(coded.names, posterior.names)
        if missing := sorted(set(posterior.names) - set(coded.names)):
            raise DataError(f"the data lack the variables {', '.join(missing)}")
        order = [coded.names.index(name) for name in posterior.names]
        intervened = None if coded.intervened is None else coded.intervened[:, order]
        columns = tuple(coded.columns[place] for place in order)
        coded = Dataset(columns, coded.values[:, order], intervened)
    parameters = bind_score(coded, score).parameter_posterior
    if parameters is None:
        raise ScoreError(
            f"{score!r} has no posterior of the parameters in closed form: effects need BGe or BDeu."
        )
    return replace(posterior, table=TableDescription.of(coded), parameters=parameters)


# -- linear networks -----------------------------------------------------------------------------------------


def _linear(
    posterior: Posterior,
    parameters: GaussianParameters,
    cause: str,
    outcome: str,
    num_draws: int,
    rng: np.random.Generator,
) -> LinearEffect:
    i, j = posterior.names.index(cause), posterior.names.index(outcome)
    any_effect = posterior.probability(_path(posterior, cause, outcome))
    scale = EffectScale(_column(posterior, cause), _column(posterior, outcome))
    values, weights = [np.zeros(0)], [np.zeros(0)]
    mean_of_sample, noise = np.full(posterior.num_samples, scale.none), 0.0
    for case in _cases(posterior, i, j, num_draws, whole_past=False):
        if case.present:
            drawn = scale.read(_path_products(parameters, case.graph, i, j, case.num_draws, rng))
            values.append(drawn)
            weights.append(np.full(case.num_draws, case.weight / case.num_draws))
            mean_of_sample[case.members] = drawn.mean()
            noise += case.weight**2 * drawn.var() / case.num_draws
    weight = _scaled(np.concatenate(weights), any_effect.probability)
    return LinearEffect(
        cause,
        outcome,
        any_effect.probability,
        any_effect.error,
        any_effect.verdict,
        any_effect.assumed,
        draws=EffectDraws(np.concatenate(values), weight, scale.none),
        meaning=scale.meaning,
        mean_error=float(np.hypot(posterior.standard_errors(mean_of_sample), np.sqrt(noise))),
    )


def _path_products(
    parameters: GaussianParameters,
    graph: NDArray[np.bool_],
    i: int,
    j: int,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """The sum over directed paths from i to j of the products of coefficients, [size]."""
    total = {i: np.ones(size)}
    for node in topological_order(graph).tolist():
        between = graph[:, node] if node != i else np.zeros(len(graph), dtype=bool)
        parents = np.flatnonzero(between).tolist()
        if parents:
            coefficients = parameters.draw_coefficients(node, parents, size, rng)
            zero = np.zeros(size)
            total[node] = sum(
                (coefficients[:, place] * total.get(parent, zero) for place, parent in enumerate(parents)),
                zero,
            )
    return total[j]


def _linear_means(
    posterior: Posterior, parameters: GaussianParameters, num_draws: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The mean effect of every variable on every other in units of the transformed columns, [d, d]."""
    d = posterior.num_variables
    _, first, inverse = np.unique(graph_keys(posterior.samples), return_index=True, return_inverse=True)
    mass = np.bincount(inverse.reshape(-1), weights=posterior.weights)
    means, share = np.zeros((d, d)), np.zeros((d, d))
    for sample, weight in zip(first, mass, strict=True):
        graph = posterior.samples[sample]
        size = max(round(num_draws * weight), 1)
        effects = np.zeros((size, d, d))  # of every variable on every other, itself included
        for node in topological_order(graph).tolist():
            parents = np.flatnonzero(graph[:, node]).tolist()
            coefficients = parameters.draw_coefficients(node, parents, size, rng)
            effects[:, :, node] = np.einsum("msp,mp->ms", effects[:, :, parents], coefficients)
            effects[:, node, node] = 1.0
        means += weight * effects.mean(axis=0)
        share += weight * transitive_closure(graph)
    known = (
        posterior.path_probabilities().to_numpy()
    )  # as for one effect, which may be known without sampling
    means = np.divide(means * known, share, out=np.zeros((d, d)), where=share > 0)
    columns = [_column(posterior, name) for name in posterior.names]
    return means * [[EffectScale(cause, outcome).unit for outcome in columns] for cause in columns]


# -- discrete networks ---------------------------------------------------------------------------------------


def _discrete(
    posterior: Posterior,
    parameters: DiscreteParameters,
    cause: str,
    outcome: str,
    num_draws: int,
    rng: np.random.Generator,
) -> DiscreteEffect:
    i, j = posterior.names.index(cause), posterior.names.index(outcome)
    any_effect = posterior.probability(_path(posterior, cause, outcome))
    levels = parameters.cardinalities
    if levels[i] * levels[j] > _MOST_LEVELS:
        raise DataError(
            f"{cause} and {outcome} have {levels[i] * levels[j]:,} pairs of levels, more than "
            f"{_MOST_LEVELS:,}: merge levels first"
        )
    drawn: list[NDArray[np.float64]] = []
    weights: list[NDArray[np.float64]] = []
    present: list[NDArray[np.bool_]] = []
    is_exact = True
    for case in _cases(posterior, i, j, num_draws, whole_past=True):
        factors = [
            Factor((*parents, node), parameters.draw_table(node, parents, case.num_draws, rng))
            for node, parents in _past(case.graph, i, j)
        ]
        found = outcome_given_setting(factors, i, j, levels)
        if found is None:
            is_exact = False
            found = simulated_outcome(factors, i, j, levels, rng)
        drawn.append(found)
        weights.append(np.full(case.num_draws, case.weight / case.num_draws))
        present.append(np.full(case.num_draws, case.present))
    weight, with_effect = np.concatenate(weights), np.concatenate(present)
    p = any_effect.probability
    for part, mass in ((with_effect, p), (~with_effect, 1 - p)):
        weight[part] = _scaled(weight[part], mass)
    return DiscreteEffect(
        cause,
        outcome,
        any_effect.probability,
        any_effect.error,
        any_effect.verdict,
        any_effect.assumed,
        cause_levels=_levels(posterior, cause, int(levels[i])),
        outcome_levels=_levels(posterior, outcome, int(levels[j])),
        distributions=np.concatenate(drawn),
        weights=weight / weight.sum(),
        present=with_effect,
        is_exact=is_exact,
    )


def _past(graph: NDArray[np.bool_], i: int, j: int) -> Iterator[tuple[int, list[int]]]:
    """The ancestors of j and j itself, each with its parents, in a topological order; i is left out."""
    ancestors = reaches(graph, (j,))
    for node in topological_order(graph).tolist():
        if ancestors[node] and node != i:
            yield node, np.flatnonzero(graph[:, node]).tolist()


# -- graphs --------------------------------------------------------------------------------------------------


def _cases(posterior: Posterior, i: int, j: int, num_draws: int, *, whole_past: bool) -> Iterator[_Case]:
    """The sampled graphs, grouped by what an effect of i on j depends on; draws in proportion to weights.

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
    keys = np.concatenate([np.packbits(graphs.reshape(len(graphs), -1), axis=1), present[:, None]], axis=1)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    order = np.argsort(inverse, kind="stable")
    bounds = np.searchsorted(inverse[order], np.arange(len(first) + 1))
    for case, sample in enumerate(first):
        members = order[bounds[case] : bounds[case + 1]]
        weight = float(posterior.weights[members].sum())
        draws = max(round(num_draws * weight), 1)
        yield _Case(graphs[sample], bool(present[sample]), weight, draws, members)


def _scaled(weights: NDArray[np.float64], mass: float) -> NDArray[np.float64]:
    """Weights with the sum `mass`, where they have any."""
    total = weights.sum()
    return weights * (mass / total) if total > 0 else weights


def _path(posterior: Posterior, cause: str, outcome: str) -> str:
    from gflowdag.posterior.statement_language import written

    return f"{written(cause)} ~> {written(outcome)}"


def _column(posterior: Posterior, name: str) -> Column:
    """How the column was coded; as it is where nobody knows."""
    if posterior.table is None:
        return Column(name, "continuous")
    return posterior.table.columns[posterior.table.names.index(name)]


def _levels(posterior: Posterior, name: str, number: int) -> tuple[Any, ...]:
    levels = None if posterior.table is None else _column(posterior, name).levels
    return tuple(range(number)) if levels is None else levels
