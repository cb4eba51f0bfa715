"""Tests of what the Gaussian model says of a column, a residual, or a residual beside a parent.

Each returns a statistic and its p-value if the model is right. Where a column is compared with another one,
normal scores of ranks are compared: a heavy tail is then found once, as a tail, and not again as curvature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr

from gflowdag.data.columns import normal_scores

LEVEL = 0.01  # probability that a check finds anything in a table that fits the model, all columns together
MIN_ROWS = 30  # the tests below hold their level from here on
_SHARE_OF_OUTLIERS = 0.01  # more points than this are a tail, not errors in single rows
_LAGS = (1, 2)
_SKEWED = 0.2  # what a gamma distribution of skewness 1 has

Column = NDArray[np.float64]


class Tested(NamedTuple):
    """A statistic and its p-value."""

    value: float
    p: float


class Draw(NamedTuple):
    """A column, or one of several residuals of a variable, with its weight and what it was regressed on."""

    weight: float
    x: Column
    regressors: tuple[tuple[str, Column], ...] = ()
    rows: NDArray[np.int64] | None = None  # of the table, where they are not all
    given: int = 0  # which of several parent sets; those of one are residuals in its cells


def averaged(test: Callable[[Column], Tested], draws: Sequence[Draw]) -> Tested:
    """The mean of a statistic over weighted parent sets, with a p-value; of several cells the worst counts.

    Twice a mean of p-values is a p-value (Vovk and Wang 2020, "Combining p-values via averaging").
    """
    sets = by_parent_set(draws)
    tested = [_worst([test(draw.x) for draw in cells]) for cells in sets]
    weights = [sum(draw.weight for draw in cells) for cells in sets]
    value = sum(weight * found.value for weight, found in zip(weights, tested, strict=True)) / sum(weights)
    p = sum(weight * found.p for weight, found in zip(weights, tested, strict=True)) / sum(weights)
    return Tested(value, p if len(sets) == 1 else min(1.0, 2 * p))


def by_parent_set(draws: Sequence[Draw]) -> list[list[Draw]]:
    """The draws of each parent set, the first one first."""
    sets: dict[int, list[Draw]] = {}
    for draw in draws:
        sets.setdefault(draw.given, []).append(draw)
    return list(sets.values())


def _worst(tested: Sequence[Tested]) -> Tested:
    """The surest result of several cells, corrected for their number."""
    worst = min(tested, key=lambda found: found.p)
    return Tested(worst.value, min(1.0, worst.p * len(tested)))


def skewness(x: Column) -> Tested:
    """Sample skewness; the test of D'Agostino (1970).

    scipy's takes a millisecond to look at its arguments: too long for 10,000 columns.
    """
    n = len(x)
    value = _moment(x, 3)
    y = value * np.sqrt((n + 1) * (n + 3) / (6 * (n - 2)))
    beta = 3 * (n * n + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2) * (n + 5) * (n + 7) * (n + 9))
    w_squared = np.sqrt(2 * (beta - 1)) - 1
    z = np.arcsinh(y / np.sqrt(2 / (w_squared - 1))) / np.sqrt(0.5 * np.log(w_squared))
    return Tested(value, float(2 * ndtr(-abs(z))))


def has_skewed_middle(x: Column) -> bool:
    """Whether the middle of a column is skewed too: a heavy tail makes any sample skewness significant."""
    low, middle, high = np.quantile(x, (0.1, 0.5, 0.9))
    return abs(low + high - 2 * middle) > _SKEWED * (high - low)


def excess_kurtosis(x: Column) -> Tested:
    """Sample excess kurtosis, positive for heavy tails; the test of Anscombe and Glynn (1983)."""
    n = len(x)
    value = _moment(x, 4)
    variance = 24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    y = (value - 3 * (n - 1) / (n + 1)) / np.sqrt(variance)
    third = 6 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9))
    third *= np.sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    a = 6 + 8 / third * (2 / third + np.sqrt(1 + 4 / third**2))
    root = 1 + y * np.sqrt(2 / (a - 4))
    z = (1 - 2 / (9 * a) - np.sign(root) * np.cbrt((1 - 2 / a) / abs(root))) / np.sqrt(2 / (9 * a))
    return Tested(value - 3, float(2 * ndtr(-abs(z))))


def _moment(x: Column, order: int) -> float:
    """A central moment in units of the deviation; 0/0 of a constant column is NaN."""
    centred = x - x.mean()
    with np.errstate(divide="ignore", invalid="ignore"):
        return float((centred**order).mean() / (centred @ centred / len(x)) ** (order / 2))


def outlying_rows(x: Column, num_tests: int) -> NDArray[np.int64]:
    """Rows too far out for a normal sample of this size: Grubbs' bound for each, over `num_tests` columns."""
    n = len(x)
    z = (x - x.mean()) / x.std(ddof=1)
    # The distance from the mean of all other rows over their deviation is Student-t, n − 2 degrees.
    t = np.abs(z) * np.sqrt(n * (n - 2) / np.maximum((n - 1) ** 2 - n * z**2, 1e-9))
    p = 2 * stdtr(n - 2, -t)
    rows = np.flatnonzero(p * n * num_tests < LEVEL)
    return rows[np.argsort(-np.abs(z[rows]), kind="stable")]


def are_few(rows: NDArray[np.int64], num_rows: int) -> bool:
    """Whether outlying rows may be single errors: at most three, or one in a hundred."""
    return 0 < len(rows) <= max(3, _SHARE_OF_OUTLIERS * num_rows)


def curvature(residual: Column, parent: Column) -> Tested:
    """Correlation of a linear regression's residual with curved functions of a regressor."""
    z = normal_scores(parent)
    return _strongest(normal_scores(residual), (np.abs(z), z**3 - 3 * z), (np.ones(len(z)), z))


def unequal_variance(residual: Column, parent: Column) -> Tested:
    """Correlation of a residual's size with the regressor and with its distance from the middle."""
    z = normal_scores(parent)
    return _strongest(normal_scores(np.abs(residual)), (z, np.abs(z)), (np.ones(len(z)),))


def serial_dependence(x: Column) -> Tested:
    """The largest autocorrelation of normal scores at lag 1 or 2."""
    scores = normal_scores(x)
    n, power = len(scores), scores @ scores
    found = [float(scores[lag:] @ scores[:-lag] / power) for lag in _LAGS]
    value = max(found, key=abs)
    return Tested(value, min(1.0, len(_LAGS) * 2 * float(ndtr(-abs(value + 1 / n) * np.sqrt(n)))))


def _strongest(scores: Column, functions: tuple[Column, ...], known: tuple[Column, ...]) -> Tested:
    """The largest correlation with any of `functions`, beyond what is linear in `known`."""
    basis = np.linalg.qr(np.column_stack(known))[0]
    rest = scores - basis @ (basis.T @ scores)
    found: list[float] = []
    for function in functions:
        beyond = function - basis @ (basis.T @ function)
        size = np.linalg.norm(beyond) * np.linalg.norm(rest)
        found.append(float(beyond @ rest / size) if size > 1e-9 else 0.0)
    value = max(found, key=abs)
    freedom = len(scores) - len(known) - 1
    t = abs(value) * np.sqrt(freedom / max(1 - value**2, 1e-12))
    return Tested(value, min(1.0, len(functions) * 2 * float(stdtr(freedom, -t))))
