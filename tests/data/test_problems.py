"""A table with many mistakes is told all of them at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gflowdag.data.problems import checked_dataset, table_problems
from gflowdag.data.reading import read_csv
from gflowdag.errors import DataError

RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame(RNG.normal(size=(40, 2)), columns=["a", "b"])
CLINIC = NUMBERS.assign(
    patient=[f"P{row}" for row in range(40)],
    visit=[f"{row % 28 + 1:02d}.03.2021" for row in range(40)],
    centre="Wien",
    dose=np.where(np.arange(40) == 7, np.nan, RNG.normal(size=40)),
    arm=RNG.choice(["control", "treated"], 40),
)


def test_every_problem_is_found_at_once():
    found = table_problems(CLINIC)
    beginnings = [
        "Missing values",
        "Column 'patient'",
        "Column 'visit'",
        "Constant: 'centre'",
        "The table mix",
    ]
    assert [
        message[: len(start)] for message, start in zip(found.messages, beginnings, strict=True)
    ] == beginnings
    assert found.unusable == ("patient", "visit", "centre")
    assert found.has_gaps


def test_the_remedy_that_is_named_leaves_only_what_needs_a_decision():
    with pytest.raises(DataError, match="add: --drop patient,visit,centre --missing drop"):
        checked_dataset(CLINIC)
    rest = CLINIC.drop(columns=["patient", "visit", "centre"])
    assert len(table_problems(rest, missing="drop").messages) == 1
    assert table_problems(rest, missing="drop", discretize="quantile").messages == ()


def test_a_column_of_targets_is_no_variable():
    targets = CLINIC[["a", "b"]].assign(target=[""] * 39 + ["a"], patient=CLINIC["patient"])
    assert table_problems(targets, interventions="target").unusable == ("patient",)


@pytest.mark.parametrize("cell", ["2021-03-01", "1.3.2021", "03/01/21", "2021-03-01 12:30", "2021/3/1"])
def test_written_dates_are_no_levels(cell: str):
    (message,) = table_problems(NUMBERS.round().astype(int).assign(day=cell)).messages[:1]
    assert "'day' holds dates" in message


def test_version_numbers_and_codes_are_no_dates():
    codes = pd.DataFrame({"code": ["1.2.30000", "A-1-2"] * 20, "b": RNG.choice(["u", "v"], 40)})
    assert table_problems(codes).messages == ()


def test_decimal_commas_are_read_beside_dates_with_points(tmp_path: Path):
    path = tmp_path / "clinic.csv"
    path.write_text("\ufeffday;a;b\n" + "".join(f"{k:02d}.03.2021;{k},5;-0,{k}\n" for k in range(1, 29)))
    frame = read_csv(path)
    assert frame["a"].tolist()[:2] == [1.5, 2.5]
    assert frame["b"].dtype == np.float64
