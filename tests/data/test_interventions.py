"""Every way of saying which variables were set from outside gives the same mask."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gflowdag.data import Dataset
from gflowdag.data.interventions import intervention_mask

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
    always = Dataset.from_frame(FRAME, interventions=["b"] * 8).notes
    assert any("cannot tell what causes it" in note for note in always)
