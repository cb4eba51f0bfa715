"""The estimates of `check` are of the right size, and never absurd."""

from __future__ import annotations

import time

import numpy as np
import pytest

import gflowdag as gd
from gflowdag.errors import GFlowDAGError
from gflowdag.estimators import REGISTRY, estimator_class
from gflowdag.estimators.cost import estimate_costs

FACTOR = 4  # processors differ by about two, and so do tables of one size


def estimated(method: str, num_variables: int, num_rows: int = 100, *, discrete: bool = False) -> float:
    rows = estimate_costs(num_variables, num_rows, discrete=discrete)
    return next(row["seconds"] for row in rows if row["method"] == method)


def processor_seconds(method: str, frame, **options) -> float:
    """Seconds on one core, however busy the machine is."""
    estimator = estimator_class(method)(random_state=0, **options)
    started = time.process_time()
    estimator.fit(frame)
    return time.process_time() - started


def test_every_method_has_an_estimate_that_grows_with_the_table() -> None:
    small, large = (estimate_costs(d, 100, discrete=False) for d in (6, 18))
    assert {row["method"] for row in small} == set(REGISTRY) - {"auto"}
    for before, after in zip(small, large, strict=True):
        assert 0 < before["seconds"] <= after["seconds"], before["method"]
        assert 0 < before["bytes"] <= after["bytes"], before["method"]


def refused(**kinds: bool) -> set[str]:
    rows = estimate_costs(8, 100, **kinds)
    return {row["method"] for row in rows if row["answer"].startswith("no: ")}


def test_a_method_that_would_refuse_the_table_is_not_offered() -> None:
    observers = {name for name in REGISTRY if not estimator_class(name).supports_interventions}
    assert refused(discrete=False) == set()
    assert refused(discrete=False, intervened=True) == observers
    assert refused(discrete=True, intervened=True) == observers
    assert refused(discrete=True) == {"bcd-nets"}
    levels = gd.simulate.linear_gaussian(3, 60, random_state=0).frame
    with pytest.raises(GFlowDAGError, match="continuous"):
        gd.fit(levels, method="bcd-nets", discretize="quantile")


@pytest.mark.parametrize("num_variables", [1, 2, 62, 5000])
def test_extreme_tables_get_an_estimate_in_words(num_variables: int) -> None:
    for row in estimate_costs(num_variables, 10, discrete=True):
        assert row["time"]
        assert row["memory"]
        assert row["seconds"] is None or np.isfinite(row["seconds"])


def test_the_exact_posterior_takes_about_as_long_as_estimated() -> None:
    frame = gd.simulate.linear_gaussian(17, 100, random_state=0).frame
    processor_seconds("exact", frame.iloc[:, :5])  # compiled before the clock runs
    ratio = processor_seconds("exact", frame) / estimated("exact", 17)
    assert 1 / FACTOR < ratio < FACTOR


def test_counting_discrete_rows_takes_about_as_long_as_estimated() -> None:
    frame = gd.simulate.discrete(14, 8000, random_state=0).frame
    processor_seconds("exact", frame.iloc[:100])
    ratio = processor_seconds("exact", frame) / estimated("exact", 14, 8000, discrete=True)
    assert 1 / FACTOR < ratio < FACTOR


@pytest.mark.long
@pytest.mark.parametrize("method", ["order-mcmc", "mc3", "dibs", "bootstrap-ges"])
def test_a_method_takes_about_as_long_as_estimated(method: str) -> None:
    frame = gd.simulate.linear_gaussian(11, 100, random_state=0).frame
    options = {"n_jobs": 1} if method == "bootstrap-ges" else {}
    ratio = processor_seconds(method, frame, **options) / estimated(method, 11)
    assert 1 / FACTOR < ratio < FACTOR
