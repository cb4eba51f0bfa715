"""Missing cells of linear-Gaussian networks: jointly Gaussian in each row, given parameters and the rest.

With `x_j = a_j + Σ_i b_ij x_i + ε_j`, `ε_j ~ N(0, 1/τ_j)`, the missing cells `m` of a row have the precision
matrix `Σ_j τ_j v_j v_jᵀ`, where `v_j` holds the coefficients of `m` in the residual of `j`. A variable that
was set from outside in a row has no residual there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gflowdag.runtime.compiled import compiled
from gflowdag.score.conjugate import GaussianParameters
from gflowdag.score.local_score import LocalScore

if TYPE_CHECKING:
    from gflowdag.data import Dataset
    from gflowdag.score.bge import BGe


class GaussianCells:
    """Draws of the missing cells under BGe: parameters first, then all cells of a row at once."""

    def __init__(self, data: Dataset, prior: BGe):
        assert data.missing is not None
        d = data.num_variables
        self._missing = np.ascontiguousarray(data.missing)
        self._set = np.zeros(data.values.shape, bool) if data.intervened is None else data.intervened
        self._alpha_mu = prior.alpha_mu
        self._prior_mean = np.broadcast_to(np.asarray(prior.prior_mean, np.float64), d)

    def __call__(
        self,
        values: NDArray[np.float64],
        graph: NDArray[np.bool_],
        likelihood: LocalScore,
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        parameters = likelihood.parameter_posterior
        assert isinstance(parameters, GaussianParameters)
        d = len(graph)
        slopes, intercepts, precisions = np.zeros((d, d)), np.zeros(d), np.zeros(d)
        for node in range(d):
            parents = np.flatnonzero(graph[:, node])
            drawn, deviation = parameters.draw_regressions(node, parents.tolist(), 1, rng)
            slopes[node, parents] = drawn[0]
            precisions[node] = deviation[0] ** -2
            own = values[~self._set[:, node]]
            weight = len(own) + self._alpha_mu
            mean = (own.sum(axis=0) + self._alpha_mu * self._prior_mean) / weight
            noise = deviation[0] / np.sqrt(weight) * rng.normal()
            intercepts[node] = mean[node] - slopes[node] @ mean + noise
        out = values.copy()
        _fill(out, self._missing, self._set, slopes, intercepts, precisions, rng.normal(size=values.shape))
        return out


@compiled
def _fill(
    values: NDArray[np.float64],
    missing: NDArray[np.bool_],
    was_set: NDArray[np.bool_],
    slopes: NDArray[np.float64],
    intercepts: NDArray[np.float64],
    precisions: NDArray[np.float64],
    normals: NDArray[np.float64],
) -> None:
    """Draw the missing cells of every row, in place.

    Args:
        values: [n, d].
        missing: [n, d].
        was_set: what was set from outside, [n, d].
        slopes: `b_ij` at [j, i].
        intercepts: [d].
        precisions: of the noise, [d].
        normals: standard normal draws, [n, d].
    """
    n, d = values.shape
    cells = np.empty(d, np.int64)
    coefficients = np.empty(d)
    precision, pull = np.empty((d, d)), np.empty(d)
    for row in range(n):
        number = 0
        for node in range(d):
            if missing[row, node]:
                cells[number] = node
                values[row, node] = 0.0
                number += 1
        if number == 0:
            continue
        precision[:number, :number] = 0.0
        pull[:number] = 0.0
        for node in range(d):
            if was_set[row, node]:
                continue
            residual = values[row, node] - intercepts[node]
            for parent in range(d):
                residual -= slopes[node, parent] * values[row, parent]
            for a in range(number):
                coefficients[a] = (1.0 if cells[a] == node else 0.0) - slopes[node, cells[a]]
            for a in range(number):
                weighted = precisions[node] * coefficients[a]
                pull[a] -= weighted * residual
                for b in range(a + 1):
                    precision[a, b] += weighted * coefficients[b]
        # Cholesky factor L in place; then L u = pull, and Lᵀ x = u + z has mean Λ⁻¹ pull and precision Λ.
        for a in range(number):
            for b in range(a + 1):
                entry = precision[a, b]
                for c in range(b):
                    entry -= precision[a, c] * precision[b, c]
                precision[a, b] = np.sqrt(entry) if a == b else entry / precision[b, b]
        for a in range(number):
            for b in range(a):
                pull[a] -= precision[a, b] * pull[b]
            pull[a] /= precision[a, a]
        for a in range(number - 1, -1, -1):
            drawn = pull[a] + normals[row, a]
            for b in range(a + 1, number):
                drawn -= precision[b, a] * values[row, cells[b]]
            values[row, cells[a]] = drawn / precision[a, a]
