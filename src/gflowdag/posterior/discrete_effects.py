"""Effects in discrete networks: the truncated factorisation with drawn probability tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gflowdag.errors import DataError
from gflowdag.posterior.effect import DiscreteEffect
from gflowdag.posterior.effect_cases import any_effect, graph_cases, levels_of, past_of, weights_of_draws
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
    known = any_effect(posterior, cause, outcome)
    example = parameters.example
    assert isinstance(example, DiscreteParameters)
    levels = example.cardinalities
    if levels[i] * levels[j] > _MOST_LEVELS:
        raise DataError(
            f"{cause} and {outcome} have {levels[i] * levels[j]:,} pairs of levels, more than "
            f"{_MOST_LEVELS:,}: merge levels first"
        )
    drawn: list[NDArray[np.float64]] = []
    is_exact = True
    cases = list(graph_cases(posterior, parameters.of_sample, i, j, num_draws, whole_past=True))
    for case in cases:
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
    weights, present = weights_of_draws(cases, known.probability)
    return DiscreteEffect(
        **vars(known),
        cause_levels=levels_of(posterior, cause, int(levels[i])),
        outcome_levels=levels_of(posterior, outcome, int(levels[j])),
        distributions=np.concatenate(drawn),
        weights=weights,
        present=present,
        is_exact=is_exact,
    )
