"""Tables of scores with a normal-Wishart posterior, such as BGe, by walks over principal minors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.mcmc.bit_graphs import holds, pop, size
from gflowdag.mcmc.unrestricted.candidate_sets import CandidateSets
from gflowdag.score import Score
from gflowdag.score.bge import all_log_minors
from gflowdag.score.normal_wishart import NormalWishart


class _Summary(NamedTuple):
    """What the score keeps of the data."""

    scatter: NDArray[np.float64]  # [g, d, d]
    degrees: NDArray[np.float64]  # [g]
    constant_sums: NDArray[np.float64]  # [g, d + 1], of the constants of fewer parents
    group_of_node: NDArray[np.int64]  # [d]
    floor: float
    prior: NDArray[np.float64]  # [d], −inf beyond the limit on parents


class GaussianTables:
    """Every table anew: a score costs less than looking it up."""

    def __init__(self, score: Score, posterior: NormalWishart):
        limit = score.constraints.max_parents
        prior = np.array(score.prior_log_weights, np.float64)
        if limit is not None:
            prior[limit + 1 :] = -np.inf
        sums = np.pad(posterior.constants.cumsum(axis=1), ((0, 0), (1, 0)))
        self._summary = _Summary(
            np.ascontiguousarray(posterior.scatter),
            np.asarray(posterior.degrees, np.float64),
            sums,
            np.asarray(posterior.group_of_node, np.int64),
            float(posterior.scale),
            prior,
        )

    def fill(self, sets: CandidateSets, scores: NDArray[np.float64]) -> None:
        _fill(self._summary, sets, scores)

    def extend(self, bases: NDArray[np.uint64], scores: NDArray[np.float64]) -> None:
        _extend(self._summary, bases, scores)


@njit(cache=True, nogil=True)
def _fill(summary, sets, scores):
    for node in range(scores.shape[0]):
        k = sets.sizes[node]
        group = summary.group_of_node[node]
        matrix, log_base = _given_base(summary, group, node, sets)
        minors = all_log_minors(matrix, summary.floor)
        num_base = size(sets.base[node])
        constants, weight = summary.constant_sums[group], 0.5 * summary.degrees[group]
        for subset in range(1 << k):
            n = num_base + _num_bits(subset)
            scores[node, subset] = (
                constants[n + 1]
                - constants[n]
                - (weight + 0.5 * (n + 1)) * (minors[subset | (1 << k)] + log_base)
                + (weight + 0.5 * n) * (minors[subset] + log_base)
                + summary.prior[n]
            )


@njit(cache=True, nogil=True)
def _extend(summary, bases, scores):
    d = len(bases)
    rows, variances, covariances = np.empty((d, d)), np.empty(d), np.empty(d)
    pivots = np.empty(d)
    members = np.empty(d, np.int64)
    for node in range(d):
        group = summary.group_of_node[node]
        scatter = summary.scatter[group]
        left, n = bases[node].copy(), 0
        member = pop(left)
        while member >= 0:
            members[n] = member
            n += 1
            member = pop(left)
        log_base = 0.0
        for other in range(d):
            variances[other] = scatter[other, other]
            covariances[other] = scatter[node, other]
        for t in range(n):  # what is left of all columns once the base is swept out
            row = rows[t]
            row[:] = scatter[members[t]]
            for s in range(t):
                row -= rows[s] * (rows[s, members[t]] / pivots[s])
            pivots[t] = max(row[members[t]], summary.floor)
            log_base += np.log(pivots[t])
            ratio = row[node] / pivots[t]
            for other in range(d):
                variances[other] -= row[other] * row[other] / pivots[t]
                covariances[other] -= ratio * row[other]
        constants, weight = summary.constant_sums[group], 0.5 * summary.degrees[group]
        own = max(variances[node], summary.floor)
        for other in range(d):
            if holds(bases[node], other):
                scores[node, other] = -np.inf
                continue
            m, log_parents, rest = n, log_base, own
            if other != node:
                variance = max(variances[other], summary.floor)
                m, log_parents = n + 1, log_base + np.log(variance)
                rest = max(own - covariances[other] * covariances[other] / variance, summary.floor)
            scores[node, other] = (
                constants[m + 1]
                - constants[m]
                - (weight + 0.5 * (m + 1)) * (log_parents + np.log(rest))
                + (weight + 0.5 * m) * log_parents
                + summary.prior[m]
            )


@njit(cache=True, nogil=True)
def _given_base(summary, group, node, sets):
    """Schur complement of candidates and node given the base, [K + 1, K + 1], and the base's own minor."""
    k = sets.sizes[node]
    scatter = summary.scatter[group]
    base = sets.base[node].copy()
    num_base = size(base)
    family = np.empty(num_base + k + 1, np.int64)
    for a in range(num_base):
        family[a] = pop(base)
    for a in range(k):
        family[num_base + a] = sets.candidates[node, a]
    family[num_base + k] = node
    n = len(family)
    matrix = np.empty((n, n))
    for a in range(n):
        for b in range(n):
            matrix[a, b] = scatter[family[a], family[b]]
    log_base = 0.0
    for t in range(num_base):
        pivot = max(matrix[t, t], summary.floor)
        log_base += np.log(pivot)
        for a in range(t + 1, n):
            ratio = matrix[a, t] / pivot
            for b in range(t + 1, n):
                matrix[a, b] -= ratio * matrix[t, b]
    return matrix[num_base:, num_base:].copy(), log_base


@njit(cache=True, nogil=True)
def _num_bits(number):
    count = 0
    while number:
        number &= number - 1
        count += 1
    return count
