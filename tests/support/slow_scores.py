"""Local scores written down directly from the papers, one parent set at a time."""

from __future__ import annotations

from collections import Counter
from math import lgamma, log, pi

import numpy as np


def slow_bge(values, node, parents, *, alpha_mu=1.0, alpha_w=None, kept=None):
    """Kuipers, Moffa & Heckerman (2014), equation for one local score; `kept` are the rows that count."""
    d = values.shape[1]
    rows = values if kept is None else values[kept]
    n = len(rows)
    alpha_w = d + 2 if alpha_w is None else alpha_w
    t = alpha_mu * (alpha_w - d - 1) / (alpha_mu + 1)
    mean = rows.mean(axis=0)
    scatter = t * np.eye(d) + (rows - mean).T @ (rows - mean)
    weight = n * alpha_mu / (n + alpha_mu)

    def log_minor(members):
        """`log |A + w x̄x̄ᵀ| = log |A| + log(1 + w x̄ᵀA⁻¹x̄)`: no digit is lost, however far the mean is."""
        a, m = scatter[np.ix_(members, members)], mean[members]
        return np.linalg.slogdet(a)[1] + np.log1p(weight * m @ np.linalg.solve(a, m))

    l = len(parents)
    family = [*parents, node]
    return (
        0.5 * log(alpha_mu / (n + alpha_mu))
        + lgamma(0.5 * (n + alpha_w - d + l + 1))
        - lgamma(0.5 * (alpha_w - d + l + 1))
        - n / 2 * log(pi)
        + 0.5 * (alpha_w - d + 2 * l + 1) * log(t)
        + 0.5 * (n + alpha_w - d + l) * log_minor(parents)
        - 0.5 * (n + alpha_w - d + l + 1) * log_minor(family)
    )


def slow_bdeu(codes, cardinalities, node, parents, *, ess=1.0, kept=None):
    """Heckerman, Geiger & Chickering (1995), by counting over every parent configuration that occurs."""
    rows = codes if kept is None else codes[kept]
    q = float(np.prod([cardinalities[p] for p in parents])) if parents else 1.0
    r = cardinalities[node]
    configurations = Counter(tuple(row[parents]) for row in rows.astype(int))
    cells = Counter((*row[parents], row[node]) for row in rows.astype(int))
    value = sum(lgamma(ess / q) - lgamma(ess / q + count) for count in configurations.values())
    return value + sum(lgamma(ess / (q * r) + count) - lgamma(ess / (q * r)) for count in cells.values())
