"""Every way of saying which variables were set from outside gives the same mask."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gflowdag.cli.commands import load_table
from gflowdag.data import Dataset, Knowledge
from gflowdag.data.interventions import intervention_mask
from gflowdag.errors import DataError
from gflowdag.estimators.bootstrap import BootstrapGES

NAMES = ["a", "b", "c"]
TARGETS = [None, None, "a", "a", "c", "c", "c", None]
MASK = np.array([[target == name for name in NAMES] for target in TARGETS])
FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(8, 3)), columns=NAMES)


@pytest.mark.parametrize(
    ("interventions", "base"),
    [
        (MASK, None),
        (MASK.astype(int), None),
        (pd.DataFrame(MASK, columns=NAMES)[["c", "a", "b"]], None),
        (TARGETS, None),
        (tuple(TARGETS), None),
        ([target or "" for target in TARGETS], None),
        ([[target] if target else [] for target in TARGETS], None),
        (np.array(TARGETS, dtype=object), None),
        (pd.Series(TARGETS), None),
        (pd.Series(TARGETS, dtype="string"), None),
        (pd.Series(TARGETS, dtype="category"), None),
        ([(2, None), (2, "a"), (3, ["c"]), (1, [])], None),
        ([0, 0, 1, 1, 3, 3, 3, 0], 1),
        (np.array([-1, -1, 0, 0, 2, 2, 2, -1]), 0),
        (pd.Series([None, None, 1, 1, 3, 3, 3, None]), 1),
        (pd.Series([None, None, 1, 1, 3, 3, 3, None], dtype="Int64"), 1),
    ],
)
def test_all_forms_give_the_same_mask(interventions, base):
    np.testing.assert_array_equal(intervention_mask(interventions, NAMES, 8, base=base), MASK)
    data = Dataset.from_frame(FRAME, interventions=interventions, intervention_base=base)
    np.testing.assert_array_equal(data.intervened, MASK)


@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_a_column_of_names_is_removed_from_the_variables(dtype):
    frame = FRAME.copy()
    frame.insert(1, "target", pd.Series(TARGETS, dtype=dtype))
    data = Dataset.from_frame(frame, interventions="target")
    assert data.names == tuple(NAMES)
    np.testing.assert_array_equal(data.intervened, MASK)


def test_an_integer_column_counts_the_variables_without_itself():
    frame = FRAME.copy()
    frame.insert(0, "INT", [0, 0, 1, 1, 3, 3, 3, 0])
    np.testing.assert_array_equal(
        Dataset.from_frame(frame, interventions="INT", intervention_base=1).intervened, MASK
    )


NUMBERED = FRAME.assign(INT=[0, 0, 2, 2, 3, 3, 3, 0])  # b in two rows, c in three


@pytest.mark.parametrize(("column", "base"), [("INT", 1), ("target", None)])
@pytest.mark.parametrize("unnamed", [False, True])
def test_dropping_a_column_moves_no_target(tmp_path: Path, column: str, base: int | None, unnamed: bool):
    table = NUMBERED.assign(target=NUMBERED["INT"].map({0: "", 2: "b", 3: "c"}))
    table = table.drop(columns=["INT" if column == "target" else "target"])
    if unnamed:  # names of rows, as R writes them, are no variable and count for nothing
        table.insert(0, "", [f"cell {row}" for row in range(8)])
    table.to_csv(path := tmp_path / "table.csv", index=False)
    drop = ["a", ""] if unnamed else ["a"]
    data = load_table(str(path), interventions=column, intervention_base=base, drop=drop)
    assert data.names == ("b", "c")
    assert data.intervened is not None
    np.testing.assert_array_equal(data.intervened.sum(axis=0), [2, 3])


@pytest.mark.parametrize(("column", "base"), [("INT", 1), ("target", None)])
def test_a_target_cannot_be_dropped(tmp_path: Path, column: str, base: int | None):
    table = NUMBERED.assign(target=NUMBERED["INT"].map({0: "", 2: "b", 3: "c"}))
    table[["a", "b", "c", column]].to_csv(path := tmp_path / "table.csv", index=False)
    with pytest.raises(DataError, match=r"cannot be dropped: 'b' is set in 2 rows\. Take these rows out"):
        load_table(str(path), interventions=column, intervention_base=base, drop=["b"])
    with pytest.raises(DataError, match=rf"{column!r} holds the interventions"):
        load_table(str(path), interventions=column, intervention_base=base, drop=[column])


def test_targets_of_a_built_in_table_stay_with_their_variables():
    data = load_table("sachs-all", drop=["Raf", "Jnk"])
    whole = load_table("sachs-all")
    assert data.intervened is not None
    assert whole.intervened is not None
    kept = [whole.names.index(name) for name in data.names]
    np.testing.assert_array_equal(data.intervened, whole.intervened[:, kept])


def test_environments_as_tables_give_the_same_mask():
    blocks = [(FRAME[:2], None), (FRAME[2:4], "a"), (FRAME[4:7][["c", "b", "a"]], "c"), (FRAME[7:], None)]
    data = Dataset.from_environments(blocks)
    np.testing.assert_array_equal(data.intervened, MASK)
    np.testing.assert_array_equal(data.values, Dataset.from_frame(FRAME).values)


@pytest.mark.parametrize("entry", ["a,c", "a; c", "a|c", "a + c", ["a", "c"], ("c", "a"), {"a", "c"}])
def test_a_row_can_have_several_targets(entry):
    mask = intervention_mask([entry, None], NAMES, 2)
    np.testing.assert_array_equal(mask, [[True, False, True], [False, False, False]])


def test_a_name_with_a_separator_in_it_is_still_one_name():
    np.testing.assert_array_equal(intervention_mask(["x+y", "z"], ["x+y", "z"], 2), np.eye(2, dtype=bool))


def test_the_notes_tell_how_often_each_variable_was_set():
    notes = Dataset.from_frame(FRAME, interventions=TARGETS).notes
    assert "Interventions: a in 2 rows, c in 3 rows; 3 rows are observational." in notes
    once = Dataset.from_frame(FRAME, interventions=["b"] + ["a"] * 6 + [None]).notes
    assert "Interventions: a in 6 rows, b in 1 row; 1 row is observational." in once
    always = Dataset.from_frame(FRAME, interventions=["b"] * 8).notes
    assert any("cannot tell what causes it" in note for note in always)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Dataset.from_frame(FRAME, interventions=[None] * 8),
        lambda: Dataset.from_frame(FRAME, interventions=np.zeros((8, 3), bool)),
        lambda: Dataset.as_dataset(Dataset.from_frame(FRAME), interventions=[""] * 8),
        lambda: Dataset.from_frame(FRAME).like(FRAME, interventions=[None] * 8),
    ],
)
def test_a_mask_without_a_target_is_observational_data(make):
    assert make().intervened is None
    assert make().sha256 == Dataset.from_frame(FRAME).sha256


def test_rows_without_a_target_are_observational_data():
    data = Dataset.from_frame(FRAME, interventions=TARGETS)
    assert data.take(~MASK.any(axis=1)).intervened is None
    BootstrapGES(num_bootstraps=1, num_samples=1, n_jobs=1).fit(
        data.take(~MASK.any(axis=1))
    )  # takes no other


@pytest.mark.parametrize("labels", [[" a", "b ", "c"], [1, 2, 3]])
def test_names_are_the_same_text_in_tables_masks_targets_and_kinds(labels):
    frame, mask = FRAME.set_axis(labels, axis=1), pd.DataFrame(MASK, columns=labels)
    targets = [[label for label, was_set in zip(labels, row, strict=True) if was_set] for row in MASK]
    for interventions in (mask, targets):
        data = Dataset.from_frame(
            frame, interventions=interventions, kinds=dict.fromkeys(labels, "continuous")
        )
        np.testing.assert_array_equal(data.intervened, MASK)


def test_a_padded_name_is_the_same_column_and_the_same_variable_in_knowledge():
    frame = FRAME.assign(**{"target ": TARGETS})
    knowledge = Knowledge(forbidden=[(" a", "b")], tiers=[["a "], ["b", "c"]])
    data = Dataset.from_frame(frame, interventions="target ", knowledge=knowledge)
    np.testing.assert_array_equal(data.intervened, MASK)
