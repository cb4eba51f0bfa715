"""From the coded scale of a fit back to what was measured: units, logarithms, ranks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from gflowdag.data.columns import Column

_QUARTILES = float(2 * ndtri(0.75))  # from the lower to the upper quartile, in normal scores


class EffectScale(NamedTuple):
    """How to read the effect of one column on another.

    What is done to the cause: one unit more; twice as much, of a logarithm; from the lower to the upper
    quartile, of a rank. What the outcome does: it grows by so much; it is multiplied, of a logarithm; its
    median moves, of a rank.
    """

    cause: Column
    outcome: Column

    def read(self, coded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Effects per coded unit of the cause, in coded units of the outcome, as `meaning` tells them."""
        step = 1.0
        if self.cause.scores is not None:
            step = _QUARTILES
        elif self.cause.log:
            step = np.log(2.0)
        change = coded * (step * self.unit)
        if self.outcome.scores is not None:
            values, scores = self.outcome.scores
            return np.interp(change, scores, values) - np.interp(0.0, scores, values)
        return np.exp(change) if self.outcome.log else change

    @property
    def none(self) -> float:
        """What `read` makes of no effect."""
        return 1.0 if self.outcome.log else 0.0

    @property
    def unit(self) -> float:
        """An effect of one in coded units, in those of the transformed columns."""
        return _deviation(self.outcome) / _deviation(self.cause)

    @property
    def meaning(self) -> str:
        """What an effect of this scale says, in a sentence."""
        a, b = self.cause.name, self.outcome.name
        if self.cause.scores is not None:
            done = f"{a} from its lower to its upper quartile"
        elif self.cause.log:
            done = f"twice as much {a}"
        else:
            done = f"one unit more of {a}"
        if self.outcome.scores is not None:
            return f"{done[0].upper()}{done[1:]} moves {b} from its median by the effect."
        if self.outcome.log:
            return f"{done[0].upper()}{done[1:]} multiplies {b} by the effect."
        return f"{done[0].upper()}{done[1:]} raises {b} by the effect."


def _deviation(column: Column) -> float:
    """How much of the transformed column one coded unit is."""
    return (column.scaling or (0.0, 1.0))[1]
