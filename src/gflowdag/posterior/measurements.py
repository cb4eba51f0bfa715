"""What measuring the missing cells of a column can be expected to tell, in nats.

The gain is the mutual information of the graph and the missing cells Z of the column, given what was
observed: the mean, over values z that the posterior expects, of the divergence of the posterior after them
from the one before. A completed table of the fit holds a draw of z. The posterior after it is that of the
completed table where no other column has gaps. Where others have, their cells stay unknown: from the
completed table on, graph and these cells are drawn in turn with z fixed, and the posteriors of the completed
tables on the way are averaged. A mean of few has too little entropy: half as many show by how much.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr, softmax

from gflowdag.errors import DataError
from gflowdag.posterior.beliefs import Beliefs, remembered_gaps
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.messages import shown, unknown_name

_MAX_OUTCOMES = 128
_ROUNDS = 32  # of graph and other missing cells, for each outcome


def check_measurable(posterior: Posterior, columns: list[str]) -> None:
    """Refuse columns in which no cell is missing."""
    cells = posterior.imputed_cells
    with_gaps = [] if cells is None else [posterior.names[j] for j in np.unique(cells.columns).tolist()]
    for name in columns:
        if name not in posterior.names:
            raise DataError(
                f"{unknown_name(name, posterior.names)} Of a variable that was never measured the table says "
                "nothing: measure it in some rows first."
            )
        if name not in with_gaps:
            some = f"Columns with missing cells: {shown(map(repr, with_gaps))}." if with_gaps else ""
            raise DataError(
                f"Column {name!r} has no missing cell that was imputed: nothing is left to measure in it. "
                f"{some}".strip()
            )


def measurement_gains(
    posterior: Posterior, known: Beliefs, column: str, num_outcomes: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], int]:
    """How far each outcome moves the posterior, [k] divergences, and the number of cells to measure."""
    table, cells = remembered_gaps(posterior)
    place = posterior.names.index(column)
    number = int((cells.columns == place).sum())
    others = cells.columns != place
    before = known.with_fewer_tables(min(num_outcomes, _MAX_OUTCOMES))
    after = before.joint / before.joint.sum(axis=1, keepdims=True)
    if not others.any():
        return _corrected(_divergences(before.sum_answers(after)), len(after)), number
    halves = np.zeros((2, *after.shape))
    for outcome, draw in enumerate(before.tables.tolist()):
        completed = table.completed(cells, draw)
        gaps = completed.values.copy()
        gaps[cells.rows[others], cells.columns[others]] = np.nan
        draw_cells = table.draws_of_cells(replace(completed, values=gaps))
        values, score, given = completed.values, table.score_of(completed), after[outcome]
        for turn in range(_ROUNDS):
            halves[2 * turn // _ROUNDS, outcome] += given
            graph = before.graphs[rng.choice(len(given), p=given)]
            values = draw_cells(values.copy(), graph, score.likelihood, rng)
            score = table.score_of(replace(completed, values=values))
            given = softmax(score.log_score(before.graphs))
    halves = before.sum_answers(halves / (_ROUNDS / 2))
    whole = halves.mean(axis=0)
    gains = 2 * _divergences(whole) - _divergences(halves, whole.mean(axis=0)).mean(axis=0)
    return _corrected(gains, len(after)), number


def _divergences(after: NDArray[np.float64], mean: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Of each distribution [..., k, a] from the mean of all, [..., k]."""
    return rel_entr(after, after.mean(axis=0) if mean is None else mean).sum(axis=-1)


def _corrected(gains: NDArray[np.float64], number: int) -> NDArray[np.float64]:
    """Without the bias of measuring from a mean that each of so many has a share in."""
    return gains * (number / max(number - 1, 1))
