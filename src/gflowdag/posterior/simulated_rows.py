"""What new rows can be expected to tell: they are simulated, and every graph is weighed by their likelihood.

Rows are drawn from graphs of the posterior with parameters from theirs. After them each graph is weighed by
the likelihood of the rows with its parameters integrated out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, rel_entr

from gflowdag.posterior.beliefs import Beliefs
from gflowdag.score.conjugate import ParameterPosterior
from gflowdag.score.predictive import draw_rows, log_predictive

_CELLS_AT_ONCE = 1 << 22  # numbers of one block of simulated tables


def simulated_gains(
    parameters: Sequence[ParameterPosterior],
    known: Beliefs,
    of_outcome: NDArray[np.int64],
    num_rows: int,
    target: int | None,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """The divergence of the posterior after each simulated outcome from the one before, [k].

    Args:
        parameters: those of each table, [t].
        known: tables and graphs before.
        of_outcome: the pair of table and graph, one number, that each outcome is drawn from; sorted, [k].
        num_rows: of each outcome.
        target: the variable that is set; None for nothing.
        rng: source of randomness.
    """
    num_graphs, d = len(known.graphs), known.graphs.shape[-1]
    before = known.of_answers
    gains: list[NDArray[np.float64]] = []
    step = max(_CELLS_AT_ONCE // (num_rows * d), 1)
    for start in range(0, len(of_outcome), step):
        pairs, number = np.unique(of_outcome[start : start + step], return_counts=True)
        rows = np.concatenate(
            [
                draw_rows(
                    parameters[int(pair) // num_graphs],
                    known.graphs[int(pair) % num_graphs],
                    num_rows,
                    target,
                    int(size),
                    rng,
                )
                for pair, size in zip(pairs, number, strict=True)
            ]
        )
        logs = np.full((len(rows), num_graphs), -np.inf)
        for own, joint in zip(parameters, known.joint, strict=True):
            with np.errstate(divide="ignore"):  # a graph that a table rules out
                logs = np.logaddexp(logs, log_predictive(own, known.graphs, rows, target) + np.log(joint))
        after = known.sum_answers(np.exp(logs - logsumexp(logs, axis=1)[:, None]))
        gains.append(rel_entr(after, before).sum(axis=1).clip(min=0.0))
    return np.concatenate(gains)
