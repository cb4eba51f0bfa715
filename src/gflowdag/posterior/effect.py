"""Causal effects as a posterior has them: a point mass at no effect, and draws of what it is otherwise."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray

from gflowdag.errors import DataError
from gflowdag.posterior.diagnostics import Verdict
from gflowdag.runtime.messages import instead

LEVEL = 0.95  # of intervals, where none is asked for


@dataclass(frozen=True, eq=False)
class EffectDraws:
    """The posterior of one number: an effect, its ratio, a probability.

    Attributes:
        values: draws from the graphs in which there is an effect, [m].
        weights: of these draws, [m]; their sum is the probability that there is one.
        none: what the number is without an effect; the rest of the mass is there.
    """

    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    none: float = 0.0

    @property
    def probability(self) -> float:
        """Posterior probability of any effect."""
        return float(self.weights.sum())

    def mean(self) -> float:
        """Posterior mean, graphs without an effect included."""
        return float(self.weights @ self.values + (1 - self.weights.sum()) * self.none)

    def mean_if_present(self) -> float:
        """The mean over the graphs with an effect; NaN where no sampled graph has one."""
        return float(self.weights @ self.values / self.weights.sum()) if self.weights.any() else np.nan

    def median(self) -> float:
        """Posterior median; exactly `none` where the mass there decides it."""
        return self.quantile(0.5)

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """The interval with equal tails that holds the effect with probability `level`."""
        tail = (1 - checked_level(level)) / 2
        return self.quantile(tail), self.quantile(1 - tail)

    def quantile(self, share: float) -> float:
        """The smallest value that the effect stays below or at with probability `share`."""
        values = np.append(self.values, self.none)
        weights = np.append(self.weights, max(1 - self.weights.sum(), 0.0))
        order = np.argsort(values, kind="stable")
        below = np.cumsum(weights[order])
        place = int((below < share * below[-1] * (1 - 1e-12)).sum())
        return float(values[order[min(place, len(order) - 1)]])

    def density(self, points: int = 200) -> pd.DataFrame:
        """The density where there is an effect: `value`, `density`; its integral is `probability`.

        The rest of the mass stands at `none`. A Gaussian kernel estimate, Silverman's bandwidth.
        """
        if not self.weights.any():
            return pd.DataFrame({"value": np.zeros(0), "density": np.zeros(0)})
        share = self.weights / self.weights.sum()
        mean = share @ self.values
        deviation = float(np.sqrt(share @ np.square(self.values - mean)))
        width = max(0.9 * deviation * np.square(share).sum() ** 0.2, np.finfo(float).tiny)
        low, high = float(self.values.min()) - 3 * width, float(self.values.max()) + 3 * width
        grid = low + (high - low) * np.arange(points) / max(points - 1, 1)
        height = np.array(
            [self.weights @ np.exp(-0.5 * np.square((at - self.values) / width)) for at in grid]
        )
        return pd.DataFrame({"value": grid, "density": height / (width * np.sqrt(2 * np.pi))})

    def to_dict(self, level: float = LEVEL) -> dict[str, float]:
        """Mean, median, interval and probability, for a table or a file."""
        lower, upper = self.interval(level)
        return {
            "mean": self.mean(),
            "median": self.median(),
            "lower": lower,
            "upper": upper,
            "probability": self.probability,
            "mean_if_present": self.mean_if_present(),
        }


@dataclass(frozen=True, eq=False)
class Effect:
    """The total effect of setting one variable on another, with the uncertainty of graph and parameters.

    Attributes:
        cause: what is set from outside.
        outcome: what it changes, by all directed paths together.
        probability: that there is an effect at all: a directed path.
        probability_error: its Monte-Carlo standard error.
        verdict: how far to trust the posterior over graphs.
        assumed: edges on the paths whose direction is assumed by the score, as pairs of names.
    """

    cause: str
    outcome: str
    probability: float
    probability_error: float
    verdict: Verdict
    assumed: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class LinearEffect(Effect):
    """An effect between continuous variables.

    Attributes:
        draws: its posterior, in the units that `meaning` tells.
        meaning: what one such number says.
        mean_error: Monte-Carlo standard error of the mean.
    """

    draws: EffectDraws
    meaning: str
    mean_error: float

    def to_dict(self, level: float = LEVEL) -> dict[str, Any]:
        """All of it in plain values."""
        return {
            "cause": self.cause,
            "outcome": self.outcome,
            "meaning": self.meaning,
            **self.draws.to_dict(level),
            "mean_error": self.mean_error,
            "probability_error": self.probability_error,
            "verdict": self.verdict,
            "assumed": self.assumed,
        }

    def __repr__(self) -> str:
        lower, upper = self.draws.interval()
        return (
            f"<Effect of {self.cause} on {self.outcome}: mean {self.draws.mean():.3g}, 95 % in [{lower:.3g}, "
            f"{upper:.3g}], any effect with probability {self.probability:.3f}. {self.meaning}>"
        )


@dataclass(frozen=True, eq=False)
class DiscreteEffect(Effect):
    """An effect on a discrete variable: the distribution of the outcome for each setting of the cause.

    Attributes:
        cause_levels: what the cause is set to: its levels, or the quartiles of a continuous cause.
        outcome_levels: what the outcome can be.
        distributions: draws of `P(outcome | do(cause))`, [m, levels of the cause, levels of the outcome].
        weights: of these draws, [m], with sum one.
        present: which of them are from graphs with an effect, bool [m].
        is_exact: whether each draw was propagated exactly, and not by simulated rows.
    """

    cause_levels: tuple[Hashable, ...]
    outcome_levels: tuple[Hashable, ...]
    distributions: NDArray[np.float64]
    weights: NDArray[np.float64]
    present: NDArray[np.bool_]
    is_exact: bool

    def table(self, level: float = LEVEL) -> pd.DataFrame:
        """`P(outcome | do(cause))`: one row for each pair of levels, `mean`, `lower` and `upper` end."""
        rows = [
            {"setting": setting, "level": outcome, **self._summary(a, b, level)}
            for a, setting in enumerate(self.cause_levels)
            for b, outcome in enumerate(self.outcome_levels)
        ]
        return pd.DataFrame(rows)

    def difference(self, outcome: Hashable, to: Hashable, base: Hashable) -> EffectDraws:
        """`P(outcome | do(cause = to)) − P(outcome | do(cause = base))`; zero without an effect."""
        high, low = self._probability(outcome, to), self._probability(outcome, base)
        return EffectDraws((high - low)[self.present], self.weights[self.present])

    def ratio(self, outcome: Hashable, to: Hashable, base: Hashable) -> EffectDraws:
        """`P(outcome | do(cause = to)) / P(outcome | do(cause = base))`; one without an effect."""
        high, low = self._probability(outcome, to), self._probability(outcome, base)
        return EffectDraws((high / low)[self.present], self.weights[self.present], none=1.0)

    def largest_change(self) -> EffectDraws:
        """The largest total variation distance between the outcomes of two settings."""
        pairs = np.abs(self.distributions[:, :, None] - self.distributions[:, None]).sum(axis=-1) / 2
        return EffectDraws(pairs.max(axis=(1, 2))[self.present], self.weights[self.present])

    def to_dict(self, level: float = LEVEL) -> dict[str, Any]:
        """All of it in plain values."""
        table: Any = self.table(level)
        return {
            "cause": self.cause,
            "outcome": self.outcome,
            "distribution": table.to_dict(orient="records"),
            "largest_change": self.largest_change().to_dict(level),
            "probability": self.probability,
            "probability_error": self.probability_error,
            "is_exact": self.is_exact,
            "verdict": self.verdict,
            "assumed": self.assumed,
        }

    def __repr__(self) -> str:
        change = self.largest_change().mean()
        return (
            f"<Effect of {self.cause} on {self.outcome}: settings change the distribution of {self.outcome} "
            f"by up to {change:.3f} (total variation, posterior mean), any effect with probability "
            f"{self.probability:.3f}>"
        )

    def _summary(self, setting: int, outcome: int, level: float) -> dict[str, float]:
        draws = EffectDraws(self.distributions[:, setting, outcome], self.weights)
        lower, upper = draws.interval(level)
        return {"mean": draws.mean(), "lower": lower, "upper": upper}

    def _probability(self, outcome: Hashable, setting: Hashable) -> NDArray[np.float64]:
        a = setting_place(setting, self.cause_levels, self.cause)
        b = setting_place(outcome, self.outcome_levels, self.outcome)
        return self.distributions[:, a, b]


def named_setting(name: str, levels: tuple[Hashable, ...], text: str) -> Hashable:
    """The setting of the variable `name` that is written so, or an error that lists them."""
    for level in levels:
        if str(level) == text:
            return level
    raise DataError(f"{name} has no level {text!r}: {instead(text, map(str, levels))}")


def checked_level(level: float) -> float:
    """The probability of an interval, or an error where it is none."""
    if not 0 < level < 1:
        raise DataError(f"level must be between 0 and 1, got {level}")
    return level


def setting_place(level: Hashable, levels: tuple[Hashable, ...], name: str) -> int:
    """The place of a setting among those of the variable `name`, or an error that lists them."""
    if level not in levels:
        raise DataError(f"{name} has no level {level!r}: {instead(str(level), map(str, levels))}")
    return levels.index(level)
