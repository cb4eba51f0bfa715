"""Numbers at the edge: the answer is right to many digits, or the table is refused."""

from __future__ import annotations

import time
import tracemalloc
from fractions import Fraction
from math import lgamma, log, pi

import numpy as np
import pandas as pd
import pytest

import gflowdag as gd
from gflowdag.data import Dataset
from gflowdag.errors import DataError
from gflowdag.graph.closure import is_acyclic
from gflowdag.score import make_score

RNG = np.random.default_rng(0)
_MILLION = 10**6


def _exact_bge(values: np.ndarray, node: int, parents: list[int]) -> float:
    """BGe (Kuipers et al. 2014) in rational numbers: nothing is rounded before the logarithms."""
    rows = [[Fraction(float(x)) for x in row] for row in values]
    n, l = len(rows), len(parents)
    mean = [sum(column) / n for column in zip(*rows, strict=True)]

    def entry(i: int, j: int) -> Fraction:
        scatter = sum((row[i] - mean[i]) * (row[j] - mean[j]) for row in rows)
        return scatter + Fraction(n, n + 1) * mean[i] * mean[j] + (Fraction(1, 2) if i == j else 0)

    def log_determinant(nodes: list[int]) -> float:
        matrix, product = [[entry(i, j) for j in nodes] for i in nodes], Fraction(1)
        for k, pivot_row in enumerate(matrix):
            product *= pivot_row[k]
            for below in matrix[k + 1 :]:
                factor = below[k] / pivot_row[k]
                below[:] = [b - factor * p for b, p in zip(below, pivot_row, strict=True)]
        return log(product.numerator) - log(product.denominator)

    degrees = n + 2  # N + α_w − d with α_w = d + 2, α_μ = 1, t = 1/2
    return (
        -0.5 * log(n + 1)
        + lgamma(0.5 * (degrees + l + 1))
        - lgamma(0.5 * (3 + l))
        - n / 2 * log(pi)
        + 0.5 * (3 + 2 * l) * log(0.5)
        + 0.5 * (degrees + l) * log_determinant(parents)
        - 0.5 * (degrees + l + 1) * log_determinant([*parents, node])
    )


def _nearly_collinear(gap: float) -> np.ndarray:
    values = RNG.normal(size=(40, 4))
    values[:, 3] = values[:, 0] + gap * values[:, 3]
    return values


@pytest.mark.parametrize(
    "values",
    [
        _nearly_collinear(1e-4),
        _nearly_collinear(1e-8),
        RNG.normal(size=(3, 4)),
        RNG.standard_cauchy((40, 4)),
        RNG.standard_cauchy((40, 4)) ** 3,
        RNG.normal(size=(40, 4)) * [1e5, 1, 1e-5, 1],
    ],
    ids=["1e-4 apart", "1e-8 apart", "N < d", "Cauchy", "Cauchy cubed", "units"],
)
def test_scores_of_difficult_tables_agree_with_rational_arithmetic(values: np.ndarray) -> None:
    data = Dataset.from_array(values)
    table = make_score(data, prior="uniform").dense_table()
    for node, parents in ((3, [0, 1, 2]), (3, [0]), (0, [3]), (1, []), (2, [0, 3])):
        index = sum(1 << (p - (p > node)) for p in parents)
        # Rounding of the scatter matrix, relative to its smallest eigenvalue of ½ or more, times N.
        assert table[node, index] == pytest.approx(_exact_bge(data.values, node, parents), abs=1e-9)


def test_columns_that_only_rounding_tells_apart_are_refused() -> None:
    for gap in (0.0, 1e-12):
        with pytest.raises(DataError, match="'X1' and 'X4' hold the same information"):
            Dataset.from_array(_nearly_collinear(gap))


def test_a_million_rows_of_numbers_are_scored_in_seconds_and_in_little_memory() -> None:
    d = 8
    values = RNG.normal(size=(_MILLION, d)) @ np.triu(RNG.normal(size=(d, d)))
    tracemalloc.start()
    started = time.process_time()
    data = Dataset.from_array(values, standardize=False)
    likelihood = make_score(data).likelihood
    seconds = time.process_time() - started
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert likelihood.normal_wishart is not None
    wide = values.astype(np.longdouble)
    centred = wide - wide.mean(axis=0)
    expected = 0.5 * np.eye(d) + centred.T @ centred
    expected += _MILLION / (_MILLION + 1) * np.outer(wide.mean(axis=0), wide.mean(axis=0))
    # A million products summed pairwise lose a few of sixteen digits.
    np.testing.assert_allclose(likelihood.normal_wishart.scatter[0], expected.astype(float), rtol=1e-11)
    assert seconds < 60  # measured: some seconds
    assert peak < 8 * values.nbytes


def test_a_million_rows_find_the_graph_that_made_them() -> None:
    x = RNG.normal(size=_MILLION)
    z = RNG.normal(size=_MILLION)
    frame = pd.DataFrame({"x": x, "y": x + z + RNG.normal(size=_MILLION), "z": z})
    p = gd.fit(frame, method="exact", num_samples=10).edge_probabilities()
    # x → y ← z is alone in its class; one edge more, of probability about 1/√N, would leave directions open.
    assert p.loc["x", "y"] > 0.99
    assert p.loc["z", "y"] > 0.99
    assert p.loc["x", "y"] + p.loc["y", "x"] == pytest.approx(1, abs=1e-9)


def test_a_million_rows_of_labels_are_counted_right() -> None:
    parent = RNG.integers(3, size=_MILLION)
    child = (parent + (RNG.random(_MILLION) < 0.1)) % 3
    data = Dataset.from_frame(pd.DataFrame({"p": parent, "c": child}).astype(str))
    counts = pd.crosstab(parent, child).to_numpy()
    cells = sum(lgamma(1 / 9 + n) - lgamma(1 / 9) for n in counts.ravel())
    expected = cells + sum(lgamma(1 / 3) - lgamma(1 / 3 + n) for n in counts.sum(axis=1))
    # Relative: a sum of terms of ten million nats.
    assert make_score(data, score="bde", prior="uniform").local(1, [[True, False]])[0] == pytest.approx(
        expected, rel=1e-11
    )


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        pytest.param(
            "order-mcmc",
            {"iterations": 40, "num_chains": 2, "num_records": 8, "num_candidates": 4},
            marks=pytest.mark.long,
        ),
        ("mc3", {"burn_in": 20, "num_steps": 40, "thinning": 10, "num_chains": 2}),
    ],
    ids=["order-mcmc", "mc3"],
)
def test_a_hundred_variables_give_acyclic_graphs_of_finite_score(method: str, settings: dict) -> None:
    frame = gd.simulate.linear_gaussian(100, 50, random_state=0).frame
    post = gd.fit(frame, method=method, num_samples=5, **settings)
    assert is_acyclic(post.samples).all()
    assert post.log_scores is not None
    assert np.isfinite(post.log_scores).all()
    assert post.diagnostics()["verdict"] == "not converged"  # so short a chain must not be trusted


def test_forty_levels_are_refused_unless_asked_for_and_then_right() -> None:
    cause = RNG.integers(40, size=2000)
    noise = RNG.integers(40, size=2000)
    labels = pd.DataFrame({"cause": cause, "effect": (cause + noise // 30) % 40, "other": noise % 37}).astype(
        str
    )
    with pytest.raises(DataError, match="has 40 levels"):
        Dataset.from_frame(labels)
    score = make_score(Dataset.from_frame(labels, max_levels=40), score="bde", prior="uniform")
    alone, caused = score.local(1, [[False] * 3, [True, False, False]])
    counts, cells = (np.bincount(keys) for keys in (cause, 40 * cause + labels["effect"].astype(int)))
    expected = sum(lgamma(1 / 1600 + n) - lgamma(1 / 1600) for n in cells if n)
    expected += sum(lgamma(1 / 40) - lgamma(1 / 40 + n) for n in counts)
    assert caused == pytest.approx(expected, abs=1e-8)  # thousands of nats
    assert caused > alone
