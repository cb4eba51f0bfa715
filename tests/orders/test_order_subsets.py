"""Parent sets that contain a candidate: the exact law of the draws."""

from __future__ import annotations

import numpy as np
import pytest

from gflowdag.orders.subsets import subset_with
from gflowdag.score.subsets import log_subset_sums

K, PARENT = 9, 4
SETS = np.arange(1 << K)
SIZES = np.bitwise_count(SETS)
NUM = 20_000


def scores_of(kind: str, rng: np.random.Generator) -> np.ndarray:
    scores = 2 * rng.normal(size=1 << K)
    if kind == "sparse":
        return scores - 2.0 * SIZES
    if kind == "dense":
        return scores + 3.0 * SIZES
    if kind == "peaked":  # hundreds of nats between sets
        return 100 * scores
    if kind == "three parents at most":
        return np.where(SIZES > 3, -np.inf, scores)
    required = 1 << 2  # kind == "one required"
    return np.where(SETS & required, scores, -np.inf)


@pytest.mark.parametrize("kind", ["sparse", "dense", "peaked", "three parents at most", "one required"])
def test_each_set_owns_its_probability_of_the_unit_interval(kind):
    scores = scores_of(kind, np.random.default_rng(0))
    with_each = np.stack([scores.reshape(-1, 2, 1 << k)[:, 1].reshape(-1) for k in range(K)])
    containing = log_subset_sums(with_each)
    sequence = np.argsort(containing[:, -1])
    others = ((1 << K) - 1) & ~(1 << PARENT) & ~(1 << 7)  # candidate 7 is not placed
    uniform = (np.arange(NUM) + 0.5) / NUM
    drawn = [subset_with(scores, containing[PARENT], sequence, PARENT, others, u) for u in uniform]
    allowed = (SETS >> PARENT & 1 == 1) & (SETS & ~(others | 1 << PARENT) == 0)
    weights = np.where(allowed, np.exp(scores - scores[allowed].max()), 0.0)
    # A set is one interval, in which the grid has its share of points up to one at each end.
    np.testing.assert_allclose(
        np.bincount(drawn, minlength=1 << K) / NUM, weights / weights.sum(), atol=2 / NUM, rtol=0
    )
