"""Effects in discrete networks: the truncated factorisation with drawn probability tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gflowdag.errors import DataError
from gflowdag.posterior.effect import DiscreteEffect
from gflowdag.posterior.effect_cases import graph_cases, levels_of, past_of, path_statement, scaled
from gflowdag.posterior.elimination import Factor, outcome_given_setting, simulated_outcome
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.sample_parameters import SampleParameters
from gflowdag.score.conjugate import DiscreteParameters

_MOST_LEVELS = 1000  # of cause times outcome


def discrete_effect(
    posterior: Posterior,
    parameters: SampleParameters,
    cause: str,
    outcome: str,
    num_draws: int,
    rng: np.random.Generator,
) -> DiscreteEffect:
    """The posterior of the distribution of the outcome for each level of the cause."""
    i, j = posterior.names.index(cause), posterior.names.index(outcome)
    any_effect = posterior.probability(path_statement(posterior, cause, outcome))
    example = parameters.example
    assert isinstance(example, DiscreteParameters)
    levels = example.cardinalities
    if levels[i] * levels[j] > _MOST_LEVELS:
        raise DataError(
            f"{cause} and {outcome} have {levels[i] * levels[j]:,} pairs of levels, more than "
            f"{_MOST_LEVELS:,}: merge levels first"
        )
    drawn: list[NDArray[np.float64]] = []
    weights: list[NDArray[np.float64]] = []
    present: list[NDArray[np.bool_]] = []
    is_exact = True
    for case in graph_cases(posterior, parameters.of_sample, i, j, num_draws, whole_past=True):
        own = parameters.of(case.table)
        assert isinstance(own, DiscreteParameters)
        factors = [
            Factor((*parents, node), own.draw_table(node, parents, case.num_draws, rng))
            for node, parents in past_of(case.graph, i, j)
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
        weight[part] = scaled(weight[part], mass)
    return DiscreteEffect(
        cause,
        outcome,
        any_effect.probability,
        any_effect.error,
        any_effect.verdict,
        any_effect.assumed,
        cause_levels=levels_of(posterior, cause, int(levels[i])),
        outcome_levels=levels_of(posterior, outcome, int(levels[j])),
        distributions=np.concatenate(drawn),
        weights=weight / weight.sum(),
        present=with_effect,
        is_exact=is_exact,
    )
