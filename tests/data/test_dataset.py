"""A table becomes the numbers that the scores read: kinds, levels, scaling, held-out rows."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from gflowdag.data import Dataset, Knowledge
from gflowdag.data.columns import infer_kind
from gflowdag.errors import DataError, KnowledgeError

RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame(RNG.gamma(2.0, 3.0, (60, 3)), columns=["a", "b", "c"])
LABELS = pd.DataFrame({name: RNG.permutation(["x", "y", "z"] * 20) for name in ("a", "b")})


def test_continuous_columns_have_mean_zero_and_sample_deviation_one():
    data = Dataset.from_frame(NUMBERS)
    assert data.is_continuous
    assert data.standardized
    np.testing.assert_allclose(data.values.mean(axis=0), 0, atol=1e-14)  # rounding of 60 terms
    np.testing.assert_allclose(data.values.std(axis=0, ddof=1), 1, rtol=1e-14)
    assert "standardised (ddof = 1)" in data.notes[0]


def test_without_standardisation_the_values_are_those_of_the_table():
    data = Dataset.from_frame(NUMBERS, standardize=False)
    np.testing.assert_array_equal(data.values, NUMBERS.to_numpy())
    assert not data.standardized


def test_log_transform_comes_before_standardisation():
    logged = np.log(NUMBERS.to_numpy())
    expected = (logged - logged.mean(axis=0)) / logged.std(axis=0, ddof=1)
    np.testing.assert_allclose(Dataset.from_frame(NUMBERS, transform="log").values, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("cells", "kind", "levels"),
    [
        ([0.5, 1.5, 2.5] * 20, "continuous", None),
        ([3, 1, 2] * 20, "discrete", (1, 2, 3)),
        (range(60), "continuous", None),
        (["b", "a", "c"] * 20, "discrete", ("a", "b", "c")),
        ([True, False, True] * 20, "discrete", (False, True)),
        (pd.array(["b", "a", "c"] * 20, dtype="string"), "discrete", ("a", "b", "c")),
        (pd.array([3, 1, 2] * 20, dtype="Int64"), "discrete", (1, 2, 3)),
        (pd.array([0.5, 1.5, 2.5] * 20, dtype="Float64"), "continuous", None),
        (pd.array([True, False, True] * 20, dtype="boolean"), "discrete", (False, True)),
        (
            pd.Categorical(["lo", "hi", "lo"] * 20, categories=["lo", "mid", "hi"]),
            "discrete",
            ("lo", "mid", "hi"),
        ),
        (np.array(["b", "a", 7.5] * 20, dtype=object)[:2].repeat(30), "discrete", ("a", "b")),
        ([1, 2, 4] * 20, "discrete", (1, 2, 4)),
    ],
)
def test_kinds_and_levels_are_inferred_from_the_cells(cells, kind, levels):
    data = Dataset.from_frame(pd.DataFrame({"v": cells}))
    assert data.kinds == (kind,)
    assert data.levels == (levels,)
    assert f"taken as {kind}" in data.notes[0]


def test_codes_are_positions_among_the_levels():
    data = Dataset.from_frame(LABELS)
    decoded = np.array(["x", "y", "z"])[data.values.astype(int)]
    np.testing.assert_array_equal(decoded, LABELS.to_numpy())
    np.testing.assert_array_equal(data.cardinalities, [3, 3])
    pd.testing.assert_frame_equal(data.to_frame().astype(str).astype(object), LABELS.astype(object))


def test_kinds_given_by_the_user_win():
    frame = pd.DataFrame({"a": [1, 2, 3, 4] * 10, "b": RNG.normal(size=40)})
    assert Dataset.from_frame(frame, kinds={"a": "continuous"}).is_continuous
    coded = pd.DataFrame({"a": [1.0, 2.0, 3.0, 1.0], "b": [0.0, 1.0, 1.0, 1.0]})
    assert Dataset.from_frame(coded, kinds="discrete").is_discrete


def test_quantile_bins_hold_equal_counts_and_interval_bins_equal_widths():
    quantile = Dataset.from_frame(NUMBERS, discretize="quantile", bins=4)
    for codes in quantile.values.T:
        np.testing.assert_array_equal(np.bincount(codes.astype(int)), [15] * 4)
    interval = Dataset.from_frame(NUMBERS, discretize="interval", bins=4)
    low, high = NUMBERS["a"].min(), NUMBERS["a"].max()
    expected = np.clip(np.ceil((NUMBERS["a"] - low) / (high - low) * 4) - 1, 0, 3)
    np.testing.assert_array_equal(interval.values[:, 0], expected)
    assert "cut into bins" in quantile.notes[1]


def test_discretize_makes_a_mixed_table_discrete():
    mixed = NUMBERS.assign(label=LABELS["a"])
    assert Dataset.from_frame(mixed, discretize="quantile").is_discrete


def test_dropping_rows_with_missing_values_keeps_mask_and_kinds_aligned():
    frame = pd.DataFrame({"a": [0, 1, None, 1, 0, 1], "b": ["u", None, "v", "u", "v", "v"]})
    mask = np.zeros((6, 2), dtype=bool)
    mask[3, 0] = True
    data = Dataset.from_frame(frame, missing="drop", interventions=mask)
    assert data.num_rows == 4
    assert data.levels == ((0, 1), ("u", "v"))
    assert data.intervened is not None
    np.testing.assert_array_equal(np.argwhere(data.intervened), [[1, 0]])
    assert "2 of 6 rows were dropped" in data.notes[0]


def test_large_numbers_survive_a_dropped_row():
    large = NUMBERS.assign(
        a=NUMBERS["a"] * 1e18
    )  # whole, as all floats beyond 2^53, and beyond int64 in part
    holed = large.copy()
    holed.loc[0, "a"] = np.nan
    dropped = Dataset.from_frame(holed, missing="drop")
    np.testing.assert_array_equal(dropped.values, Dataset.from_frame(large.tail(59)).values)


@pytest.mark.parametrize("dtype", [float, int, bool, str, object])
def test_masked_cells_of_an_array_are_missing_values(dtype):
    cells = RNG.integers(0, 2, (60, 2)).astype(dtype)
    masked = np.ma.array(cells, mask=np.zeros((60, 2), bool))
    masked[7, 1] = np.ma.masked
    with pytest.raises(DataError, match=r"'X2': 1 \(first in row 8\)"):
        Dataset.as_dataset(masked, missing="error")
    dropped = Dataset.from_array(masked, missing="drop", kinds="discrete")
    rest = Dataset.from_array(np.delete(cells, 7, axis=0), kinds="discrete")
    np.testing.assert_array_equal(dropped.values, rest.values)


def test_frames_arrays_and_data_sets_are_all_accepted():
    reference = Dataset.from_frame(NUMBERS)
    by_array = Dataset.as_dataset(NUMBERS.to_numpy())
    np.testing.assert_array_equal(by_array.values, reference.values)
    assert by_array.names == ("X1", "X2", "X3")
    assert Dataset.as_dataset(reference) is reference

    class OtherFrame:
        """A DataFrame of another library, without pyarrow."""

        def to_pandas(self):
            raise ImportError

        def to_dict(self, as_series):
            assert not as_series
            return NUMBERS.to_dict(orient="list")

    np.testing.assert_array_equal(Dataset.as_dataset(OtherFrame()).values, reference.values)


def test_a_data_set_keeps_its_own_knowledge_and_interventions_and_refuses_others():
    knowledge = Knowledge(forbidden=[("a", "b")])
    data = Dataset.from_frame(NUMBERS, knowledge=knowledge, interventions=[(30, None), (30, "a")])
    assert Dataset.as_dataset(data, knowledge=Knowledge(forbidden=[("a", "b")])) is data
    with pytest.raises(KnowledgeError, match="in one place"):
        Dataset.as_dataset(data, knowledge=Knowledge(forbidden=[("b", "a")]))
    with pytest.raises(DataError, match="in one place"):
        Dataset.as_dataset(data, interventions=[(30, None), (30, "b")])
    plain = Dataset.from_frame(NUMBERS)
    carrying = Dataset.as_dataset(plain, knowledge=knowledge, interventions=[(30, None), (30, "a")])
    assert carrying.knowledge == knowledge
    np.testing.assert_array_equal(carrying.intervened, data.intervened)


def test_held_out_rows_are_coded_like_the_first_ones():
    whole = Dataset.from_frame(NUMBERS, standardize=False)
    first = Dataset.from_frame(NUMBERS.head(40))
    later = first.like(NUMBERS.tail(20)[["c", "a", "b"]])
    both = first.concatenate(later)
    assert both.num_rows == 60
    mean, deviation = whole.values[:40].mean(axis=0), whole.values[:40].std(axis=0, ddof=1)
    np.testing.assert_allclose(both.values, (whole.values - mean) / deviation, rtol=1e-12, atol=1e-12)

    binned = Dataset.from_frame(NUMBERS.head(40), discretize="quantile")
    np.testing.assert_array_equal(binned.like(NUMBERS.head(40)).values, binned.values)


def test_held_out_rows_with_missing_values_can_be_dropped():
    data = Dataset.from_frame(NUMBERS.head(40))
    later = NUMBERS.tail(20).reset_index(drop=True)
    later.loc[3, "b"] = np.nan
    with pytest.raises(DataError, match="missing='drop' keeps 19 of 20 rows"):
        data.like(later)
    dropped = data.like(later, missing="drop", interventions=["a", "b"] * 10)
    np.testing.assert_array_equal(dropped.values, data.like(later.drop(index=3)).values)
    assert dropped.intervened is not None
    np.testing.assert_array_equal(dropped.intervened.sum(axis=0), [10, 9, 0])
    assert "1 of 20 rows were dropped" in dropped.notes[-1]
    with pytest.raises(DataError, match="missing must be one of"):
        data.like(later, missing="skip")  # type: ignore[arg-type]


def test_new_rows_that_are_all_incomplete_are_refused():
    data = Dataset.from_frame(NUMBERS)
    assert data.like(NUMBERS.head(1)).num_rows == 1
    with pytest.raises(DataError, match=r"Too few rows \(n_samples=0\)"):
        data.like(NUMBERS.head(5).assign(a=np.nan), missing="drop")


@pytest.mark.parametrize("gap", [None, np.nan])
def test_missing_cells_say_nothing_about_the_kind_of_a_column(gap):
    assert infer_kind("a", pd.Series(["u", gap, "v"], dtype=object)) == "discrete"
    assert infer_kind("a", pd.Series([gap, gap], dtype=object)) == "discrete"
    with pytest.raises(DataError, match="'a' holds numbers as text, such as '12 %'"):
        infer_kind("a", pd.Series(["12 %", gap, "7 %"], dtype=object))
    with pytest.raises(DataError, match="'a' holds dates"):
        infer_kind("a", pd.Series(["2021-03-01", gap], dtype=object))


def test_held_out_interventions_follow_the_names_not_the_positions():
    first = Dataset.from_frame(NUMBERS.head(40))
    later = first.like(NUMBERS.tail(20)[["c", "a", "b"]], interventions=["c"] * 20)
    assert later.intervened is not None
    assert later.intervened[:, 2].all()
    both = first.concatenate(later)
    assert both.intervened is not None
    np.testing.assert_array_equal(both.intervened.sum(axis=0), [0, 0, 20])


def test_held_out_rows_with_unknown_columns_or_levels_are_refused():
    data = Dataset.from_frame(LABELS)
    with pytest.raises(DataError, match="'w', which is not one of its levels"):
        data.like(pd.DataFrame({"a": ["x"], "b": ["w"]}))
    with pytest.raises(DataError, match="lacks the column 'b'"):
        data.like(LABELS[["a"]])
    with pytest.raises(DataError, match="an extra column"):
        data.like(LABELS.assign(q=1))
    with pytest.raises(DataError, match="coded differently"):
        data.concatenate(Dataset.from_frame(LABELS.replace("x", "w")))


def test_taking_rows_keeps_the_coding():
    data = Dataset.from_frame(NUMBERS, interventions=[(30, None), (30, "b")])
    rows = data.take(np.arange(25, 35))
    np.testing.assert_array_equal(rows.values, data.values[25:35])
    assert rows.intervened is not None
    assert rows.intervened.sum() == 5
    assert rows.columns == data.columns


def test_the_fingerprint_changes_with_every_part():
    data = Dataset.from_frame(NUMBERS)
    assert data.sha256 == Dataset.from_frame(NUMBERS.copy()).sha256
    others = [
        Dataset.from_frame(NUMBERS.rename(columns={"a": "A"})),
        Dataset.from_frame(NUMBERS, standardize=False),
        Dataset.from_frame(NUMBERS, interventions=["a"] * 60),
        data.take(slice(0, 59)),
    ]
    assert len({data.sha256, *(other.sha256 for other in others)}) == 5


def test_the_numbers_cannot_be_changed_by_accident():
    data = Dataset.from_frame(NUMBERS)
    with pytest.raises(ValueError, match="read-only"):
        data.values[0, 0] = 1.0


def test_the_table_of_the_user_is_left_alone():
    frame = NUMBERS.copy()
    frame.loc[3, "a"] = np.nan
    before = frame.copy()
    Dataset.from_frame(frame, missing="drop")
    pd.testing.assert_frame_equal(frame, before)
    array = NUMBERS.to_numpy(copy=True)
    Dataset.from_array(array, standardize=False)
    array[0, 0] = 5.0  # still the user's to write to


def test_decimal_cells_are_numbers():
    frame = pd.DataFrame({"a": [Decimal("1.5"), Decimal("2.5"), Decimal("4")] * 5})
    assert Dataset.from_frame(frame).is_continuous


def test_a_column_that_numbers_the_rows_is_noted():
    shuffled = NUMBERS.assign(id=np.random.default_rng(0).permutation(len(NUMBERS)) + 100)
    assert any("'id' looks like row numbers" in note for note in Dataset.from_frame(shuffled).notes)
    with_a_gap = shuffled.assign(id=np.where(shuffled["id"] == 100, 98, shuffled["id"]))
    assert not any("row numbers" in note for note in Dataset.from_frame(with_a_gap).notes)


def test_a_data_set_is_told_in_a_line() -> None:
    frame = pd.DataFrame({"a": np.linspace(0, 1, 50) ** 2})
    assert repr(Dataset.from_frame(frame)) == "<Dataset of 50 rows: 1 continuous>"


def test_a_mapping_of_columns_is_refused_with_the_remedy() -> None:
    with pytest.raises(DataError, match=r"pandas\.DataFrame"):
        Dataset.as_dataset({"a": [1, 2], "b": [2, 1]})


def test_ranks_become_van_der_waerden_scores_and_ties_share_theirs():
    from scipy.stats import norm

    frame = pd.DataFrame({"a": [3.0, 1.0, 1.0, 50.0, 7.5], "b": [0.5, 0.1, 0.2, 0.4, 0.3]})
    data = Dataset.from_frame(frame, transform={"a": "rank"}, standardize=False)
    expected = norm.ppf(np.array([3, 1.5, 1.5, 5, 4]) / 6)
    np.testing.assert_allclose(data.values[:, 0], expected, rtol=1e-12)  # rounding of the quantile function
    np.testing.assert_array_equal(data.values[:, 1], frame["b"])
    assert any("values of a were replaced by the normal scores" in note for note in data.notes)


def test_ranks_of_new_rows_are_those_among_the_first_ones():
    data = Dataset.from_frame(NUMBERS, transform="rank")
    np.testing.assert_array_equal(data.like(NUMBERS).values, data.values)
    beyond = data.like(NUMBERS.iloc[:2].assign(a=[1e9, -1e9]))
    assert beyond.values[0, 0] == data.values[:, 0].max()
    assert beyond.values[1, 0] == data.values[:, 0].min()


def test_ranks_do_not_see_a_monotone_change_of_units():
    ranked = Dataset.from_frame(NUMBERS, transform="rank").values
    np.testing.assert_array_equal(Dataset.from_frame(np.log(NUMBERS), transform="rank").values, ranked)
