"""Panels of what people act on: the largest effects, and the experiment that would tell most."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.display.report.content import with_fewer_graphs
from gflowdag.errors import ScoreError, TooLargeError
from gflowdag.posterior.effect import DiscreteEffect, LinearEffect
from gflowdag.posterior.experiments import NextExperiments
from gflowdag.posterior.mean_effect import MeanEffect
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.sample_parameters import SampleParameters
from gflowdag.runtime.deadline import Deadline
from gflowdag.score.conjugate import DiscreteParameters, GaussianParameters, ParameterPosterior

_MOST_EFFECTS = 12
_CANDIDATES = 24  # of which the strongest are shown, where their sizes are guessed from associations
_LEAST_PATH = 0.5  # probability of a directed path from cause to outcome
_GRAPHS, _LARGE_GRAPHS = 200, 50  # that effects of other than linear networks and experiments are found in
_LARGE = 60  # variables
_MOST_PAIRS = 2000  # among which the strongest are looked for
_DRAWS = 2000
_MOST_TARGETS, _LARGE_TARGETS = 12, 5
_ROWS = (100, 20, 5)  # of an experiment: fewer where more tell all that the graphs can show
_OUTCOMES = 60
_SECONDS = 5.0  # for all effects; in tables of both kinds with gaps a single one can take as long
_BINS = 4  # of a continuous column, where the strength of a relation is guessed


class EffectRow(NamedTuple):
    """One effect, in words and numbers."""

    cause: str
    outcome: str
    meaning: str
    probability: float
    values: tuple[float, float, float]  # median, lower and upper end of the interval
    bar: tuple[float, float, float] | None  # the same in deviations or probabilities; None of other scales
    size: float  # of the mean effect, in the units of the bar where there are any


class Effects(NamedTuple):
    """The largest effects, and what there was no time for."""

    rows: list[EffectRow]
    left_out: int  # pairs that could have had a large one


class Experiments(NamedTuple):
    """The experiments by expected information, and what was left out."""

    found: NextExperiments
    most: float  # the largest gain, for bars
    left_out: int  # variables that were not compared


def effects(posterior: Posterior, deadline: Deadline | None = None) -> Effects:
    """The strongest of the effects that there are with probability ½ or more.

    Args:
        posterior: to be asked.
        deadline: after which no further effect is begun; None is a few seconds from now.
    """
    parameters = _parameters(posterior)
    if parameters is None or not _has_own_table(posterior):
        return Effects([], 0)
    deadline = Deadline.after(_SECONDS) if deadline is None else deadline
    paths = with_fewer_graphs(posterior).path_probabilities().to_numpy()
    is_linear = isinstance(parameters, GaussianParameters)
    if is_linear:
        has_gaps = posterior.parameters is None  # and as many tables as graphs
        fewer = _fewer(posterior, paths) if has_gaps else posterior
        strength = _linear_strength(posterior)
    else:
        fewer = _fewer(posterior, paths)
        strength = _association(parameters, paths)
    size = np.where(paths >= _LEAST_PATH, paths * strength, 0.0)
    order = np.argsort(-size, axis=None, kind="stable")[: _MOST_EFFECTS if is_linear else _CANDIDATES]
    pairs = [divmod(int(place), len(size)) for place in order if size.flat[place] > 0]
    found: list[EffectRow] = []
    tried = 0
    for i, j in pairs:
        if tried and deadline.has_passed:
            break
        tried += 1
        try:
            one = fewer.effect(posterior.names[i], posterior.names[j], num_draws=_DRAWS)
        except (ScoreError, TooLargeError):  # its table or its equations are too large
            continue
        found.append(_row(posterior, one))
    rows = found if is_linear else sorted(found, key=lambda row: -row.size)[:_MOST_EFFECTS]
    return Effects(rows, len(pairs) - tried)


def experiments(posterior: Posterior) -> Experiments | None:
    """Which variable to set next; None where nothing vouches for the graphs, or nothing is open."""
    parameters = posterior.parameters
    known = isinstance(parameters, GaussianParameters | DiscreteParameters)
    if not known or not posterior.diagnosis.is_vouched_for or not _has_own_table(posterior):
        return None
    p = posterior.edge_probabilities().to_numpy()
    states = np.stack([p, p.T, 1 - p - p.T]).clip(1e-12, 1)
    doubt = -(states * np.log(states)).sum(axis=0).sum(axis=1)
    names = list(posterior.names)
    number = _MOST_TARGETS if len(names) <= _LARGE else _LARGE_TARGETS
    targets: list[str] = [names[i] for i in np.argsort(-doubt, kind="stable")[:number].tolist()]
    fewer = _fewer(posterior, None)
    for num_rows in _ROWS:
        observed = fewer.next_experiments(num_rows=num_rows, num_outcomes=_OUTCOMES, targets=[])
        if observed.entropy == 0:
            return None
        if not observed.tells_nearly_all:
            break
    else:
        return None
    found = fewer.next_experiments(num_rows=num_rows, num_outcomes=_OUTCOMES, targets=targets)
    if found.best.gain <= found.best.error or found.tells_nearly_all:
        return None
    return Experiments(found, found.best.gain, posterior.num_variables - len(targets))


def _parameters(posterior: Posterior) -> ParameterPosterior | None:
    """What is known of the parameters, of one completed table where cells were imputed; None for nothing."""
    try:
        return SampleParameters(posterior).example
    except ScoreError:
        return None


def _has_own_table(posterior: Posterior) -> bool:
    """Whether the columns of the table are the variables, and there are pairs of them."""
    named = posterior.table is None or posterior.table.names == list(posterior.names)
    return named and posterior.num_variables > 1


def _fewer(posterior: Posterior, paths: NDArray[np.float64] | None) -> Posterior:
    """The posterior, or as many of its graphs as effects are quickly found in; `paths` stay known."""
    number = _GRAPHS if posterior.num_variables <= _LARGE else _LARGE_GRAPHS
    if posterior.num_samples <= number:
        return posterior
    return replace(posterior.resample(number, random_state=0), path_marginals=paths)


def _linear_strength(posterior: Posterior) -> NDArray[np.float64]:
    """Mean effects in standard deviations, [d, d]."""
    fewer = _fewer(posterior, None)
    means = np.abs(fewer.effect_matrix(num_draws=fewer.num_samples).to_numpy())
    scaling = [] if posterior.table is None else [column.scaling for column in posterior.table.columns]
    if len(scaling) < len(means) or None in scaling:
        return means
    deviation = np.array([pair[1] for pair in scaling if pair is not None])
    return means * deviation[:, None] / deviation


def _association(parameters: ParameterPosterior, paths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cramér's V of likely causes and their outcomes, continuous columns cut into quarters, [d, d]."""
    if isinstance(parameters, DiscreteParameters):
        codes, weights = parameters.codes, parameters.counts[0]
    elif isinstance(parameters, GaussianParameters):
        return np.ones_like(paths)
    else:
        codes = np.stack(
            [
                column.astype(np.int64) if levels else _quarters(column)
                for column, levels in zip(parameters.values.T, parameters.num_levels, strict=True)
            ]
        )
        weights = np.ones(codes.shape[1])
    out = np.zeros_like(paths)
    likely = np.argsort(-paths, axis=None, kind="stable")[:_MOST_PAIRS]
    for i, j in (divmod(int(place), len(paths)) for place in likely):
        if i != j and paths[i, j] >= _LEAST_PATH:
            shape = int(codes[i].max()) + 1, int(codes[j].max()) + 1
            cell = np.ravel_multi_index((codes[i], codes[j]), shape)
            share = np.bincount(cell, weights, minlength=shape[0] * shape[1]).reshape(shape) / weights.sum()
            expected = share.sum(axis=1, keepdims=True) * share.sum(axis=0)
            occupied = expected > 0
            spread = (np.square(share - expected)[occupied] / expected[occupied]).sum()
            out[i, j] = np.sqrt(spread / max(min(shape) - 1, 1))
    return out


def _quarters(column: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.searchsorted(np.quantile(column, np.arange(1, _BINS) / _BINS), column).astype(np.int64)


def _row(posterior: Posterior, one: LinearEffect | DiscreteEffect | MeanEffect) -> EffectRow:
    if isinstance(one, LinearEffect):
        meaning, draws = one.meaning, one.draws
        cause = _deviation(posterior, one.cause)
        outcome = _deviation(posterior, one.outcome)
        unit = None if cause is None or outcome is None else cause / outcome
    elif isinstance(one, DiscreteEffect):
        level, to, base = _largest_difference(one)
        meaning = f"P({one.outcome} = {level}) with {one.cause} = {_told(to)}, less that with {_told(base)}."
        draws, unit = one.difference(level, to, base), 1.0
    else:
        means: Any = one.table()["mean"].to_numpy()
        base, to = (one.settings[place] for place in sorted((int(means.argmin()), int(means.argmax()))))
        meaning = f"{one.outcome} with {one.cause} = {_told(to)}, less that with {_told(base)}."
        draws, outcome = one.difference(to, base), _deviation(posterior, one.outcome)
        unit = None if outcome is None else 1 / outcome
    values = (draws.median(), *draws.interval())
    bar = None if unit is None else (values[0] * unit, values[1] * unit, values[2] * unit)
    size = abs(draws.mean() - draws.none) * (unit or 1.0)
    return EffectRow(one.cause, one.outcome, meaning, one.probability, values, bar, size)


def _largest_difference(one: DiscreteEffect) -> tuple[Hashable, Hashable, Hashable]:
    """The level of the outcome whose probability changes most, and the two settings that change it."""
    means = np.tensordot(one.weights, one.distributions, axes=1)
    spread = np.ptp(means, axis=0)
    level = int(np.flatnonzero(spread >= spread.max() - 1e-9)[-1])  # of two that change alike the last: "yes"
    base, to = sorted((int(means[:, level].argmin()), int(means[:, level].argmax())))
    return one.outcome_levels[level], one.cause_levels[to], one.cause_levels[base]


def _told(setting: Hashable) -> str:
    return f"{setting:.4g}" if isinstance(setting, float) else str(setting)


def _deviation(posterior: Posterior, name: str) -> float | None:
    """The standard deviation of a column; None where its scale is not that of the table, or not known."""
    if posterior.table is None:
        return None
    column = posterior.table.columns[posterior.table.names.index(name)]
    return None if column.log or column.scores or column.scaling is None else column.scaling[1]
