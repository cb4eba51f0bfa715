"""Every table that cannot be used is refused at the door, with the column and the remedy."""

from __future__ import annotations

import csv
import gzip
import time

import numpy as np
import pandas as pd
import pytest

from gflowdag.cli.inspect import describe
from gflowdag.data import Dataset, Knowledge, load_dataset
from gflowdag.data.reading import read_csv
from gflowdag.data.spellings import settled
from gflowdag.errors import DataError, KnowledgeError
from gflowdag.posterior.model_fit import check_table
from gflowdag.runtime.messages import unknown_name

RNG = np.random.default_rng(1)
GOOD = pd.DataFrame(RNG.normal(size=(50, 4)), columns=["alpha", "beta", "gamma", "delta"])
TEXT = pd.DataFrame({"p": RNG.choice(["u", "v"], 50), "q": RNG.choice(["u", "v"], 50)})


def _with(**columns) -> pd.DataFrame:
    return GOOD.assign(**columns)


def _holed() -> pd.DataFrame:
    frame = GOOD.copy()
    frame.loc[[4, 9], "beta"] = np.nan
    return frame


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (
            _holed(),
            {"missing": "error"},
            r"Missing values \(NaN\) in 'beta': 2 \(first in row 5\).*missing='drop' keeps 48 of 50",
        ),
        (_with(flat=3.0), {}, r"Constant: 'flat'.*drop"),
        (_with(flat=0.1 + 0.2, level="one"), {}, r"Constant: 'flat', 'level'"),
        (TEXT.assign(flat="u"), {}, r"Constant: 'flat'"),
        (_with(twin=GOOD["beta"]), {}, r"Duplicated: 'beta' and 'twin'"),
        (_with(twin=32 - 1.8 * GOOD["beta"]), {}, r"Duplicated: 'beta' and 'twin'"),
        (
            _with(total=GOOD["alpha"] + 2 * GOOD["beta"] - GOOD["delta"]),
            {},
            r"Collinear: '\w+' is an exact linear combination of ('\w+', ){2}'\w+'",
        ),
        (_with(odd=[np.inf] + [1.0] * 48 + [-np.inf]), {}, r"'odd' has 2 infinite values \(first in row 1\)"),
        (_with(odd=[np.inf] + [1.0] * 49), {}, r"'odd' has 1 infinite value \(first in row 1\)"),
        (
            GOOD.abs().assign(odd=[0.0] + [1.5, 2.5, 3.5] * 16 + [1.0]),
            {"transform": "log"},
            r"'odd' has 1 value of zero or less",
        ),
        (GOOD.head(1), {}, r"Too few rows \(n_samples=1\)"),
        (GOOD.head(0), {}, r"Too few rows \(n_samples=0\)"),
        (GOOD[[]], {}, r"no variables"),
        (pd.DataFrame(), {}, r"no variables"),
        (GOOD.set_axis(["a", "a", "b", "c"], axis=1), {}, r"more than once: 'a'"),
        (GOOD.set_axis(["1", 1, "b", "c"], axis=1), {}, r"more than once: '1'"),
        (GOOD.set_axis(["a", " ", "b", "c"], axis=1), {}, r"Column 2 has no name.*drop=\[''\]"),
        (
            TEXT.assign(key=[f"id{i}" for i in range(50)]),
            {},
            r"'key' has 50 levels, more than max_levels=30 allows",
        ),
        (
            TEXT.assign(key=[str(i) for i in range(49)] + ["n/k"]),
            {},
            r"'key' holds numbers, but also 'n/k' \(1 cell, .* row 50\).*missing_values=\['key=n/k'\]",
        ),
        (GOOD, {"kinds": "discrete"}, r"'alpha' has 50 levels.*continuous=\['alpha'\]"),
        (TEXT, {"kinds": "continuous"}, r"'p' was declared continuous, but row 1 holds '[uv]'"),
        (TEXT, {"kinds": {"r": "discrete"}}, r"no variable 'r'"),
        (TEXT, {"kinds": {"p": "ordinal"}}, r"'p' must be 'continuous' or 'discrete'"),
        (_with(when=pd.date_range("2020-01-01", periods=50)), {}, r"'when' holds dates"),
        (_with(z=1j * np.arange(50)), {}, r"Complex data not supported: split column 'z'"),
        (TEXT.assign(odd=[["a"], ["b"]] * 25), {}, r"'odd' are not all of one type"),
        (TEXT.assign(odd=["a", 1] * 25), {}, r"'odd' are not all of one type"),
        (GOOD, {"transform": "log"}, r"The logarithm needs.*'alpha' has \d+ values of zero or less"),
        (GOOD, {"transform": "sqrt"}, r"transform must be one of"),
        (GOOD, {"discretize": "kmeans"}, r"discretize must be one of"),
        (GOOD, {"discretize": "quantile", "bins": 1}, r"bins must be at least 2"),
        (GOOD, {"discretize": "quantile", "bins": "3"}, r"bins must be at least 2.*got '3'"),
        (GOOD, {"discretize": "quantile", "bins": 2.5}, r"bins must be at least 2.*got 2.5"),
        (_with(rare=[0.0] * 49 + [1.5]), {"discretize": "quantile", "bins": 2}, None),
        (
            _with(rare=[1.5] * 48 + [0.0, 1.0]),
            {"discretize": "quantile"},
            r"'rare' cannot be cut into 3 bins",
        ),
        (GOOD, {"missing": "fill"}, r"missing must be one of"),
        (GOOD, {"interventions": "target"}, r"interventions names no column. There is no variable 'target'"),
        (GOOD, {"interventions": ["beta"] * 49}, r"49 entries for 50 rows"),
        (GOOD, {"interventions": ["bet"] * 50}, r"no variable 'bet'; did you mean 'beta'"),
        (GOOD, {"interventions": [True] * 50}, r"does not say which variable"),
        (GOOD, {"interventions": np.zeros((50, 3), bool)}, r"shape \(50, 3\)"),
        (GOOD, {"interventions": np.full((50, 4), 2)}, r"True and False"),
        (GOOD, {"interventions": pd.DataFrame(np.zeros((50, 1), bool), columns=["x"])}, r"no variable 'x'"),
        (GOOD, {"interventions": [(20, None), (20, "beta")]}, r"20 \+ 20 = 40 rows, the table 50"),
        (GOOD, {"interventions": [0] * 50}, r"intervention_base=1"),
        (GOOD, {"interventions": [5] * 50, "intervention_base": 1}, r"Intervention 5 in row 1.*1 to 4"),
        (GOOD, {"interventions": [0.5] * 50, "intervention_base": 1}, r"Intervention 0.5 in row 1"),
        (
            GOOD,
            {"interventions": [1] * 50, "intervention_base": "1"},
            r"intervention_base must be .* got '1'",
        ),
        (GOOD, {"interventions": 3}, r"interventions must be"),
        (TEXT.assign(share=["12%", "5 %"] * 25), {}, r"'share' holds numbers as text, .*'12%'.*without '%'"),
        (TEXT.assign(share=["−1.5", "2.5"] * 25), {}, r"'share' .*'−1.5'.*without '−'"),
        (
            TEXT.assign(share=["1,234.5", "0.5"] * 25),
            {},
            r"'share' .*without ',';.*discrete=\['share'\]",
        ),
        (
            TEXT.assign(share=["1 234,5", "n/k", *"0123456789"] * 4 + ["2"] * 2),
            {},
            r"'share' .*without ' ' or ','",
        ),
        (
            TEXT.assign(share=["１２", "٣"] * 25),
            {},
            r"'share' .*'１２'. Write them like -1234.5; if they are",
        ),
        (TEXT.assign(share=["12%", "5 %"] * 25), {"kinds": "discrete"}, None),
        (TEXT.assign(alleles=["1 2", "2 2"] * 25), {}, None),
        (TEXT.assign(answers=["1,2", "other"] * 25), {}, None),
    ],
)
def test_unusable_tables_are_refused_with_column_and_remedy(frame, options, message):
    if message is None:  # the neighbour of a refused case that is fine
        assert Dataset.from_frame(frame, **options).num_rows == 50
        return
    with pytest.raises(DataError, match=message):
        Dataset.from_frame(frame, **options)


def test_knowledge_about_unknown_variables_is_refused_before_the_data_are_looked_at():
    with pytest.raises(KnowledgeError, match="did you mean 'gamma'"):
        Dataset.from_frame(_holed(), knowledge=Knowledge(required=[("gama", "beta")]))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(5), "has 1 dimension; it needs 2"),
        (np.zeros((5, 0)), "no variables"),
        ([[1.0, 2.0], [3.0]], "different lengths"),
        ("table.csv", "use Dataset.from_file"),
    ],
)
def test_arrays_of_the_wrong_shape_are_refused(array, message):
    with pytest.raises(DataError, match=message):
        Dataset.as_dataset(array)


def test_a_number_of_names_that_does_not_fit_is_refused():
    with pytest.raises(DataError, match="3 names were given for 4 columns"):
        Dataset.from_array(GOOD.to_numpy(), names=["a", "b", "c"])


def test_nearly_collinear_columns_and_more_variables_than_rows_are_fine():
    noise = 1e-6 * RNG.normal(size=50)
    assert Dataset.from_frame(_with(near=GOOD["alpha"] + noise)).num_variables == 5
    assert Dataset.from_array(RNG.normal(size=(6, 9))).num_rows == 6
    assert Dataset.from_array(RNG.normal(size=(2, 3))).num_rows == 2


def test_a_few_rows_that_agree_by_chance_are_no_copies():
    few = pd.DataFrame({"a": ["x", "y", "x", "y"], "b": ["v", "u", "v", "u"]})
    assert Dataset.from_frame(few).num_rows == 4
    assert not any("same information" in note for note in Dataset.from_frame(few).notes)
    many = Dataset.from_frame(pd.concat([few, few]))
    assert any("'a' and 'b' hold the same information" in note for note in many.notes)


def test_the_more_columns_the_more_of_them_agree_by_chance():
    # Six rows of yes and no fall in 31 ways: of 40 columns, several pairs agree.
    answers = RNG.integers(2, size=(6, 40))
    answers[:2] = [[0], [1]]  # none is constant
    for kind in ("discrete", "continuous"):
        assert Dataset.from_array(answers, kinds=kind).num_variables == 40
    twins = np.repeat(RNG.integers(2, size=(60, 1)), 2, axis=1)
    with pytest.raises(DataError, match="Duplicated: 'X1' and 'X2'"):
        Dataset.from_array(twins, kinds="continuous")
    numbers = RNG.normal(size=(6, 40))
    with pytest.raises(DataError, match="Duplicated: 'X1' and 'X41'"):  # measurements agree by no chance
        Dataset.from_array(np.column_stack([numbers, 3 - 2 * numbers[:, 0]]))


def test_a_table_is_checked_in_time_that_grows_as_its_columns():
    def seconds(num_columns: int) -> float:
        values = RNG.normal(size=(30, num_columns))
        started = time.process_time()
        data = Dataset.from_array(values)
        describe(data, check_table(data))
        return time.process_time() - started

    seconds(10)
    assert seconds(3_000) < 8 * seconds(750)  # four times as large; the square would be 16 times as long


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"a,b\n1,2\n3,4,5\n", r"ragged: line 3 has 3 cells, the header 2"),
        (b"a,b\n1,2\n\n3\n", r"ragged: line 4 has 1 cell, the header 2"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "binary file"),
        (bytes(range(128, 256)) * 4, "not UTF-8 text"),
        (b"a,b\n1,\xff\n", r"not UTF-8 text \(line 2\)"),
        (b"a,b,a\n1,2,3\n", r"repeats 'a'"),
        (b"0.25,1.5\n0.5,2.5\n", r"no header line"),
        (b"a,b\n", r"Too few rows \(n_samples=0\)"),
        (b"a,b\n1,2\n", r"Too few rows \(n_samples=1\)"),
        (b",".join(b"n%d" % i for i in range(10_001)) + b"\n", r"10001 columns; is the table transposed"),
        (b"x" * 200_000 + b"\n1\n", r"not a text table: line 1"),
        (b'a,b\n1.5,"2.5\n3.5,4.5\n', r"not a text table: line 3: unexpected end of data"),
        (b"\x1f\x8b" + b"junk" * 10, "damaged gzip"),
        (gzip.compress(b"a,b\n1,2\n" * 100, mtime=0)[:-12], "damaged gzip"),
        (b",a\nfoo,1.5\nbar,2.5\n", r"Column 1 has no name"),
        (b'"a" "b"\n"1" 1.5 2\n"2" 2.5 3\n', r"ragged: line 2 has 3 cells, the header 2.*row.names=FALSE"),
        (b"a;b\n251;1\n210;2\n2,608;3\n", r"Column 'a' holds '2,608' beside '251'.*thousands separators"),
        (b'a,b\n251,1\n"2,608",3\n', r"Column 'a' holds '2,608' beside '251'.*thousands separators"),
        (b"a;b\n50;1\n8;2\n1,200;3\n", r"Column 'a' holds '1,200' beside '50'.*thousands separators"),
        (b'a,b\n"1,234",2\n"5,678",3\n', r"Column 'a' holds '1,234': .*thousands separators"),
        (b'a,b\n" -1,234 ",2\n" 5,678 ",3\n', r"Column 'a' holds '-1,234': .*thousands separators"),
        (b"a;b\n251;1\n2,608 ;3\n", r"Column 'a' holds '2,608' beside '251'.*thousands separators"),
        (b"0,25;1,5\n0,5;2,5\n", r"no header line"),
        (b"dose, mg;b\n1;1,5;2\n2;2,5;3\n", r"ragged: line 2 has 3 cells, the header 2.*row.names=FALSE"),
        (b"a\n1,5\n2,5\n", r"ragged: line 2 .*Every line .*If the comma is a decimal one, write points"),
        (b"a,b\n" + b"1,2,3\n" * 30 + b"1,2\n", r"line 2 has 3 cells, the header 2. Correct the line"),
        (b"sep=;\na;b\n1;2\n3\n", r"ragged: line 4 has 1 cell"),
        (b"sep=;\n", r"is empty"),
    ],
)
def test_files_that_are_no_table_are_refused_with_the_line(tmp_path, content, message):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        Dataset.from_csv(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"Cannot read .*nowhere\.csv: No such file"):
        Dataset.from_csv(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match=r"Cannot read .*: it is a folder, name a file in it\."):
        Dataset.from_csv(tmp_path)


@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_usual_text_files_give_the_same_data(tmp_path, separator, pack):
    path = tmp_path / "table.txt"
    frame = GOOD.rename(columns={"alpha": "the first; alpha, in m"})
    text = frame.to_csv(index=False, sep=separator, quoting=csv.QUOTE_NONNUMERIC)
    path.write_bytes(pack(("\ufeff" + text + "\n\n").encode()))
    # Before pandas 3 the last bit of a number in a file may be another one.
    np.testing.assert_allclose(Dataset.from_csv(path).values, Dataset.from_frame(GOOD).values, rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('subject name,age\nJane Doe,3\nJohn Roe,4\nAnn Poe,"5",6\n', "line 4 has 3 cells, the header 2"),
        ("first name,last name\nA B,C D\nE F,G H,\n", "line 3 has 3 cells, the header 2"),
        ("dose, mg;b\n1,5;2\n2,5;3;4\n", "line 3 has 3 cells, the header 2"),
        ("dose, mg;b\n1,5;2\n2,5\n", "line 3 has 1 cell, the header 2.*If ',' separates .* a line sep=,"),
        ("dose, mg\tb\n1,5\t2\n2,5\n", "line 3 has 1 cell, the header 2"),
    ],
)
def test_a_ragged_file_is_not_read_by_another_separator(tmp_path, text, line):
    path = tmp_path / "table.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=f"ragged: {line}"):
        read_csv(path)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("dose, mg;response\n2,5;0\n1,5;1\n", ["dose, mg", "response"]),
        ("dose, mg;mass, kg\n2,5;0,5\n1,5;1,5\n", ["dose, mg", "mass, kg"]),
        ("dose, mg\tresponse\n2.5\t0\n1.5\t1\n", ["dose, mg", "response"]),
        ("full name; given first,age\nJane A Doe,3\nJohn B Roe,4\n", ["full name; given first", "age"]),
        ("first name last,age\nJane A Doe,3\nJohn B Roe,4\n", ["first name last", "age"]),
        ('note,"a;b"\n"x;\ny",1\nz,2\n', ["note", "a;b"]),
    ],
)
def test_the_separator_is_in_the_header_and_in_a_row(tmp_path, text, names):
    path = tmp_path / "table.txt"
    path.write_text(text)
    assert list(read_csv(path).columns) == names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a,b\n"1,5",1\n"-0,25",2\n', [1.5, -0.25]),
        ("a;b\n1,50e+00;1\n-2,5E-1;2\n", [1.5, -0.25]),
        ('a b\n"1,5" 1\n"-0,25" 2\n', [1.5, -0.25]),
        ("a;b\n0,251;1\n100;2\n", [0.251, 100]),  # no one writes thousands with a zero before them
        ("a;b\n1,251;1\n2,608;2\n", [1.251, 2.608]),
        ("a;b\n1,5;1.5\n-0,25;2\n", ["1,5", "-0,25"]),  # points elsewhere: the comma is something else
        ("a b\n1.5 1 \n-0.25 2   \n", [1.5, -0.25]),  # trailing spaces are no cell
        ("a b\r\n1.5 1 \r\n-0.25 2   \r\n", [1.5, -0.25]),
    ],
)
def test_decimal_commas_are_read_in_any_file_without_decimal_points(tmp_path, text, expected):
    path = tmp_path / "table.txt"
    path.write_bytes(text.encode())
    assert read_csv(path)["a"].tolist() == expected


@pytest.mark.parametrize("cells", [["1,2", "1,3", "2,3"], ["1001,1002", "1001,1003", "1002,1003"]])
def test_quoted_lists_in_a_comma_separated_file_are_asked_about(tmp_path, cells):
    path = tmp_path / "table.csv"
    path.write_text("group,answers\n" + "".join(f'{row},"{cell}"\n' for row, cell in enumerate(cells)))
    assert read_csv(path)["answers"].tolist() == cells
    with pytest.raises(DataError, match=rf"'answers' holds numbers as text, such as '{cells[0]}'.*discrete"):
        Dataset.from_csv(path)


@pytest.mark.parametrize(
    "text", ["a,\tb,\tc\n1,\t2,\t3\n", "a\t,b\t,c\n1\t,2\t,3\n", "a;\tb;\tc\n1;\t2;\t3\n"]
)
def test_tabs_that_align_the_columns_separate_nothing(tmp_path, text):
    path = tmp_path / "table.txt"
    path.write_text(text)
    pd.testing.assert_frame_equal(read_csv(path), pd.DataFrame({"a": [1], "b": [2], "c": [3]}))


@pytest.mark.parametrize("blank", ["", "\n \n"])
@pytest.mark.parametrize(
    "text",
    [
        "\tdose, mg\tb\n0\t1,5\t2\n1\t2,5\t3\n",
        "\tdose, mg\n0\t1,5\n1\t2,5\n",
        '\tdose, mg\n"0"\t"1,5"\n"1"\t"2,5"\n',
    ],
)
def test_an_unnamed_column_of_row_numbers_before_a_tab_is_no_variable(tmp_path, blank, text):
    path = tmp_path / "table.txt"
    path.write_text(blank + text)
    frame = read_csv(path)
    assert list(frame.columns) == text.split("\n")[0].split("\t")[1:]
    assert frame["dose, mg"].tolist() == [1.5, 2.5]


def test_an_unnamed_column_of_row_numbers_is_no_variable(tmp_path):
    GOOD.to_csv(tmp_path / "indexed.csv")
    assert Dataset.from_csv(tmp_path / "indexed.csv").names == tuple(GOOD.columns)


def test_quoted_cells_and_empty_cells_are_read(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('"a, b",c,target\n"x, 1",None,\n"y",None,c\n"y",Some,\n"x, 1",Some,NA\n')
    data = Dataset.from_csv(path, interventions="target")
    assert data.names == ("a, b", "c")
    assert data.levels == (("x, 1", "y"), ("None", "Some"))
    assert data.intervened is not None
    np.testing.assert_array_equal(np.argwhere(data.intervened), [[1, 1]])


@pytest.mark.parametrize("marker", ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null"])
def test_the_usual_markers_are_missing_values_in_every_column(tmp_path, marker):
    path = tmp_path / "table.csv"
    path.write_text(f"p,q,number\nu,v,0.5\n{marker},u,1.5\nv,v,{marker}\n")
    frame = read_csv(path)
    assert frame["p"].isna().tolist() == [False, True, False]
    assert frame["number"].isna().tolist() == [False, False, True]
    with pytest.raises(DataError, match=r"'p': 1 \(first in row 2\), 'number': 1 \(first in row 3\)"):
        Dataset.from_csv(path, missing="error")


@pytest.mark.parametrize("marker", ["?", "-", "None"])
def test_doubtful_markers_are_missing_values_among_numbers_and_levels_among_words(tmp_path, marker):
    path = tmp_path / "table.csv"
    lines = ["word;measured;count;code;always;target"]
    lines += [
        f"{marker};-1,5;{marker};{marker};{marker};",
        f"some;{marker};2;A;{marker};word",
        "some;2,5;3;1;;",
    ]
    path.write_text("\n".join(lines) + "\n")
    frame, notes = settled(read_csv(path))
    assert repr(marker) in notes[0]
    assert "'measured' (1 cell)" in notes[0]
    assert frame["measured"].tolist()[::2] == [-1.5, 2.5]
    assert frame["count"].tolist()[1:] == [2, 3]
    assert frame.isna().sum().to_dict() == {
        "word": 0,
        "measured": 1,
        "count": 1,
        "code": 0,
        "always": 1,
        "target": 2,
    }
    assert frame["word"].tolist() == [marker, "some", "some"]


def test_a_network_with_a_level_called_none_survives_a_file(tmp_path):
    network = load_dataset("child", num_rows=60).frame
    network.to_csv(tmp_path / "child.csv", index=False)
    assert "None" in set(read_csv(tmp_path / "child.csv")["DuctFlow"])
    assert not read_csv(tmp_path / "child.csv").isna().to_numpy().any()


def test_a_column_without_a_name_is_seen_among_the_names():
    assert unknown_name("1", ["", "a"]).endswith("the variables are '', a.")
