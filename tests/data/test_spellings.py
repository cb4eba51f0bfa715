"""Words and codes for "missing": certain ones become gaps with a note, doubtful ones are asked about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gflowdag.cli.commands import load_table
from gflowdag.data import Dataset
from gflowdag.data.refusals import mended, table_problems
from gflowdag.data.spellings import doubts, settled
from gflowdag.errors import DataError, GFlowDAGError
from gflowdag.runtime.place import speaking

RNG = np.random.default_rng(0)
ROWS = 60
X = RNG.normal(50, 10, ROWS).round(1)
ARM = RNG.choice(["u", "v"], ROWS)


def file_with(folder: Path, *, number: str = "1.5", word: str = "u") -> Path:
    """A table whose row 8 holds these cells."""
    frame = pd.DataFrame({"x": X.astype(str), "arm": ARM, "y": RNG.normal(size=ROWS)})
    frame.loc[7, ["x", "arm"]] = [number, word]
    frame.to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


CERTAIN = ["NA ", " ", "na", "n.a.", "<NA>", "Null", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!"]


@pytest.mark.parametrize("spelling", CERTAIN)
def test_what_nobody_means_otherwise_is_a_gap_everywhere(tmp_path: Path, spelling: str) -> None:
    data = Dataset.from_csv(file_with(tmp_path, number=spelling, word=spelling), missing="drop")
    assert data.kinds == ("continuous", "discrete", "continuous")
    assert data.num_rows == ROWS - 1
    assert data.levels[1] == ("u", "v")


@pytest.mark.parametrize("spelling", [".", "-", "--", "?", "none", "N/A", "unknown", "Missing", "n.d.", "#"])
def test_among_numbers_a_word_for_missing_is_a_gap_and_noted(tmp_path: Path, spelling: str) -> None:
    data = Dataset.from_csv(file_with(tmp_path, number=spelling), missing="drop")
    assert data.kinds[0] == "continuous"
    assert data.num_rows == ROWS - 1
    if spelling != "N/A":  # a usual one: the note on missing values speaks of it
        assert f"Taken as missing: {spelling!r} in 'x' (1 cell)." in data.notes


@pytest.mark.parametrize("spelling", ["-", "?", ".", "none", "Na", "unknown"])
def test_among_words_it_is_a_level_and_asked_about(tmp_path: Path, spelling: str) -> None:
    path = file_with(tmp_path, word=spelling)
    data = Dataset.from_csv(path)
    assert data.levels[1] is not None
    assert spelling in data.levels[1]
    (asked,) = [note for note in data.notes if "may stand for" in note]
    assert f"missing_values=['arm={spelling}']" in asked
    settled_by_option = Dataset.from_csv(path, missing_values=[f"arm={spelling}"], missing="drop")
    assert settled_by_option.levels[1] == ("u", "v")
    assert not [note for note in Dataset.from_csv(path, discrete=["arm"]).notes if "may stand for" in note]


@pytest.mark.parametrize("code", [-9999.0, -999.0, 999.0, -99.0, 9999.0, 999.9])
def test_codes_far_from_all_other_values_are_asked_about_and_proposed(code: float) -> None:
    x = X.copy()
    x[3:6] = code
    frame = pd.DataFrame({"x": x, "y": RNG.normal(size=ROWS)})
    (doubt,) = doubts(frame)
    assert (doubt.entry, doubt.count, doubt.likely) == (f"x={code:g}", 3, True)
    data = Dataset.from_frame(frame, missing_values=[doubt.entry], missing="drop")
    assert data.num_rows == ROWS - 3
    assert any("x=" in note and "missing_values" in note for note in Dataset.from_frame(frame).notes)


def test_ordinary_values_are_not_asked_about() -> None:
    ages = np.append(RNG.integers(0, 99, ROWS - 1), 99.0)
    heights = np.append(RNG.normal(0, 1, ROWS - 1), -99.0 / 33)
    counts = RNG.poisson(0.5, ROWS)
    visits = np.concatenate([np.zeros(9), np.repeat([1, 2, 3], 13), np.arange(4, 16)])
    codes = RNG.choice([-1, 0, 1], ROWS)
    frame = pd.DataFrame({"age": ages, "height": heights, "count": counts, "code": codes, "arm": ARM})
    frame["visits"] = visits
    assert doubts(frame) == []


def test_zeros_below_all_other_measurements_are_asked_about_and_never_proposed() -> None:
    glucose = np.append(RNG.normal(120, 20, ROWS - 3), np.zeros(3))
    (doubt,) = doubts(pd.DataFrame({"glucose": glucose}))
    assert (doubt.entry, doubt.count, doubt.likely) == ("glucose=0", 3, False)


def test_a_column_of_numbers_with_one_odd_word_is_never_a_category(tmp_path: Path) -> None:
    path = file_with(tmp_path, number="<0.1")
    with pytest.raises(DataError, match=r"'x' holds numbers, but also '<0.1' \(1 cell, the first in row 8\)"):
        Dataset.from_csv(path)
    readable = mended(pd.read_csv(path))
    assert readable is not None
    assert readable.missing_values == ("x=<0.1",)
    data = Dataset.from_csv(path, missing_values=["x=<0.1"], missing="drop")
    assert data.is_mixed
    assert data.kinds[0] == "continuous"


def test_few_numbers_with_an_odd_word_may_be_levels() -> None:
    rooms = pd.DataFrame({"rooms": ["1", "2", "3", "4"] * 14 + ["5+"] * 4, "y": RNG.normal(size=ROWS)})
    with pytest.raises(DataError, match=r"'5\+'.*discrete=\['rooms'\]"):
        Dataset.from_frame(rooms)
    found = table_problems(rooms)
    assert (found.discrete, found.missing, found.unusable) == (("rooms",), (), ())
    readable = mended(rooms)
    assert readable is not None
    assert readable.discrete == ("rooms",)


def test_declared_levels_are_left_alone() -> None:
    level = pd.Series(pd.Categorical(["na", "-", "u"] * 20))
    frame, notes = settled(pd.DataFrame({"level": level}))
    assert notes == []
    assert frame["level"].isna().sum() == 0
    gone, _ = settled(pd.DataFrame({"level": level}), ["-"])
    assert gone["level"].isna().sum() == 20


def test_numbers_of_missing_values_are_taken_as_they_are_written() -> None:
    frame = pd.DataFrame({"x": [1, 2, 3, 999] * 15, "y": [999.0, 1.5, 0.5, 0.7, 9.0] * 12})
    data = Dataset.from_frame(frame, missing_values=[999], missing="drop", continuous=["x", "y"])
    assert data.num_rows == 36
    one = Dataset.from_frame(frame, missing_values=["x=999"], missing="drop", continuous=["x", "y"])
    assert one.num_rows == 45


def test_options_of_the_command_line_name_cells_of_columns(tmp_path: Path) -> None:
    path = str(file_with(tmp_path, number="999", word="?"))
    data = load_table(path, missing_values=["x=999,?"], missing="drop")
    assert data.num_rows == ROWS - 1
    with (
        speaking("command line"),
        pytest.raises(GFlowDAGError, match="--missing-values: There is no variable 'agee'"),
    ):
        load_table(path, missing_values=["agee=999"])


def test_a_posterior_codes_its_table_with_the_same_gaps(tmp_path: Path) -> None:
    from gflowdag.data.description import TableDescription

    path = file_with(tmp_path, number="999", word="?")
    data = Dataset.from_csv(path, missing_values=["x=999", "arm=?"], missing="drop")
    described = TableDescription.from_dict(TableDescription.of(data).to_dict())
    assert described.prepare(pd.read_csv(path)).sha256 == data.sha256
