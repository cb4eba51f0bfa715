"""From the coded scale of a fit back to what was measured: units, logarithms, ranks."""

from __future__ import annotations

from collections.abc import Sequence
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
        return _as_measured(self.outcome, coded * self.unit)

    @property
    def none(self) -> float:
        """What `read` makes of no effect."""
        return 1.0 if self.outcome.log else 0.0

    @property
    def unit(self) -> float:
        """How far the transformed outcome moves with an effect of one in coded units."""
        return _step(self.cause) * _deviation(self.outcome) / _deviation(self.cause)

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


def read_all(columns: Sequence[Column], coded: NDArray[np.float64]) -> NDArray[np.float64]:
    """`EffectScale.read` for every ordered pair of columns, [..., cause, outcome]."""
    step = np.array([_step(column) / _deviation(column) for column in columns])
    read = [
        _as_measured(outcome, coded[..., place] * (step * _deviation(outcome)))
        for place, outcome in enumerate(columns)
    ]
    return np.stack(read, axis=-1)


def _as_measured(outcome: Column, change: NDArray[np.float64]) -> NDArray[np.float64]:
    """A change of a transformed outcome: as it is, as a factor, or from its median."""
    if outcome.scores is not None:
        values, scores = outcome.scores
        return np.interp(change, scores, values) - np.interp(0.0, scores, values)
    return np.exp(change) if outcome.log else change


def _step(cause: Column) -> float:
    """What is done to the transformed cause."""
    if cause.scores is not None:
        return _QUARTILES
    return float(np.log(2.0)) if cause.log else 1.0


def _deviation(column: Column) -> float:
    """How much of the transformed column one coded unit is."""
    return (column.scaling or (0.0, 1.0))[1]
