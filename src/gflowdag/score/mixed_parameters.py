"""The posterior of the parameters of a network of both kinds, under the generalised linear score.

A node has a linear predictor in every cell of its discrete parents: its mean, or the log-odds of its levels.
Linear regressions and tables are drawn from their conjugate posteriors, logistic regressions by
`logistic_draws`. Where the score averages models of a node, each draw takes one by its posterior probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from gflowdag.data import Dataset
from gflowdag.data.columns import Column
from gflowdag.data.mixed_network import cells
from gflowdag.errors import TooLargeError
from gflowdag.score.conjugate import MAX_CELLS
from gflowdag.score.degenerate_gaussian import contrasts
from gflowdag.score.logistic_draws import draw_coefficients

if TYPE_CHECKING:
    from gflowdag.score.generalized_linear import GeneralizedLinear, GeneralizedLinearLikelihood


class Predictors(NamedTuple):
    """Draws of the parameters of one node, as `MixedNetwork` has them."""

    coefficients: NDArray[np.float64]  # [size, cells, 1 or levels, 1 + continuous parents]
    deviations: NDArray[np.float64]  # of the noise, [size, cells]; zero if the node is discrete


class _Regression(NamedTuple):
    """The posterior of one regression under the normal-Wishart prior of BGe with mean zero."""

    mean: NDArray[np.float64]  # of the columns, [l + 1], the dependent one last
    num_rows: int
    alpha_mu: float
    degrees: float  # α_w − d
    scale: float  # t
    root: NDArray[np.float64]  # L of `R_PP = L Lᵀ`, [l, l]
    whitened: NDArray[np.float64]  # `L⁻¹ R_Pj`, [l]
    left: float  # `R_{j|P}`

    @classmethod
    def of(cls, columns: NDArray[np.float64], alpha_mu: float, degrees: float) -> _Regression:
        """The last of the columns [n, l + 1] on the others."""
        scale = alpha_mu * (degrees - 1) / (alpha_mu + 1)
        n, l = len(columns), columns.shape[1] - 1
        mean = columns.mean(axis=0) if n else np.zeros(l + 1)
        centred = columns - mean
        scatter = centred.T @ centred + n * alpha_mu / (n + alpha_mu) * np.outer(mean, mean)
        scatter += scale * np.eye(l + 1)
        root = np.asarray(np.linalg.cholesky(scatter[:l, :l]), np.float64)
        whitened = np.asarray(np.linalg.solve(root, scatter[:l, l]), np.float64)
        left = float(scatter[l, l] - whitened @ whitened)
        return cls(mean, n, alpha_mu, degrees, scale, root, whitened, left)

    def draw_deviation(self, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Deviations of the noise, [size]."""
        freedom = self.num_rows + self.degrees + len(self.mean)
        return np.sqrt(self.left / rng.chisquare(freedom, size))

    def draw(self, deviation: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Intercept and slopes given the deviation [size] of the noise: [size, 1 + l]."""
        noise = rng.normal(size=(len(deviation), len(self.whitened))) * deviation[:, None]
        slopes = (self.whitened + noise) @ np.linalg.inv(self.root)
        rows = self.num_rows + self.alpha_mu
        centre = self.num_rows / rows * (self.mean[-1] - slopes @ self.mean[:-1])
        return np.column_stack([centre + rng.normal(size=len(deviation)) * deviation / np.sqrt(rows), slopes])


@dataclass(frozen=True, eq=False)
class MixedParameters:
    """Linear and logistic regressions of one table, which is kept: they have no smaller summary.

    Attributes:
        values: the coded table, [n, d]; discrete columns hold codes.
        num_levels: int [d], 0 for a continuous column.
        intervened: what was set from outside, bool [n, d]; None for nothing.
        score: the hyper-parameters.
        own_variances: whether a continuous node has one model, a regression in every cell with a variance of
            its own, as under `ConditionalGaussian`.
    """

    values: NDArray[np.float64]
    num_levels: NDArray[np.int64]
    intervened: NDArray[np.bool_] | None
    score: GeneralizedLinear
    own_variances: bool = False

    @classmethod
    def of(cls, data: Dataset, score: GeneralizedLinear, *, own_variances: bool = False) -> MixedParameters:
        """Those of a coded table."""
        levels = [len(column.levels or ()) for column in data.columns]
        return cls(data.values, np.array(levels, np.int64), data.intervened, score, own_variances)

    def draw(self, node: int, parents: NDArray[np.bool_], size: int, rng: np.random.Generator) -> Predictors:
        """Parameters of `node` given its `parents`, bool [d]; cells in the order of `MixedNetwork`."""
        num_cells = int(self.num_levels[self._discrete(parents)].astype(float).prod())
        width = max(int(self.num_levels[node]), 1) * (1 + int(self._numbers(parents).sum()))
        if num_cells * width > MAX_CELLS:
            raise TooLargeError(
                f"A variable has {num_cells:,} combinations of the levels of its parents, too many to draw "
                "from: bound the parents by knowledge (max_parents)."
            )
        if self.own_variances and not self.num_levels[node]:
            return self._with_own_variances(node, parents, num_cells, size, rng)
        share = softmax(self._likelihood.models(node, parents))
        out = Predictors(
            np.zeros((size, num_cells, max(int(self.num_levels[node]), 1), 1 + self._numbers(parents).sum())),
            np.zeros((size, num_cells)),
        )
        which = rng.choice(len(share), size, p=share)
        for model in np.unique(which):
            mine = np.flatnonzero(which == model)
            if self.num_levels[node]:
                ess = float(np.atleast_1d(np.asarray(self.score.ess, np.float64))[model])
                out.coefficients[mine] = self._logistic(node, parents, num_cells, ess, len(mine), rng)
            elif model == 0:
                drawn = self._in_every_cell(node, parents, num_cells, len(mine), rng)
                out.coefficients[mine, :, 0], out.deviations[mine] = drawn
            else:
                drawn = self._shifted(node, parents, num_cells, len(mine), rng)
                out.coefficients[mine, :, 0], out.deviations[mine] = drawn
        return out

    def _logistic(
        self,
        node: int,
        parents: NDArray[np.bool_],
        num_cells: int,
        ess: float,
        size: int,
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Log-odds in every cell, [size, cells, levels, 1 + l]."""
        rows, levels = self._rows(node), int(self.num_levels[node])
        cell = cells(rows, parents, self.num_levels)
        codes, numbers = rows[:, node].astype(np.int64), rows[:, self._numbers(parents)].T
        return np.stack(
            [
                draw_coefficients(
                    codes[cell == number],
                    np.ascontiguousarray(numbers[:, cell == number]),
                    levels,
                    ess / (num_cells * levels),
                    self.score.deviation,
                    size,
                    rng,
                )
                for number in range(num_cells)
            ],
            axis=1,
        )

    def _in_every_cell(
        self, node: int, parents: NDArray[np.bool_], num_cells: int, size: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """A linear regression in every cell, all with one deviation: [size, cells, 1 + l], [size, cells].

        The variance is `(t + Σ_c (s_c − t)) / χ²(N + α_w − d + l + 1)`, with `s_c` what is left in cell `c`.
        """
        rows = self._rows(node)
        cell = cells(rows, parents, self.num_levels)
        family = np.append(np.flatnonzero(self._numbers(parents)), node)
        width = int((self.num_levels == 0).sum())
        found = [self._regression(rows[cell == number][:, family], width) for number in range(num_cells)]
        left = found[0].scale + sum(one.left - one.scale for one in found)
        freedom = len(rows) + found[0].degrees + len(family)
        deviation = np.sqrt(left / rng.chisquare(freedom, size))
        drawn = np.stack([one.draw(deviation, rng) for one in found], axis=1)
        return drawn, np.broadcast_to(deviation[:, None], (size, num_cells))

    def _with_own_variances(
        self, node: int, parents: NDArray[np.bool_], num_cells: int, size: int, rng: np.random.Generator
    ) -> Predictors:
        """A linear regression in every cell, each with a deviation of its own."""
        rows = self._rows(node)
        cell = cells(rows, parents, self.num_levels)
        family = np.append(np.flatnonzero(self._numbers(parents)), node)
        width = int((self.num_levels == 0).sum())
        found = [self._regression(rows[cell == number][:, family], width) for number in range(num_cells)]
        noise = [one.draw_deviation(size, rng) for one in found]
        drawn = [one.draw(deviation, rng) for one, deviation in zip(found, noise, strict=True)]
        return Predictors(np.stack(drawn, axis=1)[:, :, None], np.stack(noise, axis=1))

    def _shifted(
        self, node: int, parents: NDArray[np.bool_], num_cells: int, size: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """One linear regression in which the levels of discrete parents shift the mean; shapes as above."""
        blocks = [self._contrasts[parent] for parent in np.flatnonzero(self._discrete(parents)).tolist()]
        rows = self._rows(node)
        numbers = np.append(np.flatnonzero(self._numbers(parents)), node)
        codes = rows[:, self._discrete(parents)].astype(np.int64).T
        columns = [block[code] for block, code in zip(blocks, codes, strict=True)]
        width = sum(block.shape[1] for block in self._contrasts.values()) + int((self.num_levels == 0).sum())
        regression = self._regression(np.concatenate([*columns, rows[:, numbers]], axis=1), width)
        noise = regression.draw_deviation(size, rng)
        found = regression.draw(noise, rng)
        of_cell = np.stack(np.unravel_index(np.arange(num_cells), [len(block) for block in blocks]))
        design = np.concatenate([block[code] for block, code in zip(blocks, of_cell, strict=True)], axis=1)
        shifts = found[:, 1 : 1 + design.shape[1]] @ design.T  # [size, cells]
        slopes = np.broadcast_to(found[:, None, 1 + design.shape[1] :], (size, num_cells, len(numbers) - 1))
        own = np.concatenate([(found[:, :1] + shifts)[:, :, None], slopes], axis=2)
        return own, np.broadcast_to(noise[:, None], (size, num_cells))

    def _regression(self, columns: NDArray[np.float64], width: int) -> _Regression:
        """Of the last of the columns [n, l + 1] on the others, with the prior of `width` columns."""
        alpha_mu = self.score.alpha_mu
        degrees = 2.0 if self.score.alpha_w is None else self.score.alpha_w - width
        return _Regression.of(columns, alpha_mu, degrees)

    def _rows(self, node: int) -> NDArray[np.float64]:
        """The rows that count for a node, those in which it was not set."""
        return self.values if self.intervened is None else self.values[~self.intervened[:, node]]

    def _discrete(self, parents: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return parents & (self.num_levels > 0)

    def _numbers(self, parents: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return parents & (self.num_levels == 0)

    @cached_property
    def _contrasts(self) -> dict[int, NDArray[np.float64]]:
        """Of each discrete column the contrasts of its levels, [levels, c]; zeros if a level never occurs."""
        found: dict[int, NDArray[np.float64]] = {}
        for node in np.flatnonzero(self.num_levels).tolist():
            codes = self.values[:, node].astype(np.int64)
            columns = contrasts(self.values[:, node])
            block = np.zeros((int(self.num_levels[node]), columns.shape[1]))
            block[codes] = columns
            found[node] = block
        return found

    @cached_property
    def data(self) -> Dataset:
        """The table, under names of its own."""
        columns = tuple(
            Column(f"X{place + 1}", "discrete", levels=tuple(range(levels)))
            if levels
            else Column(f"X{place + 1}", "continuous")
            for place, levels in enumerate(self.num_levels.tolist())
        )
        return Dataset(columns, self.values, self.intervened)

    @cached_property
    def _likelihood(self) -> GeneralizedLinearLikelihood:
        return self.score.bind(self.data)
