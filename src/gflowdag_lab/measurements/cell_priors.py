"""Local scores of discrete tables that are no difference of one set function: yardsticks, not for use.

With `n_k` the rows of level `k` (of `r`) in one configuration of the parents, `n` their sum and `q̃` the
number of configurations that occur:

    BDs   Dirichlet(ess / (r q̃)) in the configurations that occur (Scutari 2016)
    BDJ   Dirichlet(1/2), Jeffreys' prior (Suzuki 2017)
    fNML  Σ_k n_k log(n_k / n) − log C(r, n), factorised normalised maximum likelihood (Silander et al. 2008)
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import gammaln

KINDS = ("BDs", "BDJ", "fNML")


def tables(codes: NDArray, levels: NDArray[np.int64], *, ess: float = 1.0) -> dict[str, NDArray[np.float64]]:
    """The log score of every node with every parent set, for each of `KINDS`.

    Args:
        codes: levels of a table, [n, d].
        levels: number of levels of each column, [d].
        ess: equivalent sample size of BDs.

    Returns:
        float64 [d, 2^(d−1)] each, compressed index.
    """
    rows, counts = np.unique(codes.astype(np.int64), axis=0, return_counts=True)
    columns, d = np.ascontiguousarray(rows.T), len(levels)
    n = np.arange(len(codes) + 1)
    cell_terms = np.stack([gammaln(n + 0.5) - gammaln(0.5), n * np.log(np.maximum(n, 1))])
    out = np.empty((len(KINDS), d, 1 << (d - 1)))
    for node in range(d):
        r = int(levels[node])
        configuration_terms = np.stack(
            [gammaln(r / 2) - gammaln(n + r / 2), -n * np.log(np.maximum(n, 1)) - log_regret(r, len(codes))]
        )
        others = np.delete(np.arange(d), node)
        _fill(
            columns[others],
            columns[node],
            counts,
            levels[others],
            r,
            float(ess),
            cell_terms,
            configuration_terms,
            out[:, node],
        )
    return dict(zip(KINDS, out, strict=True))


def log_regret(r: int, most: int) -> NDArray[np.float64]:
    """`log C(r, n)` for n = 0 … most: the normaliser of a multinomial of `r` levels.

    `C(2, n) = Σ_h binom(n, h) (h/n)^h (1 − h/n)^(n−h)`, `C(r + 2, n) = C(r + 1, n) + n/r C(r, n)` (Kontkanen
    and Myllymäki 2007).
    """
    n = np.arange(most + 1)
    two = np.ones(most + 1)
    for total in range(1, most + 1):
        h = np.arange(total + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = gammaln(total + 1) - gammaln(h + 1) - gammaln(total - h + 1)
            terms += np.where(h > 0, h * np.log(h / total), 0.0)
            terms += np.where(h < total, (total - h) * np.log1p(-h / total), 0.0)
        two[total] = np.exp(terms).sum()
    before, now = np.ones(most + 1), two
    if r == 1:
        return np.log(before)
    for smaller in range(1, r - 1):
        before, now = now, now + n / smaller * before
    return np.log(now)


@njit(cache=True)
def _fill(others, child, counts, levels, r, ess, cell_terms, configuration_terms, out):
    """Walk all parent sets, counting upwards: bit `t` refines the configurations that higher bits left."""
    m, rows = others.shape
    cells = np.zeros((m + 1, rows), np.int64)
    occupied = np.ones(m + 1, np.int64)
    level_of = np.full(m + 1, m)
    lookup = np.full(rows * max(levels.max(), 1) if m else 1, -1, np.int64)
    table = np.zeros((rows, r), np.int64)
    for subset in range(1 << m):
        t = m
        if subset > 0:
            t = 0
            while not (subset >> t) & 1:
                t += 1
            source = level_of[t + 1]
            occupied[t] = 0
            for row in range(rows):
                key = cells[source, row] * levels[t] + others[t, row]
                if lookup[key] < 0:
                    lookup[key] = occupied[t]
                    occupied[t] += 1
                cells[t, row] = lookup[key]
            for row in range(rows):
                lookup[cells[source, row] * levels[t] + others[t, row]] = -1
            level_of[: t + 1] = t
        configurations = occupied[t]
        table[:configurations] = 0
        for row in range(rows):
            table[cells[t, row], child[row]] += counts[row]
        share = ess / configurations
        of_configuration, of_cell = math.lgamma(share), math.lgamma(share / r)
        bds, bdj, nml = 0.0, 0.0, 0.0
        for configuration in range(configurations):
            total = 0
            for level in range(r):
                count = table[configuration, level]
                if count > 0:
                    total += count
                    bds += math.lgamma(count + share / r) - of_cell
                    bdj += cell_terms[0, count]
                    nml += cell_terms[1, count]
            bds += of_configuration - math.lgamma(total + share)
            bdj += configuration_terms[0, total]
            nml += configuration_terms[1, total]
        out[0, subset], out[1, subset], out[2, subset] = bds, bdj, nml
