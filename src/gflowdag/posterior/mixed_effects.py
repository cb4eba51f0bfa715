"""Effects in networks of both kinds: simulated rows of drawn networks in which the cause is set.

A discrete cause is set to each of its levels, a continuous one to each of its quartiles. All settings share
their random numbers, which are spread evenly over each variable (a Latin hypercube): of a linear network the
means are then nearly exact. The outcome itself is not simulated; its mean, or the probabilities of its
levels, are averaged over the rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, softmax

from gflowdag.posterior.effect import DiscreteEffect
from gflowdag.posterior.effect_cases import (
    any_effect,
    column_of,
    graph_cases,
    levels_of,
    past_of,
    weights_of_draws,
)
from gflowdag.posterior.mean_effect import MeanEffect
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.sample_parameters import SampleParameters
from gflowdag.score.mixed_parameters import MixedParameters, Predictors

NUM_DRAWS = 2000  # of the parameters, over all graphs
NUM_ROWS = 256  # that are simulated for each draw
_AT_ONCE = 256  # draws


_Family: TypeAlias = tuple[int, int, tuple[int, ...]]  # a table, a node, its parents


class _Settings(NamedTuple):
    """What the cause is set to."""

    coded: NDArray[np.float64]  # [s]
    shown: tuple[Hashable, ...]


def mixed_effect(
    posterior: Posterior,
    parameters: SampleParameters,
    cause: str,
    outcome: str,
    num_draws: int,
    rng: np.random.Generator,
) -> MeanEffect | DiscreteEffect:
    """The mean of the outcome, or the distribution of its levels, for each setting of the cause."""
    i, j = posterior.names.index(cause), posterior.names.index(outcome)
    known = any_effect(posterior, cause, outcome)
    example = _mixed(parameters, int(parameters.of_sample[0]))
    num_levels = example.num_levels
    settings = _settings(posterior, example, i)
    levels = int(num_levels[j])
    cases = list(graph_cases(posterior, parameters.of_sample, i, j, num_draws, whole_past=True))
    wanted: dict[_Family, int] = {}
    for case in cases:
        for node, parents in past_of(case.graph, i, j):
            key = (case.table, node, tuple(parents))
            wanted[key] = wanted.get(key, 0) + case.num_draws
    drawn: dict[_Family, Predictors] = {}  # every family once: many graphs share it
    for (table, node, parents), size in sorted(wanted.items()):
        chosen = np.zeros(posterior.num_variables, bool)
        chosen[list(parents)] = True
        drawn[table, node, parents] = _mixed(parameters, table).draw(node, chosen, size, rng)
    found: list[NDArray[np.float64]] = []
    used = dict.fromkeys(wanted, 0)
    for case in cases:
        network: dict[int, tuple[NDArray[np.int64], Predictors]] = {}
        for node, parents in past_of(case.graph, i, j):
            key = (case.table, node, tuple(parents))
            first, own = used[key], drawn[key]
            part = slice(first, first + case.num_draws)
            network[node] = (np.array(parents, np.int64), Predictors(own[0][part], own[1][part]))
            used[key] += case.num_draws
        coded = settings.coded if case.present else settings.coded[:1]
        values = _outcomes(network, num_levels, i, j, coded, case.num_draws, rng)
        found.append(np.broadcast_to(values, (len(settings.coded), *values.shape[1:])).swapaxes(0, 1))
    weights, present = weights_of_draws(cases, known.probability)
    values = np.concatenate(found)
    if levels:
        shown = levels_of(posterior, outcome, levels)
        return DiscreteEffect(
            **vars(known),
            cause_levels=settings.shown,
            outcome_levels=shown,
            distributions=values,
            weights=weights,
            present=present,
            is_exact=False,
        )
    column = column_of(posterior, outcome)
    what = "The value at the mean rank" if column.scores else "The median" if column.log else "The mean"
    how = "level" if num_levels[i] else "quartile"
    meaning = f"{what} of {outcome} where {cause} is set to each {how}."
    means = column.decode(values[:, :, 0])
    return MeanEffect(
        **vars(known),
        settings=settings.shown,
        means=means,
        weights=weights,
        present=present,
        meaning=meaning,
    )


def _mixed(parameters: SampleParameters, table: int) -> MixedParameters:
    found = parameters.of(table)
    assert isinstance(found, MixedParameters)
    return found


def _settings(posterior: Posterior, parameters: MixedParameters, i: int) -> _Settings:
    """The levels of a discrete variable, the quartiles of a continuous one."""
    name, levels = posterior.names[i], int(parameters.num_levels[i])
    if levels:
        return _Settings(np.arange(float(levels)), levels_of(posterior, name, levels))
    values = parameters.values[:, i]
    if parameters.intervened is not None and not parameters.intervened[:, i].all():
        values = values[~parameters.intervened[:, i]]
    coded = np.quantile(values, [0.25, 0.5, 0.75])
    measured = column_of(posterior, name).decode(coded)
    return _Settings(coded, tuple(float(f"{value:.6g}") for value in measured))


def _outcomes(
    network: Mapping[int, tuple[NDArray[np.int64], Predictors]],
    num_levels: NDArray[np.int64],
    i: int,
    j: int,
    settings: NDArray[np.float64],
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """What j is expected to be where i is set, [settings, size, 1 or levels]; nodes in topological order."""
    parts = [
        _some_outcomes(network, num_levels, i, j, settings, slice(first, min(first + _AT_ONCE, size)), rng)
        for first in range(0, size, _AT_ONCE)
    ]
    return np.concatenate(parts, axis=1)


def _some_outcomes(
    network: Mapping[int, tuple[NDArray[np.int64], Predictors]],
    num_levels: NDArray[np.int64],
    i: int,
    j: int,
    settings: NDArray[np.float64],
    part: slice,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    size = part.stop - part.start
    rows = {i: settings[:, None, None]}  # [settings or 1, draws or 1, rows or 1], as much as it varies
    for node, (parents, draws) in network.items():
        own = Predictors(draws.coefficients[part], draws.deviations[part])
        cell = np.zeros((1, 1, 1), np.int64)
        for parent in parents[num_levels[parents] > 0].tolist():
            cell = cell * num_levels[parent] + rows[parent].astype(np.int64)
        draw = np.arange(size, dtype=np.int64).reshape(-1, 1)
        chosen = own.coefficients[draw, cell]  # [settings, draws, rows, predictors, 1 + l]
        predictors = chosen[..., 0]
        for place, parent in enumerate(parents[num_levels[parents] == 0].tolist()):
            predictors = predictors + chosen[..., 1 + place] * rows[parent][..., None]
        if node == j:
            expected = softmax(predictors, axis=-1) if num_levels[j] else predictors
            return np.broadcast_to(expected.mean(axis=2), (len(settings), size, predictors.shape[-1]))
        uniform = _spread_evenly(size, rng)
        if num_levels[node]:
            upper = np.cumsum(softmax(predictors, axis=-1), axis=-1)[..., :-1]
            rows[node] = (uniform[..., None] > upper).sum(axis=-1).astype(np.float64)
        else:
            rows[node] = predictors[..., 0] + own.deviations[draw, cell] * ndtri(uniform)
    raise AssertionError("the outcome is its own ancestor, so the last of them")


def _spread_evenly(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Uniform numbers, one in each of `NUM_ROWS` equal intervals, in random order: [size, NUM_ROWS]."""
    place = rng.permuted(np.tile(np.arange(NUM_ROWS), (size, 1)), axis=1)
    return (place + rng.random((size, NUM_ROWS))) / NUM_ROWS
