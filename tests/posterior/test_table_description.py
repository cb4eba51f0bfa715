"""A posterior knows its table: effects come from the table of the fit, coded as it was, or are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tallies import Tally

import gflowdag as gd
from gflowdag.data.description import TableDescription
from gflowdag.errors import DataError
from gflowdag.posterior.posterior import Posterior

RNG = np.random.default_rng(0)
X = RNG.normal(size=300)
LOGS = pd.DataFrame({"x": X, "y": X + 0.3 * RNG.normal(size=300)})
FRAME = np.exp(LOGS)  # the effect of x on y is 1 in logarithms
KNOWN = gd.Knowledge(required=[("x", "y")])


def effect(posterior: Posterior, table: object, **options: object) -> float:
    found = gd.total_effects(posterior, table, source="x", target="y", **options)
    return float(found["mean"].iloc[0])


@pytest.fixture(scope="module")
def logged() -> Posterior:
    return gd.fit(FRAME, method="exact", transform="log", knowledge=KNOWN, num_samples=20)


def test_a_transformed_table_is_transformed_again(logged: Posterior, tmp_path: Path) -> None:
    # 300 rows: the standard error of the effect is 0.02; five of them.
    assert effect(logged, FRAME) == pytest.approx(1, abs=0.1)
    logged.save(tmp_path / "p.npz")
    assert effect(Posterior.load(tmp_path / "p.npz"), FRAME) == effect(logged, FRAME)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (LOGS, "positive numbers|not the table"),
        (FRAME.iloc[:200], "300 rows, and this table has 200"),
        (FRAME.iloc[::-1], "not the table that the posterior was learnt from"),
        (FRAME * 2, "not the table that the posterior was learnt from"),
        (FRAME.assign(z=1.0), "an extra column"),
        (FRAME[["x"]], "lacks the variables y"),
        (gd.Dataset.from_frame(FRAME), "'x', 'y' have another transform, scale or kind"),
        (gd.Dataset.from_frame(LOGS), "'x', 'y' have another transform, scale or kind"),
    ],
    ids=["transformed", "fewer rows", "reversed", "other", "more", "less", "raw dataset", "logged dataset"],
)
def test_another_table_is_refused(logged: Posterior, table: object, message: str, tally: Tally) -> None:
    with pytest.raises(DataError, match=message):
        effect(logged, table)
    tally("other tables", message, tried=1)


def test_columns_are_matched_by_name(logged: Posterior) -> None:
    assert effect(logged, FRAME[["y", "x"]]) == effect(logged, FRAME)
    data = gd.Dataset.from_frame(FRAME[["y", "x"]], transform="log")
    assert effect(logged, data) == pytest.approx(effect(logged, FRAME), rel=1e-12)


def test_what_the_fit_left_out_is_left_out_again() -> None:
    gaps = LOGS.assign(name=[f"p{row}" for row in range(300)])
    gaps.loc[7, "x"] = np.nan
    posterior = gd.fit(gaps, method="exact", missing="drop", drop=["name"], knowledge=KNOWN, num_samples=20)
    assert posterior.table is not None
    assert posterior.table.num_rows == 299
    assert effect(posterior, gaps) == effect(posterior, gaps.drop(columns="name"))


def test_a_column_of_interventions_is_found_again() -> None:
    targets = LOGS.assign(target=["x"] * 100 + [""] * 200)
    posterior = gd.fit(targets, method="exact", interventions="target", knowledge=KNOWN, num_samples=20)
    assert effect(posterior, targets) == effect(posterior, LOGS, interventions=targets["target"])
    with pytest.raises(DataError, match="not the table"):
        effect(posterior, targets.assign(target=["y"] * 100 + [""] * 200))


def test_the_description_holds_names_kinds_scales_and_rows(logged: Posterior) -> None:
    assert logged.table is not None
    first = logged.table.columns[0]
    assert (first.name, first.kind, first.log) == ("x", "continuous", True)
    assert first.scaling == pytest.approx((LOGS["x"].mean(), LOGS["x"].std(ddof=1)))
    assert logged.table.num_rows == 300
    assert len(logged.table.sha256) == 64


def test_a_description_of_levels_survives_a_file() -> None:
    frame = pd.DataFrame(
        {"a": RNG.choice(["no", "yes"], 50), "b": RNG.choice([True, False], 50), "c": RNG.normal(size=50)}
    )
    description = TableDescription.of(gd.Dataset.from_frame(frame, discretize="quantile"))
    assert TableDescription.from_dict(description.to_dict()).columns == description.columns
    for damage in ({}, None, {"columns": [3]}, description.to_dict() | {"num_rows": "many"}):
        with pytest.raises(ValueError, match="no description"):
            TableDescription.from_dict(damage)
