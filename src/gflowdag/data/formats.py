"""Tables in files of any kind: told apart by how they begin, so that standard input may hold any of them."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from gflowdag.data.contents import STANDARD_INPUT, decoded, most_bytes, read_bytes
from gflowdag.data.reading import checked_header, read_csv_text, without_row_numbers
from gflowdag.data.spellings import USUAL
from gflowdag.errors import DataError, MissingExtraError
from gflowdag.runtime.memory import total_memory
from gflowdag.runtime.messages import memory, shown
from gflowdag.runtime.place import option

_COPIES = 3  # of a table in memory until it is coded
_SAS = bytes.fromhex("0000000000000000c2ea8160b31411cfbd92080009c7318c181f1011")
_STARTS = {  # the first bytes, and the format
    b"PAR1": "Parquet",
    b"ARROW1": "Feather",
    b"PK\x03\x04": "Excel",  # other zip archives were taken apart before
    b"\xd0\xcf\x11\xe0": "Excel",
    b"<stata_dta>": "Stata",
    b"$FL2": "SPSS",
    b"$FL3": "SPSS",
    b"HEADER RECORD*******LIB": "SAS",
    _SAS[4:]: "SAS",
}
_OLD_STATA = (b"\x71", b"\x72", b"\x73")  # versions 8 to 12, then the order of bytes
_SUFFIXES = {".dta": "Stata", ".sas7bdat": "SAS", ".sav": "SPSS", ".zsav": "SPSS"}


def read_table(path: str | Path, *, sheet: str | None = None) -> pd.DataFrame:
    """The table in a file: text with separators, Excel, Parquet, Feather, Stata, SPSS or SAS.

    Any of them may be compressed, or come through a pipe or standard input (`-`). Labelled values of Stata
    and SPSS are read as their labels.

    Args:
        path: of the file.
        sheet: of a workbook with several.

    Raises:
        DataError: it is none of these, is damaged, or needs more memory than there is.
        MissingExtraError: the package that reads it is not installed; the message names the pip command.
    """
    path = Path(path)
    content = read_bytes(path, DataError)
    kind = _format(path, content)
    if sheet is not None and kind != "Excel":
        raise DataError(f"{option('sheet')} names a sheet of a workbook; {path} has none.")
    if kind is None:
        return read_csv_text(path, decoded(path, content, DataError))
    try:
        frame = _excel(path, content, sheet) if kind == "Excel" else _READERS[kind](path, content)
    except ImportError as error:
        raise MissingExtraError(
            f"{path} is a file of {kind}, which needs a further package: pip install 'gflowdag[files]'."
        ) from error
    except (DataError, MemoryError):
        raise
    except Exception as error:  # whatever a reader of another package makes of a damaged file
        raise DataError(f"{path} cannot be read as a file of {kind}: {error}.") from error
    if not len(frame.columns):
        raise DataError(f"{path} holds no columns.")
    return without_row_numbers(frame)


def _format(path: Path, content: bytes) -> str | None:
    """The format of a file; None is text."""
    for start, kind in _STARTS.items():
        if content.startswith(start) or (start == _SAS[4:] and content[4:].startswith(start)):
            return kind
    if content[:1] in _OLD_STATA and content[1:2] in (b"\x01", b"\x02") and content[2:3] == b"\x01":
        return "Stata"
    return _SUFFIXES.get(path.suffix.lower()) if b"\x00" in content[:4096] else None


def check_memory(path: Path, num_rows: int, num_columns: int) -> None:
    """Refuse a table that does not fit into the memory of this machine, before it is read."""
    needed = 8 * num_rows * num_columns * _COPIES
    if needed > total_memory():
        raise DataError(
            f"{path} has {num_rows:,} rows and {num_columns:,} columns; reading it takes about "
            f"{memory(needed)}, and this machine has {memory(total_memory())}. Take fewer rows or columns."
        )


def _excel(path: Path, content: bytes, sheet: str | None) -> pd.DataFrame:
    if content[:2] == b"PK":
        size = sum(entry.file_size for entry in zipfile.ZipFile(io.BytesIO(content)).infolist())
        if size > most_bytes():
            raise DataError(f"{path} holds {memory(size)}; export the sheet as CSV.")
    with pd.ExcelFile(io.BytesIO(content)) as book:
        names = [str(name) for name in book.sheet_names]
        if sheet is not None and sheet not in names:
            raise DataError(f"{path} has no sheet {sheet!r}; its sheets are {shown(names, 12)}.")
        if sheet is None and len(names) > 1:
            raise DataError(
                f"{path} has {len(names)} sheets: {shown(names, 12)}. Choose one: "
                f"{option('sheet', names[0])}."
            )
        cells: Any = pd.read_excel(
            book,
            sheet_name=names[0] if sheet is None else sheet,
            header=None,
            dtype=object,
            keep_default_na=False,
            na_values=[*USUAL],
        )
    cells = cells.dropna(how="all").dropna(axis=1, how="all")
    if not len(cells):
        raise DataError(
            f"{path} is empty. It needs a header line with the names and one line per observation."
        )
    names = checked_header(path, ["" if pd.isna(cell) else str(cell) for cell in cells.iloc[0]])
    return cells.iloc[1:].set_axis(names, axis=1).reset_index(drop=True).infer_objects()


def _parquet(path: Path, content: bytes) -> pd.DataFrame:
    from pyarrow import parquet  # pyright: ignore[reportMissingImports]

    shape = parquet.ParquetFile(io.BytesIO(content)).metadata
    check_memory(path, shape.num_rows, shape.num_columns)
    return pd.read_parquet(io.BytesIO(content)).reset_index(drop=True)


def _feather(path: Path, content: bytes) -> pd.DataFrame:
    return pd.read_feather(io.BytesIO(content))


def _stata(path: Path, content: bytes) -> pd.DataFrame:
    try:
        table = pd.read_stata(io.BytesIO(content))
    except ValueError as error:
        if "labels" not in str(error):
            raise
        table = pd.read_stata(io.BytesIO(content), convert_categoricals=False)  # two values with one label
    assert isinstance(table, pd.DataFrame)  # no iterator was asked for
    return table


def _spss(path: Path, content: bytes) -> pd.DataFrame:
    with _on_disk(path, content, ".sav") as file:
        return pd.read_spss(file)


def _sas(path: Path, content: bytes) -> pd.DataFrame:
    if content.startswith(b"HEADER RECORD*******LIBV8"):  # which pandas does not read
        import pyreadstat  # pyright: ignore[reportMissingImports]

        with _on_disk(path, content, ".xpt") as file:
            return pyreadstat.read_xport(file)[0]
    kind = "xport" if content.startswith(b"HEADER RECORD") else "sas7bdat"
    frame: Any = pd.read_sas(io.BytesIO(content), format=kind, encoding="latin-1")
    return frame


_READERS: dict[str, Callable[[Path, bytes], pd.DataFrame]] = {
    "Parquet": _parquet,
    "Feather": _feather,
    "Stata": _stata,
    "SPSS": _spss,
    "SAS": _sas,
}


@contextmanager
def _on_disk(path: Path, content: bytes, suffix: str) -> Iterator[str]:
    """The name of a file with this content, for readers that take no streams."""
    if path != STANDARD_INPUT and path.suffix == suffix and path.is_file():
        yield str(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, f"table{suffix}")
        copy.write_bytes(content)
        yield str(copy)
