"""The estimates of `check` are of the right size, and never absurd."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import gflowdag as gd
from gflowdag.cli.inspect import method_costs
from gflowdag.errors import GFlowDAGError, KnowledgeError
from gflowdag.estimators import REGISTRY, estimator_class, gadget
from gflowdag.estimators.cost import NO, estimate_costs
from gflowdag.estimators.dag_gflownet import preset_for
from gflowdag.exact.size import estimated_bytes
from gflowdag.gflownet.spaces.edges import check_memory
from gflowdag.runtime.memory import total_memory
from gflowdag.score.base import MAX_TABLE_VARIABLES

METHODS = set(REGISTRY) - {"auto"}
BCD = {"bcd-nets"}  # refuses discrete data
ONE_SEARCH = {"bootstrap-ges": {"num_bootstraps": 1, "n_jobs": 1}}
A_MOMENT = {
    "order-mcmc": {"num_chains": 4, "num_temperatures": 1, "iterations": 8, "num_records": 4},
    "dibs": {"num_steps": 2, "num_particles": 4, "num_graphs": 4},
    "mc3": {"num_chains": 4, "burn_in": 4, "num_steps": 8, "thinning": 1},
    "bootstrap-pc": {"num_bootstraps": 1, "n_jobs": 1},
    "bcd-nets": {"num_steps": 2, "batch_size": 2},
}
TOO_MANY = r"at most|up to|more than the allowed|beyond the limit|more memory than"
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


def refused(num_variables: int = 8, **kinds: bool) -> set[str]:
    rows = estimate_costs(num_variables, 100, **kinds)
    return {row["method"] for row in rows if row["answer"].startswith(NO)}


def continuous(num_variables: int) -> gd.Dataset:
    return gd.Dataset.from_array(np.random.default_rng(0).normal(size=(20, num_variables)))


def discrete(num_variables: int) -> gd.Dataset:
    values = np.random.default_rng(0).integers(2, size=(20, num_variables)).astype(str)
    return gd.Dataset.from_frame(pd.DataFrame(values))


def refuses(method: str, data: gd.Dataset, **options) -> bool:
    """Whether a method refuses the number of variables, which it does before it computes anything."""
    try:
        estimator_class(method)(random_state=0, num_samples=4, **options).fit(data)
    except GFlowDAGError as error:
        return re.search(TOO_MANY, str(error)) is not None
    return False


def test_a_method_takes_as_few_variables_as_its_estimator() -> None:
    for num_variables in (1, 2, 3):
        too_few = {m for m in METHODS if estimator_class(m).record.least_variables > num_variables}
        assert refused(num_variables, discrete=False) == too_few
        assert refused(num_variables, discrete=True) == too_few | BCD


def test_a_method_refuses_more_variables_than_its_estimator_takes() -> None:
    most = {
        "exact": next(d for d in range(20, 99) if estimated_bytes(d + 1) > total_memory()),
        "gadget": gadget.MOST_VARIABLES,
        "dag-gflownet": 64,
    }
    for method, limit in most.items():
        assert method not in refused(limit, discrete=False)
        assert method in refused(limit + 1, discrete=False)
        assert refuses(method, continuous(limit + 1), **ONE_SEARCH.get(method, {}))
    assert refused(1000, discrete=False) == set(most)
    check_memory(64, preset_for("fast", 64).batch_size)  # the default; one more was refused above


def test_discrete_variables_are_limited_like_continuous_ones() -> None:
    many = MAX_TABLE_VARIABLES + 1
    assert refused(MAX_TABLE_VARIABLES, discrete=True) == BCD
    assert refused(many, discrete=True) == BCD
    for method in ("mc3", "dibs"):
        assert not refuses(method, discrete(many), **A_MOMENT[method])


def test_costs_of_discrete_tables_are_told_where_they_were_measured() -> None:
    def unknown(num_variables: int) -> set[str]:
        rows = estimate_costs(num_variables, 100, discrete=True)
        return {row["method"] for row in rows if row["seconds"] is None} - BCD - {"auto"}

    assert unknown(MAX_TABLE_VARIABLES) == set()
    assert unknown(MAX_TABLE_VARIABLES + 1) == {"dag-gflownet", "mc3", "dibs"}
    assert refused(MAX_TABLE_VARIABLES + 1, discrete=True) == BCD


@pytest.mark.long
@pytest.mark.parametrize("method", ["order-mcmc", "mc3", "bootstrap-pc", "bcd-nets"])
def test_what_is_offered_for_many_variables_takes_them(method: str) -> None:
    assert method not in refused(70, discrete=False)
    assert not refuses(method, continuous(70), **A_MOMENT[method])


def test_a_method_that_cannot_use_the_knowledge_is_not_offered() -> None:
    data = continuous(4)
    edges = gd.Knowledge(forbidden=[(data.names[0], data.names[1])])
    for knowledge, expected in (
        (gd.Knowledge(), set()),
        (gd.Knowledge(required=[(data.names[0], data.names[1])]), {"bootstrap-ges", "bcd-nets"}),
        (edges, {"bootstrap-ges", "bcd-nets"}),
        (gd.Knowledge(max_parents=2), {"bcd-nets"}),
    ):
        rows = method_costs(replace(data, knowledge=knowledge))
        assert {row["method"] for row in rows if row["answer"].startswith(NO)} == expected
        for method in expected:
            with pytest.raises(KnowledgeError):
                estimator_class(method)(knowledge=knowledge, **ONE_SEARCH.get(method, {})).fit(data)
    assert not refuses(
        "bootstrap-ges", replace(data, knowledge=gd.Knowledge(max_parents=2)), **ONE_SEARCH["bootstrap-ges"]
    )


def test_a_method_that_would_refuse_the_table_is_not_offered() -> None:
    observers = {name for name in REGISTRY if not estimator_class(name).record.uses_interventions}
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


def test_gaps_cost_as_many_tables_as_are_fitted() -> None:
    whole, incomplete = (
        {
            row["method"]: row["seconds"]
            for row in estimate_costs(8, 300, discrete=True, mixed=True, gaps=gaps)
        }
        for gaps in (False, True)
    )
    assert incomplete["exact"] == pytest.approx(400 * whole["exact"], rel=0.01)
    assert incomplete["mc3"] == pytest.approx(10 * whole["mc3"], rel=0.01)
    assert incomplete["parent-set-mcmc"] == whole["parent-set-mcmc"]
