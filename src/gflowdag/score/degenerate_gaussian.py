"""Degenerate Gaussian score (Andrews, Ramsey & Cooper 2019) on BGe: levels as points of a Gaussian.

A variable of `c` levels becomes `c − 1` orthonormal contrasts, and all columns together are taken as one
Gaussian network. Edges between discrete and continuous variables have both directions, and a class of
Markov-equivalent graphs has one score. The likelihood of a level is wrong: it counts as a number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gflowdag.runtime.compiled import compiled
from gflowdag.runtime.keywords import named_parameters
from gflowdag.runtime.messages import shown
from gflowdag.runtime.progress import Progress, silent
from gflowdag.score.bge import BGe, log_minors, normal_wishart_posterior
from gflowdag.score.local_score import positive
from gflowdag.score.set_function import SetFunctionScore, row_groups

if TYPE_CHECKING:
    from gflowdag.data import Dataset


@named_parameters
@dataclass(frozen=True, kw_only=True)
class DegenerateGaussian:
    """Levels as orthonormal contrasts in a linear-Gaussian network, for columns of any kind.

    The contrasts of a variable are centred and scaled by one factor to a mean variance of one. The prior is
    that of `BGe` with `d` the number of all contrasts and continuous columns.

    Args:
        alpha_mu: strength of the prior mean, in rows.
        alpha_w: degrees of freedom of the Wishart prior, more than `d + 1` (None: `d + 2`).
    """

    alpha_mu: float = 1.0
    alpha_w: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha_mu", positive("alpha_mu", self.alpha_mu))
        if self.alpha_w is not None:
            object.__setattr__(self, "alpha_w", positive("alpha_w", self.alpha_w))

    def bind(self, data: Dataset, /) -> DegenerateGaussianLikelihood:
        """The score of a table with columns of any kind."""
        return DegenerateGaussianLikelihood(data, self)


class DegenerateGaussianLikelihood(SetFunctionScore):
    """`M(S) = log p_BGe(all columns of S)`, a variable with many levels having several columns.

    The prior of BGe is the same in all directions, so that any orthonormal contrasts give the same score:
    neither the order of the levels matters nor which of them would be left out.
    """

    def __init__(self, data: Dataset, parameters: DegenerateGaussian):
        self.num_variables = data.num_variables
        self.group_of_node, rows = row_groups(data.intervened, data.num_rows, data.num_variables)
        blocks = [
            contrasts(numbers) if kind == "discrete" else numbers[:, None]
            for numbers, kind in zip(data.values.T, data.kinds, strict=True)
        ]
        self._width = np.array([block.shape[1] for block in blocks])
        self._owner = np.repeat(np.arange(data.num_variables), self._width)
        self._discrete = [column.name for column in data.columns if column.kind == "discrete"]
        names = [data.names[j] for j in self._owner]
        prior = BGe(alpha_mu=parameters.alpha_mu, alpha_w=parameters.alpha_w)
        self._posterior = normal_wishart_posterior(
            np.concatenate(blocks, axis=1), names, prior, rows, self.group_of_node
        )

    @property
    def notes(self) -> tuple[str, ...]:
        if not self._discrete:
            return ()
        return (
            f"The score degenerate-gaussian treats the levels of {shown(self._discrete)} as numbers with "
            "Gaussian noise: it sees linear relations in both directions, and is not a likelihood of levels.",
        )

    def log_marginals(self, group: int, subsets: NDArray[np.bool_]) -> NDArray[np.float64]:
        columns = np.ascontiguousarray(np.asarray(subsets, bool)[:, self._owner])
        log_determinants = log_minors(self._posterior.scatter[group], columns, self._posterior.scale)
        return self._posterior.log_marginals(group, columns.sum(axis=1), log_determinants)

    def all_log_marginals(
        self, group: int, variables: NDArray[np.integer[Any]], progress: Progress = silent
    ) -> NDArray[np.float64]:
        columns = np.concatenate([np.flatnonzero(self._owner == variable) for variable in variables])
        matrix = self._posterior.scatter[group][np.ix_(columns, columns)]
        ends = self._width[variables].cumsum()
        log_determinants, sizes = _all_log_block_minors(matrix, ends, self._posterior.scale)
        return self._posterior.log_marginals(group, sizes, log_determinants)


def contrasts(codes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Orthonormal contrasts of the levels that occur, centred, of mean variance one: [n] -> [n, levels − 1].

    A level that never occurs has no column: there would be nothing in it.
    """
    levels, position = np.unique(codes, return_inverse=True)
    num_levels = len(levels)
    if num_levels == 1:  # as in a resampled table
        return np.empty((len(codes), 0))
    rows = np.arange(1, num_levels)
    helmert = np.where(np.arange(num_levels) < rows[:, None], 1.0, 0.0)
    helmert[rows - 1, rows] = -rows
    helmert /= np.sqrt(rows * (rows + 1.0))[:, None]
    values = helmert.T[position.reshape(-1)]
    centred = values - values.mean(axis=0)
    return centred / np.sqrt(centred.var(axis=0, ddof=1).mean())


@compiled
def _all_log_block_minors(
    matrix: NDArray[np.float64], ends: NDArray[np.int64], floor: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Log determinants of `matrix` [m, m] on every set of blocks, and their numbers of columns, [2^k] each.

    Block `t` has the columns up to `ends[t]`. The walk is that of `bge.all_log_minors`, where a step sweeps
    out a block, one column after the other, instead of one column.
    """
    k, m = len(ends), matrix.shape[0]
    out = np.zeros(1 << k)
    sizes = np.zeros(1 << k, np.int64)
    complements = np.empty((k + 1, m, m))  # level t: Schur complement of the columns before block t
    complements[k] = matrix
    level_of = np.full(k + 1, k)  # where the complement that block t has to use is stored
    for subset in range(1, 1 << k):
        t = 0
        while not (subset >> t) & 1:
            t += 1
        start = ends[t - 1] if t > 0 else 0
        swept = complements[t]
        swept[: ends[t], : ends[t]] = complements[level_of[t + 1], : ends[t], : ends[t]]
        log_determinant = 0.0
        for column in range(ends[t] - 1, start - 1, -1):
            pivot = max(swept[column, column], floor)
            log_determinant += math.log(pivot)
            for a in range(column):
                ratio = swept[a, column] / pivot
                for b in range(a, column):  # the upper triangle is all that is read
                    swept[a, b] -= ratio * swept[b, column]
        previous = subset & (subset - 1)
        out[subset] = out[previous] + log_determinant
        sizes[subset] = sizes[previous] + ends[t] - start
        level_of[: t + 1] = t
    return out, sizes
