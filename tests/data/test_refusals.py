"""A table with many mistakes is told all of them at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gflowdag.cli.commands import load_table
from gflowdag.data.reading import read_csv
from gflowdag.data.refusals import checked_dataset, table_problems
from gflowdag.errors import DataError, GFlowDAGError

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
    found = table_problems(CLINIC, missing="error")
    beginnings = [
        "Missing values",
        "Column 'patient'",
        "Column 'visit'",
        "Constant: 'centre'",
    ]
    assert [
        message[: len(start)] for message, start in zip(found.messages, beginnings, strict=True)
    ] == beginnings
    assert found.unusable == ("patient", "visit", "centre")
    assert found.has_gaps


def test_the_remedy_that_is_named_leaves_a_table():
    with pytest.raises(DataError, match=r"add: drop=\['patient', 'visit', 'centre'\], missing='drop'"):
        checked_dataset(CLINIC, missing="error")
    rest = CLINIC.drop(columns=["patient", "visit", "centre"])
    assert table_problems(rest, missing="drop").messages == ()


def test_a_column_of_targets_is_no_variable():
    targets = CLINIC[["a", "b"]].assign(target=[""] * 39 + ["a"], patient=CLINIC["patient"])
    assert table_problems(targets, interventions="target").unusable == ("patient",)


def test_an_unusable_column_causes_no_problem_elsewhere():
    (message,) = table_problems(NUMBERS, kinds={"a": "discrete"}).messages
    assert "'a' has 40 levels" in message
    flat = pd.DataFrame({"a": NUMBERS["a"], "flat": 1.0, "b": NUMBERS["b"], "INT": [0, 1, 3, 0] * 10})
    (message,) = table_problems(flat, interventions="INT", intervention_base=1).messages
    assert "Constant: 'flat'" in message
    named = flat.assign(INT=["", "a", "b", ""] * 10)
    (message,) = table_problems(named, interventions="INT").messages
    assert "Constant: 'flat'" in message


def test_an_unusable_target_is_told_as_one_and_not_among_the_columns_to_drop():
    table = NUMBERS.assign(flat=1.0, site="Wien", target=["", "flat", "flat", "a"] * 10)
    with pytest.raises(DataError, match="'flat' is set in 20 rows") as caught:
        checked_dataset(table, interventions="target")
    assert "3 problems" in str(caught.value)
    assert "add:" not in str(caught.value)  # to drop the others would leave a problem
    rows = table[table["target"] != "flat"]
    remedied = checked_dataset(rows, drop=["flat", "site"], interventions="target")
    assert remedied.names == ("a", "b")


def test_wrong_interventions_hide_no_other_problem():
    table = NUMBERS.assign(flat=1.0, target=["nobody", "a"] * 20)
    found = table_problems(table, interventions="target")
    assert [message.split(".")[0] for message in found.messages] == [
        "Constant: 'flat'",
        "An intervention targets an unknown variable",
    ]


@pytest.mark.parametrize(
    ("frame", "options", "start"),
    [
        (NUMBERS.head(1), {}, "Too few rows (n_samples=1)"),
        (NUMBERS.head(0), {}, "Too few rows (n_samples=0)"),
        (NUMBERS.assign(flat=1.0), {"discretize": "bogus"}, "discretize must be one of"),
        (NUMBERS.assign(flat=1.0), {"transform": "bogus"}, "transform must be one of"),
        (NUMBERS.assign(flat=1.0), {"missing": "bogus"}, "missing must be one of"),
        (NUMBERS.assign(flat=1.0), {"discretize": "quantile", "bins": 1}, "bins must be at least 2"),
    ],
)
def test_a_problem_of_the_whole_table_is_told_once_and_blames_no_column(frame, options, start):
    with pytest.raises(DataError) as caught:
        checked_dataset(frame, **options)
    assert str(caught.value).startswith(start)
    assert "--drop" not in str(caught.value)


def test_an_empty_column_is_blamed_by_name():
    found = table_problems(NUMBERS.assign(empty=np.nan, single=[1.0] + [np.nan] * 39), missing="error")
    assert found.unusable == ("empty", "single")
    assert [message.split(".")[0] for message in found.messages[1:]] == [
        "Column 'empty' has 0 values in 40 rows",
        "Column 'single' has 1 value in 40 rows",
    ]


def test_a_dropped_column_needs_no_kind(tmp_path: Path):
    NUMBERS.assign(id=range(40)).to_csv(tmp_path / "table.csv", index=False)
    assert load_table(str(tmp_path / "table.csv"), drop=["id"], discrete=["id"]).names == ("a", "b")


def test_two_kinds_for_one_column_are_a_contradiction(tmp_path: Path):
    NUMBERS.to_csv(tmp_path / "table.csv", index=False)
    with pytest.raises(GFlowDAGError, match="continuous and discrete both name 'a'"):
        load_table(str(tmp_path / "table.csv"), continuous=["a,b"], discrete=["a"])


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
