"""Effects on the mean of a continuous outcome, for each of a few settings of the cause."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray

from gflowdag.posterior.effect import LEVEL, Effect, EffectDraws, setting_place


@dataclass(frozen=True, eq=False)
class MeanEffect(Effect):
    """An effect on a continuous variable in a table of both kinds.

    Attributes:
        settings: what the cause is set to: its levels, or the quartiles of a continuous one.
        means: draws of the mean of the outcome under each setting, in units of the table, [m, settings].
        weights: of these draws, [m], with sum one.
        present: which of them are from graphs with an effect, bool [m].
        meaning: what one such number says.
    """

    settings: tuple[Hashable, ...]
    means: NDArray[np.float64]
    weights: NDArray[np.float64]
    present: NDArray[np.bool_]
    meaning: str

    def table(self, level: float = LEVEL) -> pd.DataFrame:
        """One row for each setting: `setting`, `mean`, `lower` and `upper` end."""
        rows: list[dict[str, Any]] = []
        for place, setting in enumerate(self.settings):
            draws = EffectDraws(self.means[:, place], self.weights)
            lower, upper = draws.interval(level)
            rows.append({"setting": setting, "mean": draws.mean(), "lower": lower, "upper": upper})
        return pd.DataFrame(rows)

    def difference(self, to: Hashable, base: Hashable) -> EffectDraws:
        """How much more the outcome is with the cause at `to` than at `base`; zero without an effect."""
        high, low = self._means(to), self._means(base)
        return EffectDraws((high - low)[self.present], self.weights[self.present])

    def ratio(self, to: Hashable, base: Hashable) -> EffectDraws:
        """How many times the outcome is what it would be at `base`; one without an effect."""
        high, low = self._means(to), self._means(base)
        return EffectDraws((high / low)[self.present], self.weights[self.present], none=1.0)

    def largest_change(self) -> EffectDraws:
        """The largest difference between two settings."""
        return EffectDraws(np.ptp(self.means[self.present], axis=1), self.weights[self.present])

    def to_dict(self, level: float = LEVEL) -> dict[str, Any]:
        """All of it in plain values."""
        table: Any = self.table(level)
        return {
            "cause": self.cause,
            "outcome": self.outcome,
            "meaning": self.meaning,
            "settings": table.to_dict(orient="records"),
            "largest_change": self.largest_change().to_dict(level),
            "probability": self.probability,
            "probability_error": self.probability_error,
            "verdict": self.verdict,
            "assumed": self.assumed,
        }

    def __repr__(self) -> str:
        return (
            f"<Effect of {self.cause} on {self.outcome}: settings change {self.outcome} by up to "
            f"{self.largest_change().mean():.3g} (posterior mean), any effect with probability "
            f"{self.probability:.3f}. {self.meaning}>"
        )

    def _means(self, setting: Hashable) -> NDArray[np.float64]:
        return self.means[:, setting_place(setting, self.settings, self.cause)]
