"""The same table in files of all kinds is the same data set; what cannot be read says what is missing."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gflowdag.cli import commands
from gflowdag.data import Dataset, contents, formats
from gflowdag.data.formats import read_table
from gflowdag.errors import DataError, MissingExtraError

RNG = np.random.default_rng(0)
ROWS = 40
TABLE = pd.DataFrame(
    {
        "dose": RNG.normal(size=ROWS),
        "arm": RNG.choice(["control", "treated"], ROWS),
        "visits": RNG.integers(0, 5, ROWS),
    }
)
TABLE.loc[4, "dose"] = np.nan


def zipped(content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("table.csv", content)
        archive.writestr("__MACOSX/._table.csv", b"junk")
    return stream.getvalue()


def stata(path: Path) -> None:
    TABLE.assign(visits=TABLE["visits"].astype(np.int32)).to_stata(path, write_index=False)


def spss(path: Path) -> None:
    pytest.importorskip("pyreadstat").write_sav(TABLE, str(path))


def sas(path: Path) -> None:
    pytest.importorskip("pyreadstat").write_xport(TABLE, str(path))


def parquet(path: Path) -> None:
    pytest.importorskip("pyarrow")
    TABLE.to_parquet(path)


def feather(path: Path) -> None:
    pytest.importorskip("pyarrow")
    TABLE.to_feather(path)


def excel(path: Path) -> None:
    pytest.importorskip("openpyxl")
    TABLE.to_excel(path, index=False)


WRITERS = {
    "t.csv": lambda path: TABLE.to_csv(path, index=False),
    "t.tsv": lambda path: TABLE.to_csv(path, index=False, sep="\t"),
    "t.dta": stata,
    "t.sav": spss,
    "t.xpt": sas,
    "t.parquet": parquet,
    "t.feather": feather,
    "t.xlsx": excel,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_table_is_the_same_in_every_format(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    WRITERS[name](tmp_path / name)
    expected = Dataset.from_frame(TABLE, missing="drop")
    found = Dataset.from_file(tmp_path / name, missing="drop")
    assert found.names == expected.names
    assert found.levels == expected.levels
    np.testing.assert_allclose(found.values, expected.values, atol=1e-12)  # text of 17 digits, half a digit
    content = (tmp_path / name).read_bytes()
    stream = type("Stream", (), {"isatty": lambda self: False, "buffer": io.BytesIO(content)})()
    monkeypatch.setattr(sys, "stdin", stream)
    assert commands.load_table("-", missing="drop").sha256 == found.sha256


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zipped])
@pytest.mark.parametrize("name", ["t.csv", "t.dta"])
def test_compressed_tables_are_read(name: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    packed = tmp_path / "packed"
    packed.write_bytes(pack((tmp_path / name).read_bytes()))
    assert (
        Dataset.from_file(packed, missing="drop").sha256
        == Dataset.from_file(tmp_path / name, missing="drop").sha256
    )


def test_a_workbook_with_several_sheets_asks_for_one(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as book:
        TABLE.to_excel(book, sheet_name="visits", index=False)
        pd.DataFrame({"a": [1]}).to_excel(book, sheet_name="codes", index=False)
    with pytest.raises(DataError, match=r"2 sheets: visits, codes\. Choose one: sheet='visits'"):
        read_table(path)
    with pytest.raises(DataError, match=r"no sheet 'visit'; its sheets are visits, codes"):
        read_table(path, sheet="visit")
    data = commands.load_table(str(path), sheet="visits", missing="drop")
    assert data.options.sheet == "visits"
    assert data.names == tuple(TABLE.columns)
    WRITERS["t.csv"](tmp_path / "t.csv")
    with pytest.raises(DataError, match="has none"):
        read_table(tmp_path / "t.csv", sheet="visits")


def test_a_reader_that_is_not_installed_is_named_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1" + bytes(40))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'gflowdag\[files\]'"):
        read_table(path)


@pytest.mark.parametrize("start", [b"<stata_dta>", b"\x72\x02\x01\x00", formats._SAS])
def test_damaged_files_are_refused_by_name(start: bytes, tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    path.write_bytes(start + bytes(400))
    with pytest.raises(DataError, match=r"damaged (cannot be read as a file of S|holds no columns)"):
        read_table(path)


def test_archives_of_several_files_are_not_guessed_at(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("a.csv", "x\n1\n")
        archive.writestr("b.csv", "x\n1\n")
    with pytest.raises(DataError, match="is a zip archive of 2 files"):
        read_table(tmp_path / "t.zip")


def test_more_than_the_memory_holds_is_refused_with_what_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match=r"10,000,000,000 rows and 10,000 columns.*2182787\.. GiB|GiB"):
        formats.check_memory(tmp_path, 10**10, 10**4)
    monkeypatch.setattr(contents, "total_memory", lambda: 400)
    WRITERS["t.csv"](tmp_path / "t.csv")
    with pytest.raises(DataError, match="holds more than"):
        read_table(tmp_path / "t.csv")


def test_windows_text_in_utf_16_is_text(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes(TABLE.to_csv(index=False, sep="\t").encode("utf-16"))
    assert list(read_table(tmp_path / "t.txt").columns) == list(TABLE.columns)
