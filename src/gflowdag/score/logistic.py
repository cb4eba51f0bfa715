"""Bayes factors of multinomial logistic regressions against the same without covariates, by Laplace.

In one cell the log-odds of level `l ≥ 1` against level 0 are `b_l + Σ_i w_li x_i`. The probabilities at
`x = 0` have a symmetric Dirichlet prior, `a` rows of each level: the prior of BDeu, so that without
covariates the regression *is* BDeu. Each level has coefficients from N(0, σ²); their differences from level 0
have the precision `(I − 11ᵀ/r) / σ²`, whichever level that is.

The log posterior is concave. Newton's method finds its top, and Laplace's formula is taken of the model with
covariates and of the one without: what the formula gets wrong about the intercepts cancels between the two.
Cells of fewer than `LEAST_ROWS` rows leave the covariates out: they could say little, and there are many.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gflowdag.runtime.compiled import compiled, compiled_sum
from gflowdag.score.exponential import exponentials

LEAST_ROWS = 20  # in a cell; in smaller ones covariates are left out
_SMALL_SHARE = 0.05  # of the rows of a level: so many pseudo-counts more hardly move the top
_TOLERANCE = 1e-7  # nats that the last Newton step would still gain
_STEPS = 100  # of Newton's method; a handful is enough


@compiled
def log_bayes_factors(
    level: NDArray[np.int64],
    x: NDArray[np.float64],
    starts: NDArray[np.int64],
    num_levels: int,
    pseudo_counts: NDArray[np.float64],
    deviation: float,
    subsets: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """`Σ_cells log p(levels | x_S) / p(levels)` for given sets of covariates.

    Args:
        level: of each row, [n]; rows of one cell stand together.
        x: covariates, [m, n].
        starts: first row of each cell, and `n`, [cells + 1].
        num_levels: `r`.
        pseudo_counts: `a`, each for an answer of its own, [e].
        deviation: `σ`.
        subsets: bool [s, m].

    Returns:
        float64 [e, s].
    """
    out = np.zeros((len(pseudo_counts), len(subsets)))
    for cell in range(len(starts) - 1):
        first, last = starts[cell], starts[cell + 1]
        if last - first < LEAST_ROWS:
            continue
        counts = _counts(level[first:last], num_levels)
        for s in range(len(subsets)):
            chosen = np.flatnonzero(subsets[s])
            design = _design(x, first, last, chosen)
            coefficients = np.zeros((num_levels - 1, len(chosen) + 1))
            _start(counts, pseudo_counts, coefficients)
            _add_log_bayes_factors(
                level[first:last], design, counts, pseudo_counts, deviation, coefficients, out[:, s]
            )
    return out


@compiled
def all_log_bayes_factors(
    level: NDArray[np.int64],
    x: NDArray[np.float64],
    starts: NDArray[np.int64],
    num_levels: int,
    pseudo_counts: NDArray[np.float64],
    deviation: float,
) -> NDArray[np.float64]:
    """The same for every set of covariates, [e, 2^m]; bit `i` of the index stands for `x[i]`.

    Each search starts where that of the set without its lowest member ended.
    """
    m = len(x)
    out = np.zeros((len(pseudo_counts), 1 << m))
    modes = np.zeros((m + 1, num_levels - 1, m + 1))  # level t: of the last set whose lowest member is t
    chosen = np.empty(m, np.int64)
    for cell in range(len(starts) - 1):
        first, last = starts[cell], starts[cell + 1]
        if last - first < LEAST_ROWS:
            continue
        counts = _counts(level[first:last], num_levels)
        _start(counts, pseudo_counts, modes[m])
        level_of = np.full(m + 1, m)
        for subset in range(1, 1 << m):
            size = 0
            for i in range(m):
                if (subset >> i) & 1:
                    chosen[size] = i
                    size += 1
            t = chosen[0]
            previous = modes[level_of[t + 1]]
            design = _design(x, first, last, chosen[:size])
            coefficients = np.zeros((num_levels - 1, size + 1))
            coefficients[:, 0] = previous[:, 0]
            for place in range(1, size):
                coefficients[:, place + 1] = previous[:, chosen[place] + 1]
            _add_log_bayes_factors(
                level[first:last], design, counts, pseudo_counts, deviation, coefficients, out[:, subset]
            )
            modes[t, :, 0] = coefficients[:, 0]
            for place in range(size):
                modes[t, :, chosen[place] + 1] = coefficients[:, place + 1]
            level_of[: t + 1] = t
    return out


@compiled
def _counts(level: NDArray[np.int64], num_levels: int) -> NDArray[np.float64]:
    counts = np.zeros(num_levels)
    for row in range(len(level)):
        counts[level[row]] += 1
    return counts


@compiled
def _start(
    counts: NDArray[np.float64], pseudo_counts: NDArray[np.float64], coefficients: NDArray[np.float64]
) -> None:
    """The most probable intercepts without covariates."""
    middle = pseudo_counts[len(pseudo_counts) // 2]
    for l in range(1, len(counts)):
        coefficients[l - 1, 0] = math.log((counts[l] + middle) / (counts[0] + middle))


@compiled
def _design(x: NDArray[np.float64], first: int, last: int, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """Ones and the chosen covariates of the rows of a cell, [1 + chosen, rows]."""
    design = np.ones((len(chosen) + 1, last - first))
    for place in range(len(chosen)):
        design[place + 1] = x[chosen[place], first:last]
    return design


@compiled
def _add_log_bayes_factors(
    level: NDArray[np.int64],
    design: NDArray[np.float64],
    counts: NDArray[np.float64],
    pseudo_counts: NDArray[np.float64],
    deviation: float,
    coefficients: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Add those of one cell, [e].

    The search starts at `coefficients` [r − 1, k] and leaves there where it ended. Where every level has
    many rows one search serves all pseudo-counts: the tops of the others are one Newton step from the middle.
    """
    k = len(design)
    num_levels = len(counts)
    others = num_levels - 1
    hessian = np.empty((others * k, others * k))
    factor = np.empty_like(hessian)
    null_hessian = np.empty((others, others))
    null_factor = np.empty_like(null_hessian)
    null_intercepts = np.empty(others)
    step = np.empty(others * k)
    prior = (k - 1) * (others * math.log(deviation) + 0.5 * math.log(num_levels))
    value, null = 0.0, 0.0
    middle, anchor = pseudo_counts[len(pseudo_counts) // 2], -1.0
    for e in range(len(out)):
        is_far = abs(pseudo_counts[e] - middle) > _SMALL_SHARE * counts.min()
        wanted = pseudo_counts[e] if is_far else middle
        if wanted != anchor:
            anchor = wanted
            value = climb(level, design, anchor, deviation, coefficients, hessian)
            null = _null(counts, anchor, null_intercepts, null_hessian)
        added = pseudo_counts[e] - anchor
        factor[:], null_factor[:] = hessian, null_hessian
        out[e] += value + _laplace(factor, coefficients[:, 0], k, added, step) - prior
        out[e] -= null + _laplace(null_factor, null_intercepts, 1, added, step)


@compiled
def climb(
    level: NDArray[np.int64],
    design: NDArray[np.float64],
    pseudo_count: float,
    deviation: float,
    coefficients: NDArray[np.float64],
    hessian: NDArray[np.float64],
) -> float:
    """The top of the log posterior, up to a constant, by Newton's method from `coefficients` on.

    Leaves the coefficients there, and minus the second derivatives in `hessian`.
    """
    k, n = design.shape
    others, size = len(coefficients), len(hessian)
    gradient = np.empty(size)
    factor = np.empty((size, size))
    probabilities = np.empty((others, n))
    weighted = np.empty(n)
    trial = np.empty_like(coefficients)
    value = log_posterior(level, design, pseudo_count, deviation, coefficients, probabilities)
    for _ in range(_STEPS):
        _derivatives(
            level, design, pseudo_count, deviation, coefficients, probabilities, weighted, gradient, hessian
        )
        factor[:] = hessian
        _cholesky(factor)
        _solve(factor, gradient)  # now the Newton step
        if 0.5 * _squared_length(factor, gradient) < _TOLERANCE:
            break
        share, reached = 1.0, value
        while share > 1e-8:
            for l in range(others):
                for a in range(k):
                    trial[l, a] = coefficients[l, a] + share * gradient[l * k + a]
            reached = log_posterior(level, design, pseudo_count, deviation, trial, probabilities)
            if reached >= value:
                break
            share *= 0.5
        else:
            break  # nothing to gain beyond rounding
        coefficients[:] = trial
        value = reached
    return value


@compiled
def _null(
    counts: NDArray[np.float64],
    pseudo_count: float,
    intercepts: NDArray[np.float64],
    hessian: NDArray[np.float64],
) -> float:
    """The same without covariates, in closed form."""
    others = len(intercepts)
    total = counts.sum() + len(counts) * pseudo_count
    value = (counts[0] + pseudo_count) * math.log((counts[0] + pseudo_count) / total)
    for l in range(others):
        expected = counts[l + 1] + pseudo_count
        value += expected * math.log(expected / total)
        intercepts[l] = math.log(expected / (counts[0] + pseudo_count))
        for h in range(others):
            hessian[l, h] = -expected * (counts[h + 1] + pseudo_count) / total
        hessian[l, l] += expected
    return value


@compiled
def _laplace(
    hessian: NDArray[np.float64],
    intercepts: NDArray[np.float64],
    k: int,
    added: float,
    step: NDArray[np.float64],
) -> float:
    """`Δf − ½ log |H|` where each level has `added` pseudo-counts more than at the top of `f`.

    `hessian` is minus the second derivatives there, and is overwritten.
    """
    others, size = len(intercepts), len(hessian)
    change = 0.0
    if added != 0.0:
        largest = max(intercepts.max(), 0.0)
        at_zero = np.exp(intercepts - largest)
        total = at_zero.sum() + math.exp(-largest)
        at_zero /= total
        change = added * (intercepts.sum() - (others + 1) * (largest + math.log(total)))
        step[:size] = 0.0
        for l in range(others):
            step[l * k] = added * (1.0 - (others + 1) * at_zero[l])
            for h in range(others):
                same = 1.0 if h == l else 0.0
                hessian[l * k, h * k] += added * (others + 1) * at_zero[l] * (same - at_zero[h])
    log_determinant = _cholesky(hessian)
    if added != 0.0:
        _solve(hessian, step[:size])
        change += 0.5 * _squared_length(hessian, step[:size])
    return change - 0.5 * log_determinant


@compiled
def log_posterior(
    level: NDArray[np.int64],
    design: NDArray[np.float64],
    pseudo_count: float,
    deviation: float,
    coefficients: NDArray[np.float64],
    probabilities: NDArray[np.float64],
) -> float:
    """The log posterior up to a constant; leaves the probabilities of levels 1 … r − 1, [r − 1, n]."""
    k, n = design.shape
    others = coefficients.shape[0]
    for l in range(others):
        row_of_odds = probabilities[l]
        row_of_odds[:] = coefficients[l, 0]
        for a in range(1, k):
            _add(row_of_odds, coefficients[l, a], design[a])
    value = 0.0
    for l in range(others):
        value += _sum_of_rows(probabilities[l], level, l + 1)
    largest_odds, total_weight, scratch = np.zeros(n), np.empty(n), np.empty(n)
    for l in range(others):
        _raise(largest_odds, probabilities[l])
    for row in range(n):
        total_weight[row] = -largest_odds[row]
    exponentials(total_weight, scratch)
    for l in range(others):
        _add(probabilities[l], -1.0, largest_odds)
        exponentials(probabilities[l], scratch)
        _add(total_weight, 1.0, probabilities[l])
    value -= largest_odds.sum()
    product = 1.0
    for row in range(n):
        product *= total_weight[row]  # one logarithm for many rows
        if product > 1e200:
            value -= math.log(product)
            product = 1.0
    for l in range(others):
        for row in range(n):
            probabilities[l, row] /= total_weight[row]
    value -= math.log(product)
    largest = 0.0
    for l in range(others):
        largest = max(largest, coefficients[l, 0])
    total = math.exp(-largest)
    for l in range(others):
        total += math.exp(coefficients[l, 0] - largest)
        value += pseudo_count * coefficients[l, 0]
    value -= pseudo_count * (others + 1) * (largest + math.log(total))
    for a in range(1, k):
        squares, total = 0.0, 0.0
        for l in range(others):
            squares += coefficients[l, a] ** 2
            total += coefficients[l, a]
        value -= 0.5 * (squares - total * total / (others + 1)) / deviation**2
    return value


@compiled
def _derivatives(
    level: NDArray[np.int64],
    design: NDArray[np.float64],
    pseudo_count: float,
    deviation: float,
    coefficients: NDArray[np.float64],
    probabilities: NDArray[np.float64],
    weighted: NDArray[np.float64],
    gradient: NDArray[np.float64],
    hessian: NDArray[np.float64],
) -> None:
    """The gradient of the log posterior, and minus its second derivatives (lower triangle)."""
    k, n = design.shape
    others = coefficients.shape[0]
    precision = 1.0 / deviation**2
    largest = 0.0
    for l in range(others):
        largest = max(largest, coefficients[l, 0])
    at_zero = np.exp(coefficients[:, 0] - largest)
    at_zero /= at_zero.sum() + math.exp(-largest)
    rows = pseudo_count * (others + 1)
    for l in range(others):
        for row in range(n):
            weighted[row] = -probabilities[l, row]
            if level[row] == l + 1:
                weighted[row] += 1.0
        for a in range(k):
            gradient[l * k + a] = _dot(weighted, design[a])
        gradient[l * k] += pseudo_count - rows * at_zero[l]
        for h in range(l + 1):
            same = 1.0 if h == l else 0.0
            for row in range(n):
                weighted[row] = probabilities[l, row] * (same - probabilities[h, row])
            for a in range(k):
                for b in range(a + 1):
                    entry = _dot_of_three(weighted, design[a], design[b])
                    if a == b and a > 0:
                        entry += precision * (same - 1.0 / (others + 1))
                    hessian[l * k + a, h * k + b] = entry
                    hessian[l * k + b, h * k + a] = entry
            hessian[l * k, h * k] += rows * at_zero[l] * (same - at_zero[h])
    for a in range(1, k):
        total = 0.0
        for l in range(others):
            total += coefficients[l, a]
        for l in range(others):
            gradient[l * k + a] -= precision * (coefficients[l, a] - total / (others + 1))


@compiled_sum
def _add(out: NDArray[np.float64], factor: float, x: NDArray[np.float64]) -> None:
    for row in range(len(x)):
        out[row] += factor * x[row]


@compiled
def _raise(out: NDArray[np.float64], x: NDArray[np.float64]) -> None:
    for row in range(len(x)):
        out[row] = max(out[row], x[row])


@compiled_sum
def _sum_of_rows(x: NDArray[np.float64], level: NDArray[np.int64], wanted: int) -> float:
    total = 0.0
    for row in range(len(x)):
        total += x[row] if level[row] == wanted else 0.0
    return total


@compiled_sum
def _dot(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    total = 0.0
    for row in range(len(x)):
        total += x[row] * y[row]
    return total


@compiled_sum
def _dot_of_three(w: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    total = 0.0
    for row in range(len(x)):
        total += w[row] * x[row] * y[row]
    return total


@compiled_sum
def _cholesky(matrix: NDArray[np.float64]) -> float:
    """Replace the lower triangle by its Cholesky factor; returns the log determinant."""
    size = len(matrix)
    log_determinant = 0.0
    for j in range(size):
        for i in range(j, size):
            total = matrix[i, j]
            for a in range(j):
                total -= matrix[i, a] * matrix[j, a]
            if i == j:
                total = math.sqrt(max(total, 1e-300))
                log_determinant += 2 * math.log(total)
            else:
                total /= matrix[j, j]
            matrix[i, j] = total
    return log_determinant


@compiled_sum
def _solve(factor: NDArray[np.float64], vector: NDArray[np.float64]) -> None:
    """Replace `vector` by the solution of `L Lᵀ x = vector`."""
    size = len(vector)
    for i in range(size):
        total = vector[i]
        for a in range(i):
            total -= factor[i, a] * vector[a]
        vector[i] = total / factor[i, i]
    for i in range(size - 1, -1, -1):
        total = vector[i]
        for j in range(i + 1, size):
            total -= factor[j, i] * vector[j]
        vector[i] = total / factor[i, i]


@compiled
def _squared_length(factor: NDArray[np.float64], vector: NDArray[np.float64]) -> float:
    """`vᵀ L Lᵀ v`."""
    size = len(vector)
    total = 0.0
    for j in range(size):
        entry = 0.0
        for i in range(j, size):
            entry += factor[i, j] * vector[i]
        total += entry * entry
    return total
