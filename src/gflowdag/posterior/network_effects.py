"""Effects with the uncertainty of graph and parameters: both are drawn, and the effect follows from them.

Given a graph, the parameters have a conjugate posterior (`score.conjugate`). A draw of them makes the graph a
network of which every effect can be computed: in linear networks the sum over directed paths of the products
of coefficients, in discrete ones the truncated factorisation. Unlike back-door adjustment (`effects`), which
regresses on the parents of the cause alone, this uses all that a graph says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]

from gflowdag.data import Dataset
from gflowdag.data.columns import Column
from gflowdag.data.description import TableDescription
from gflowdag.errors import DataError, ScoreError
from gflowdag.graph.closure import transitive_closure
from gflowdag.posterior import mixed_effects
from gflowdag.posterior.discrete_effects import discrete_effect
from gflowdag.posterior.effect import DiscreteEffect, LinearEffect
from gflowdag.posterior.effect_cases import column_of
from gflowdag.posterior.linear_effects import linear_effect, linear_means
from gflowdag.posterior.mean_effect import MeanEffect
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.sample_parameters import SampleParameters, no_parameters
from gflowdag.posterior.truth import require_known
from gflowdag.runtime.messages import shown, unknown_name
from gflowdag.runtime.place import option
from gflowdag.runtime.randomness import generator
from gflowdag.score import UnboundScore
from gflowdag.score.conjugate import (
    ConjugateParameters,
    DiscreteParameters,
    GaussianParameters,
    ParameterPosterior,
)
from gflowdag.score.registry import bind_score

NUM_DRAWS = 10_000  # of the parameters, over all graphs of a table of one kind


def effect(
    posterior: Posterior,
    cause: str,
    outcome: str,
    *,
    num_draws: int | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> LinearEffect | DiscreteEffect | MeanEffect:
    """The total effect of `cause` on `outcome`; see `Posterior.effect`."""
    parameters = SampleParameters(posterior)
    for name in (cause, outcome):
        if name not in posterior.names:
            raise DataError(unknown_name(name, posterior.names))
    if cause == outcome:
        raise DataError(f"cause and outcome are both {cause!r}: a variable has no effect on itself")
    if num_draws is not None and num_draws < 1:
        raise DataError(f"num_draws must be 1 or more, got {num_draws}")
    rng = generator(random_state)
    if isinstance(parameters.example, GaussianParameters):
        return linear_effect(posterior, parameters, cause, outcome, num_draws or NUM_DRAWS, rng)
    if isinstance(parameters.example, DiscreteParameters):
        return discrete_effect(posterior, parameters, cause, outcome, num_draws or NUM_DRAWS, rng)
    size = num_draws or mixed_effects.NUM_DRAWS
    return mixed_effects.mixed_effect(posterior, parameters, cause, outcome, size, rng)


def effect_matrix(
    posterior: Posterior,
    *,
    num_draws: int = 1000,
    random_state: int | np.random.Generator | None = 0,
) -> pd.DataFrame:
    """The posterior mean of every effect, [source, target]; see `Posterior.effect_matrix`."""
    parameters = SampleParameters(posterior)
    rng, is_linear = generator(random_state), isinstance(parameters.example, GaussianParameters)
    if is_linear:
        means = linear_means(posterior, parameters, num_draws, rng)
    else:
        fewer = posterior.resample(num_draws, rng)
        means = np.zeros((posterior.num_variables, posterior.num_variables))
        for i, j in np.argwhere(transitive_closure(fewer.samples).any(axis=0)):
            source, target = fewer.names[int(i)], fewer.names[int(j)]
            found: Any = effect(fewer, source, target, num_draws=num_draws, random_state=rng)
            means[i, j] = found.largest_change().mean()
    source, target = pd.Index(posterior.names, name="source"), pd.Index(posterior.names, name="target")
    frame = pd.DataFrame(means, index=source, columns=target)
    columns = [column_of(posterior, name) for name in posterior.names]
    frame.attrs["factors"] = [column.name for column in columns if is_linear and column.log]
    frame.attrs["meaning"] = _meaning_of_all(parameters.example, columns)
    return frame


def _meaning_of_all(parameters: ParameterPosterior, columns: list[Column]) -> str:
    """What the numbers of `effect_matrix` say, in a few sentences."""
    if isinstance(parameters, DiscreteParameters):
        return "The largest change of the outcome's distribution between two settings (total variation)."
    if not isinstance(parameters, GaussianParameters):
        return (
            "The largest difference between two settings: of the mean of a continuous outcome, of the "
            "distribution of a discrete one (total variation)."
        )
    told = "One unit more of the cause raises the outcome by so much."
    for names, what in (
        (
            [column.name for column in columns if column.log],
            "twice as much as a cause; as an outcome it is multiplied by the effect, and 1 is none",
        ),
        (
            [column.name for column in columns if column.scores is not None],
            "from the lower to the upper quartile as a cause; as an outcome it moves from its median",
        ),
    ):
        told += f" {shown(names)}: {what}." if names else ""
    return told


def conjugate_parameters(posterior: Posterior, what: str) -> ConjugateParameters:
    """The same for `what` needs parameters that can be integrated out, or an error that says so."""
    parameters = posterior.parameters
    if parameters is None and posterior.diagnosis.imputation is not None:
        raise ScoreError(
            f"{what} is not computed over imputed cells: each completed table has parameters of its own. Fit "
            f"the rows without missing cells instead, {option('missing', 'drop')}: that assumes that gaps "
            "have nothing to do with the values."
        )
    if parameters is None:
        raise no_parameters(posterior)
    if isinstance(parameters, GaussianParameters | DiscreteParameters):
        return parameters
    raise ScoreError(
        f"{what} needs a table of one kind: with continuous and discrete columns the parameters cannot be "
        f"integrated out. Cut the continuous columns into bins, {option('discretize', 'quantile')}, and fit."
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
