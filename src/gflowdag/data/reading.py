"""Text tables: a file that is not one is refused with its line, never half read."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api import types

from gflowdag.errors import DataError, GFlowDAGError
from gflowdag.wording import counted, shown

MAX_BYTES = 1 << 30
MAX_COLUMNS = 10_000
_MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null")
_MISSING_NUMBER = ("?", "-", "None")  # among words they can be levels: "None" is one in child and insurance
_SEPARATORS = (",", ";", "\t", " ")
_DECLARED_SEPARATOR = re.compile(r"sep=([,;\t])\s*")  # the first line, as Excel writes it
# A whole cell: the date 01.03.2021 holds no decimal point.
_DECIMAL_COMMA = re.compile(r'(?:^|[;\t])"?[+-]?\d+,\d+"?(?=\s*(?:[;\t]|$))', re.MULTILINE)
_DECIMAL_POINT = re.compile(r'(?:^|[;\t])"?[+-]?\d+\.\d+"?(?=\s*(?:[;\t]|$))', re.MULTILINE)


def read_csv(path: str | Path) -> pd.DataFrame:
    """Read a table with a header line, separated by commas, semicolons, tabs or spaces, gzipped or not.

    A first column without a name that merely numbers the rows (as pandas and R write it) is left out.
    Missing values are empty cells and those that hold NA, N/A, n/a, #N/A, NaN, nan, NULL or null. In a column
    whose other cells are all numbers, so are `?`, `-` and None; in any other column these are text.

    Raises:
        DataError: no such file, or one that is empty, binary, ragged, too large or without a header.
    """
    path = Path(path)
    text = _with_line_feeds(read_text(path, DataError))
    lines = text.lstrip().splitlines()
    if not lines:
        raise DataError(
            f"{path} is empty. It needs a header line with the names and one line per observation."
        )
    if (declared := _DECLARED_SEPARATOR.fullmatch(lines[0])) and len(lines) > 1:
        text = text.lstrip().split("\n", 1)[1]
    separator = declared[1] if declared else _separator(lines[0])
    header = _check_lines(path, text, separator)

    try:
        frame = _parsed(text, separator, header)
    except (ValueError, OverflowError) as error:  # quotes that pandas reads otherwise than the csv module
        raise DataError(f"{path} is no text table: {error}.") from error
    is_row_numbers = any(frame.iloc[:, 0].tolist() == list(range(k, k + len(frame))) for k in (0, 1))
    return pd.DataFrame(frame.iloc[:, 1:]) if header[0] == "" and is_row_numbers else frame


def _parsed(text: str, separator: str, header: list[str]) -> pd.DataFrame:
    options: dict[str, Any] = {
        "sep": separator,
        "decimal": "," if _has_decimal_commas(text, separator) else ".",
        "header": 0,
        "names": header,
        "index_col": False,
        "skipinitialspace": True,
        "keep_default_na": False,
    }
    frame = pd.read_csv(io.StringIO(text), na_values=[*_MISSING], **options)
    doubtful = [name for name in header if frame[name].isin(_MISSING_NUMBER).any()]
    if doubtful:
        numbers = pd.read_csv(io.StringIO(text), na_values=[*_MISSING, *_MISSING_NUMBER], **options)
        for name in doubtful:
            if types.is_numeric_dtype(numbers[name]) and numbers[name].notna().any():
                frame[name] = numbers[name]
    return frame


def read_text(path: Path, error: type[GFlowDAGError]) -> str:
    """The text of a file in UTF-8, gzipped or not; whatever prevents it is raised as an `error`."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as problem:  # ValueError: a null character in the path
        raise error(f"Cannot read {path}: {getattr(problem, 'strerror', problem)}.") from problem
    if content[:2] == b"\x1f\x8b":
        try:
            with gzip.open(io.BytesIO(content)) as stream:
                content = stream.read(MAX_BYTES + 1)
        except (OSError, EOFError, zlib.error) as problem:
            raise error(f"{path} is a damaged gzip file: {problem}.") from problem
    if len(content) > MAX_BYTES:
        raise error(f"{path} holds more than {MAX_BYTES >> 20} MiB. Read it yourself and pass the DataFrame.")
    if b"\x00" in content:
        raise error(f"{path} is a binary file, not text. Export the table as CSV.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise error(
            f"{path} is no UTF-8 text (line {line}). Save it as UTF-8 (in Excel: CSV UTF-8)."
        ) from problem


def _with_line_feeds(text: str) -> str:
    """The text with lines as everyone but old Macintosh programs ends them."""
    return text if "\n" in text else text.replace("\r", "\n")


def _separator(header: str) -> str:
    """The first of the known separators that occurs in the header; a comma where there is one column."""
    unquoted = re.sub(r'"[^"]*"', "", header.strip())
    return next((separator for separator in _SEPARATORS if separator in unquoted), ",")


def _has_decimal_commas(text: str, separator: str) -> bool:
    """Whether numbers are written 0,5: as spreadsheets of many countries do, with semicolons or tabs."""
    return separator in ";\t" and bool(_DECIMAL_COMMA.search(text)) and not _DECIMAL_POINT.search(text)


def _check_lines(path: Path, text: str, separator: str) -> list[str]:
    """The names of the header line, after a look at every line."""
    reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True, strict=True)
    header: list[str] | None = None
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells) and len(cells) <= 1:
                continue  # blank line
            if header is None:
                header = _checked_header(path, cells)
            elif len(cells) != len(header):
                remedy = "Correct the line; leave the cell of a missing value empty."
                if header[0].startswith("#"):
                    remedy = "The header seems to be a comment: remove it."
                raise DataError(
                    f"{path} is ragged: line {reader.line_num} has {counted(len(cells), 'cell')}, the "
                    f"header {len(header)}. {remedy}"
                )
    except csv.Error as error:
        raise DataError(f"{path} is no text table: line {reader.line_num}: {error}.") from error
    return header or []


def _checked_header(path: Path, cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if len(names) > MAX_COLUMNS:
        raise DataError(f"The header of {path} has {len(names)} columns; is the table transposed?")
    if repeated := sorted(name for name, count in Counter(names).items() if count > 1):
        raise DataError(
            f"The header of {path} repeats {shown(map(repr, repeated))}. Give every column its own name, and "
            "put a header line first if there is none."
        )
    if all(_is_decimal(name) for name in names):
        raise DataError(
            f"{path} has no header line: line 1 holds numbers only. Put the names of the columns first."
        )
    return names


def _is_decimal(cell: str) -> bool:
    """Whether a cell is a number with a decimal part; whole numbers may be names."""
    try:
        return not float(cell).is_integer()
    except (ValueError, OverflowError):
        return False
