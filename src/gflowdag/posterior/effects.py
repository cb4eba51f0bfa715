"""Causal effects: the posterior of the linear total effect of one variable on another.

Given a DAG, the parents of `i` block every back-door path, so the total effect of `i` on a descendant `j` is
the coefficient of `i` in the regression of `j` on `i` and the parents of `i`. Under the normal-Wishart prior
of BGe that coefficient has a Student-t posterior in closed form; averaged over the posterior of DAGs, with a
point mass at zero for the graphs in which `j` does not descend from `i`, it is the Bayesian IDA of Pensar et
al. (2020, "A Bayesian approach for estimating causal effects from observational data").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray
from scipy.special import stdtr

from gflowdag.data import Dataset
from gflowdag.data.description import TableDescription
from gflowdag.errors import DataError, ScoreError
from gflowdag.graph.closure import transitive_closure
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.truth import require_known
from gflowdag.runtime.place import option
from gflowdag.score.local_score import UnboundScore
from gflowdag.score.registry import unbound_score


class EffectMixture(NamedTuple):
    """Posterior of one effect: `weights` on Student-t distributions, the rest of the mass at zero."""

    weights: NDArray[np.float64]  # [k]
    locations: NDArray[np.float64]  # [k]
    scales: NDArray[np.float64]  # [k]
    degrees: NDArray[np.float64]  # [k]

    def mean(self) -> float:
        """Posterior mean, graphs without an effect included."""
        return float(self.weights @ self.locations)

    def cdf(self, value: float) -> float:
        """Probability that the effect is at most `value`."""
        below = float(self.weights @ stdtr(self.degrees, (value - self.locations) / self.scales))
        return below + (1 - self.weights.sum() if value >= 0 else 0.0)

    def quantile(self, level: float) -> float:
        """The smallest value whose `cdf` reaches `level`: zero if the point mass there does."""
        if not self.weights.size:
            return 0.0
        reached = self.cdf(0.0)
        if reached - (1 - self.weights.sum()) < level <= reached:
            return 0.0
        reach = float((np.abs(self.locations) + self.scales).max())
        while self.cdf(reach) < level or self.cdf(-reach) >= level:
            reach *= 2
        low, high = (0.0, reach) if level > reached else (-reach, 0.0)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self.cdf(middle) >= level else (middle, high)
        return high


_COLUMNS = ("source", "target", "mean", "lower", "upper", "probability", "mean_if_present")


def total_effects(
    posterior: Posterior,
    data: Any,
    *,
    source: str | None = None,
    target: str | None = None,
    level: float = 0.95,
    interventions: Any = None,
    score: str | UnboundScore = "bge",
    **hyper: Any,
) -> pd.DataFrame:
    """The posterior of the linear total effect of every variable on every other, in original units.

    An effect of 2 means: setting the source one unit higher raises the target by two units on average, by
    all directed paths together. Columns that were log-transformed count in units of the logarithm.

    Rows in which variables were set from outside count for an effect if neither the target nor any of its
    causes in the graph at hand was set, except for the source itself.

    Args:
        posterior: a posterior over DAGs.
        data: the continuous table that it was learnt from: a DataFrame or array as it was given to `fit`, or
            a `Dataset` of it. The posterior remembers how it was transformed and scaled, and refuses another
            table; a posterior that was made by hand or by version 0.2 cannot check that.
        source: only effects of this variable.
        target: only effects on this variable.
        level: probability of the interval, with equal tails.
        interventions: as for `fit`; a `Dataset` brings its own.
        score: `"bge"`, or a `BGe` object with the hyper-parameters that the posterior was learnt with.
        **hyper: the same by name, beside `score="bge"`: `alpha_mu`, `alpha_w`, `scale`, `prior_mean`.

    Returns:
        One row for each ordered pair, most probable effect first: `source`, `target`, `mean` (over all
        graphs, zeros included), `lower` and `upper` end of the interval, `probability` that the effect is
        not zero, that of a directed path (`Posterior.path_probabilities`), and `mean_if_present`, the mean
        over the graphs that have one. Where no sample has one, `mean_if_present` is NaN and the others are
        those of no effect.
    """
    if not 0 < level < 1:
        raise DataError(f"level must be between 0 and 1, got {level}")
    known = posterior.table
    if interventions is None and posterior.diagnosis.interventional and _lacks_interventions(data, known):
        raise DataError(
            "the posterior was learnt from interventional data: give total_effects the same `interventions`, "
            "or the Dataset that holds them"
        )
    if known is None:
        data = Dataset.as_dataset(data, interventions=interventions)
    else:
        data = known.prepare(data, interventions=interventions)
    require_known([*data.names, *(name for name in (source, target) if name is not None)], posterior.names)
    if missing := sorted(set(posterior.names) - set(data.names)):
        raise DataError(f"the data lack the variables {', '.join(missing)}")
    if data.missing is not None:
        raise DataError(
            "total_effects regresses columns on each other and needs rows without missing cells: fit the "
            f"table with {option('missing', 'drop')}."
        )
    if data.is_mixed:
        discrete = [
            repr(name) for name, kind in zip(data.names, data.kinds, strict=True) if kind == "discrete"
        ]
        raise DataError(
            f"Effects are for continuous columns, and {', '.join(discrete)} are discrete: an effect is a "
            "coefficient of linear regressions, and has no meaning on levels or through them"
        )
    if source is not None and source == target:
        raise DataError(f"source and target are both {source!r}: a variable has no effect on itself")
    deviation = {column.name: (column.scaling or (0.0, 1.0))[1] for column in data.columns}
    rows: list[dict[str, Any]] = []
    paths = posterior.path_probabilities().to_numpy()
    bge = unbound_score(data, score, **hyper)
    for i, j, mixture in _effects(posterior, data, source, target, bge, paths):
        a, b = posterior.names[i], posterior.names[j]
        unit = deviation[b] / deviation[a]
        tail = (1 - level) / 2
        rows.append(
            {
                "source": a,
                "target": b,
                "mean": unit * mixture.mean(),
                "lower": unit * mixture.quantile(tail),
                "upper": unit * mixture.quantile(1 - tail),
                "probability": paths[i, j],
                "mean_if_present": unit * mixture.mean() / paths[i, j] if mixture.weights.any() else np.nan,
            }
        )
    table = pd.DataFrame(rows, columns=list(_COLUMNS))
    return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)


def _lacks_interventions(data: Any, known: TableDescription | None) -> bool:
    """Whether nothing says what was set from outside: neither the data set nor a column known to do so."""
    if isinstance(data, Dataset):
        return data.intervened is None
    return known is None or known.options.interventions is None


def _effects(
    posterior: Posterior,
    data: Dataset,
    source: str | None,
    target: str | None,
    score: UnboundScore,
    paths: NDArray[np.float64],
) -> Iterator[tuple[int, int, EffectMixture]]:
    """The mixture of each wanted pair, in standardised units, by position in `posterior.names`."""
    regression = _Regressions(data, [data.names.index(name) for name in posterior.names], score)
    descends = transitive_closure(posterior.samples)
    for i in range(posterior.num_variables):
        if source is not None and posterior.names[i] != source:
            continue
        for j in range(posterior.num_variables):
            if i == j or (target is not None and posterior.names[j] != target):
                continue
            present = np.flatnonzero(descends[:, i, j])
            adjustment = posterior.samples[present, :, i]
            causes = descends[present, :, j].copy()
            causes[:, j] = True
            causes[:, i] = False  # setting the source itself is what the effect is about
            weights = posterior.weights[present]
            weights = weights * (paths[i, j] / max(weights.sum(), np.finfo(float).tiny))
            yield i, j, regression.mixture(i, j, adjustment, causes, weights)


class _Regressions:
    """Posteriors of regression coefficients, each computed once."""

    def __init__(self, data: Dataset, order: list[int], score: UnboundScore):
        """Bring the columns of `data` into `order`; `score` has the parameters of BGe."""
        self._data, self._order, self._score = data, order, score
        self._intervened = None if data.intervened is None else data.intervened[:, order]
        self._summary = lru_cache(maxsize=64)(self._summarise)
        self._coefficient = lru_cache(maxsize=None)(self._regress)

    def mixture(
        self,
        i: int,
        j: int,
        adjustment: NDArray[np.bool_],
        causes: NDArray[np.bool_],
        weights: NDArray[np.float64],
    ) -> EffectMixture:
        """The effect of i on j over m graphs: what to adjust for, and what may not be set, both [m, d]."""
        if self._intervened is None:
            causes = np.zeros_like(causes)  # all rows count: graphs differ in the adjustment set alone
        cases = np.concatenate([adjustment, causes], axis=1)
        distinct, inverse = np.unique(cases, axis=0, return_inverse=True)
        mass = np.bincount(inverse.ravel(), weights=weights, minlength=len(distinct)).astype(np.float64)
        d = adjustment.shape[1]
        terms = [
            self._coefficient(i, j, tuple(np.flatnonzero(case[:d]).tolist()), case[d:].tobytes())
            for case in distinct
        ]
        location, scale, degrees = np.array(terms).reshape(-1, 3).T
        return EffectMixture(mass, location, scale, degrees)

    def _regress(
        self, i: int, j: int, adjustment: tuple[int, ...], causes: bytes
    ) -> tuple[float, float, float]:
        """Student-t of the coefficient of i in the regression of j on i and `adjustment`.

        With `Σ ~ IW(R, ν)` on these n variables, `Σ_ZZ⁻¹ Σ_Zj` is Student-t: location `R_ZZ⁻¹ R_Zj`,
        squared scale `R_{j|Z} (R_ZZ⁻¹)_ii / ν`, and ν = ν' + n degrees, with the `ν' = N + α_w − d` of BGe.
        """
        scatter, degrees = self._summary(causes)
        regressors = [i, *adjustment]
        inverse = np.linalg.inv(scatter[np.ix_(regressors, regressors)])
        cross = scatter[regressors, j]
        coefficients = inverse @ cross
        residual = scatter[j, j] - cross @ coefficients
        freedom = degrees + len(regressors) + 1
        return float(coefficients[0]), float(np.sqrt(residual * inverse[0, 0] / freedom)), float(freedom)

    def _summarise(self, causes: bytes) -> tuple[NDArray[np.float64], float]:
        """Posterior scale matrix [d, d] and degrees of freedom of the rows in which no cause was set."""
        data = self._data
        if self._intervened is not None:
            clean = ~(self._intervened & np.frombuffer(causes, dtype=bool)).any(axis=1)
            data = replace(data.take(clean), intervened=None)
        wishart = self._score.bind(data).normal_wishart
        if wishart is None:
            raise ScoreError(
                f"{self._score!r} has no posterior of regression coefficients: effects need BGe, score='bge'."
            )
        return wishart.scatter[0][np.ix_(self._order, self._order)], float(wishart.degrees[0])
