"""Text tables: a file that is not one is refused with its line, never half read."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from gflowdag.data.contents import read_text
from gflowdag.data.spellings import USUAL, is_marker_among_numbers
from gflowdag.errors import DataError
from gflowdag.runtime.messages import counted, shown

MAX_COLUMNS = 10_000
_SEPARATORS = ("\t", ";", ",")  # the less likely inside a name or a number, the earlier
_DECLARED_SEPARATOR = re.compile(r"\s*sep=([,;\t])[^\S\n]*(?:\n|$)")  # the first line, as Excel writes it
_QUOTED = re.compile(r'"[^"]*"')
_LONE_TAB = re.compile(r"[^,;\s] *\t[ \t]*(?![,; \t])")  # not beside another separator
_TRAILING_SPACES = re.compile(r" +(?=\r?$)", re.MULTILINE)
_THOUSANDS = r"[+-]?[1-9]\d{0,2},\d{3}"
_LIST_OR_THOUSANDS = rf"\d*,\d*|{_THOUSANDS}"


def read_csv(path: str | Path) -> pd.DataFrame:
    """Read a table with a header line, separated by commas, semicolons, tabs or spaces, compressed or not.

    A first column without a name that merely numbers the rows (as pandas and R write it) is left out.
    Missing values are empty cells and those that hold NA, N/A, n/a, #N/A, NaN, nan, NULL or null; other
    spellings are left to `Dataset` (`gflowdag.data.spellings`). Numbers can have decimal commas in a file
    without decimal points. Where commas separate the columns too, "1,5" may be a list: it is a number in a
    column in which another has a sign or an exponent, and otherwise text.

    Raises:
        DataError: no such file, or one that is empty, binary, ragged, too large or without a header; or a
            column whose commas seem to separate thousands.
    """
    return read_csv_text(Path(path), read_text(Path(path), DataError))


def read_csv_text(path: Path, text: str) -> pd.DataFrame:
    """`read_csv` of a text; `path` is for messages."""
    text = _with_line_feeds(text)
    if declared := _DECLARED_SEPARATOR.match(text):
        text = "\n" * declared[0].count("\n") + text[declared.end() :]  # errors count the lines of the file
    if not text.strip():
        raise DataError(
            f"{path} is empty. It needs a header line with the names and one line per observation."
        )
    separator = declared[1] if declared else _separator(text)
    if separator == " ":
        text = _TRAILING_SPACES.sub("", text)
    header = _check_lines(path, text, separator)

    try:
        frame = _parsed(text, separator, header)
    except (ValueError, OverflowError) as error:  # quotes that pandas reads otherwise than the csv module
        raise DataError(f"{path} is not a text table: {error}.") from error
    return without_row_numbers(_with_decimal_commas(frame, separator, text))


def without_row_numbers(frame: Any) -> pd.DataFrame:
    """The table without a first column that has no name and merely numbers the rows."""
    first = frame.iloc[:, 0]
    if frame.columns[0] != "" or not types.is_integer_dtype(first) or not len(first):
        return frame
    counted_up = (first.to_numpy() - first.iloc[0] == np.arange(len(first))).all()
    return pd.DataFrame(frame.iloc[:, 1:]) if first.iloc[0] in (0, 1) and counted_up else frame


def _parsed(text: str, separator: str, header: list[str]) -> pd.DataFrame:
    return pd.read_csv(
        io.BytesIO(text.encode()),  # of text, a stream would take four bytes a character
        sep=separator,
        header=0,
        names=header,
        index_col=False,
        skipinitialspace=True,
        keep_default_na=False,
        na_values=[*USUAL],
        low_memory=False,  # otherwise long columns can hold numbers as well as text
    )


def _with_decimal_commas(frame: Any, separator: str, text: str) -> Any:
    """The table with numbers for text that is numbers with decimal commas, also beside words for "missing".

    Spreadsheets of many countries write 0,5; where other cells of the file have points, commas mean something
    else.
    """
    has_points = None
    for name in [name for name in frame.columns if not types.is_numeric_dtype(frame[name])]:
        levels = frame[name].dropna().drop_duplicates().astype(str)
        if not levels.str.contains(",", regex=False).any():
            continue
        if has_points is None:
            has_points = _has_decimal_points(text, separator)
        words = is_marker_among_numbers(levels)
        plain = levels if has_points else levels.str.replace(",", ".", regex=False)
        numbers: Any = pd.to_numeric(plain.mask(words), errors="coerce")
        if numbers.isna().all() or not (numbers.notna() | words).all():
            continue
        cells = levels.str.strip()  # pandas reads " 1,234 " as a number too
        _refuse_thousands(name, cells, separator)
        if not _may_be_lists(cells, separator):
            meant = numbers.astype(object).where(~words, levels)
            frame[name] = frame[name].map(dict(zip(levels, meant, strict=True))).infer_objects()
    return frame


def _refuse_thousands(name: str, levels: Any, separator: str) -> None:
    """Refuse commas that seem to separate thousands: beside 251, 2,608 is hardly a decimal number.

    Nor is it where commas separate the columns too: whoever writes decimal commas mostly avoids that.
    """
    commas = levels[levels.str.contains(",")]
    whole = levels[levels.str.fullmatch(r"[+-]?\d+")]
    if len(commas) and (len(whole) or separator == ",") and commas.str.fullmatch(_THOUSANDS).all():
        beside = f" beside {whole.iloc[0]!r}" if len(whole) else ""
        raise DataError(
            f"Column {name!r} holds {commas.iloc[0]!r}{beside}: the comma seems to separate thousands. "
            "Remove the thousands separators; if it is a decimal comma, write decimal points in this file."
        )


def _may_be_lists(levels: Any, separator: str) -> bool:
    """Whether cells of a comma-separated file, like "1,2" and "1,3", may be several answers in one."""
    commas = levels[levels.str.contains(",")]
    return separator == "," and len(commas) > 0 and commas.str.fullmatch(_LIST_OR_THOUSANDS).all()


def _with_line_feeds(text: str) -> str:
    """The text with lines as everyone but old Macintosh programs ends them."""
    return text if "\n" in text else text.replace("\r", "\n")


def _separator(text: str) -> str:
    """The first known separator that is in the header and in a later line; without one, a space or a comma.

    That another one cuts the lines more evenly does not count: where a line is ragged, it would cut numbers.
    """
    start = next(line for line in io.StringIO(text) if line.strip())
    header = _QUOTED.sub('""', start.lstrip(" ").rstrip())  # a tab before it is an empty name
    present = [separator for separator in _SEPARATORS if separator in header]
    if not present:
        return " " if " " in header else ","
    if len(present) == 1:
        return present[0]
    rows = _QUOTED.sub('""', text[text.index(start) + len(start) :])
    if "\t" in present and not _LONE_TAB.search(f"{header}\n{rows}"):  # tabs that merely align the columns
        present.remove("\t")
    return next((separator for separator in present if separator in rows), present[0])


def _has_decimal_points(text: str, separator: str) -> bool:
    """Whether a whole cell is written like 0.5; the date 01.03.2021 holds no decimal point."""
    number = rf'(?:^|{separator})[ \t]*"?[+-]?\d+\.\d+(?:[eE][+-]?\d+)?"?(?=\s*(?:{separator}|$))'
    return re.search(number, text, re.MULTILINE) is not None


def _check_lines(path: Path, text: str, separator: str) -> list[str]:
    """The names of the header line, after a look at every line."""
    header: list[str] | None = None
    if '"' not in text and separator != " " and _are_even(text, separator):
        return checked_header(path, text[: text.index("\n")].split(separator))
    try:
        for line, cells in _rows(io.StringIO(text), separator):
            if header is None:
                header = checked_header(path, cells)
            elif len(cells) != len(header):
                raise DataError(
                    f"{path} is ragged: line {line} has {counted(len(cells), 'cell')}, the header "
                    f"{len(header)}. {_remedy_for_ragged(header, text, separator)}"
                )
    except csv.Error as error:
        raise DataError(f"{path} is not a text table: {error}.") from error
    return header or []


def _are_even(text: str, separator: str) -> bool:
    """Whether all lines have as many separators; a look at the bytes, for files of many millions of lines."""
    if not text.isascii():
        return False
    content = np.frombuffer(text.encode(), dtype=np.uint8)
    ends = np.flatnonzero(content == ord("\n"))
    before = np.searchsorted(np.flatnonzero(content == ord(separator)), ends)
    counts = np.diff(before, prepend=0)
    blank = np.diff(ends, prepend=-1) == 1
    longest = int(np.diff(ends, prepend=-1).max(initial=0))
    return bool(
        text.endswith("\n")
        and not blank.any()
        and longest < csv.field_size_limit()
        and len(counts) > 0
        and counts[0] > 0
        and (counts == counts[0]).all()
    )


def _rows(lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row with the number of its last line; blank lines are no rows."""
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for cells in reader:
            if len(cells) > 1 or any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise csv.Error(f"line {reader.line_num}: {error}") from error


def _remedy_for_ragged(header: list[str], text: str, separator: str) -> str:
    if header[0].startswith("#"):
        return "The header seems to be a comment: remove it."
    widths = {len(cells) for _, cells in islice(_rows(io.StringIO(text), separator), 1, None)}
    if widths == {len(header) + 1}:
        one_column = widths == {2} and separator == ","
        decimal = "If the comma is a decimal one, write points. " if one_column else ""
        return (
            f"Every line has one cell more than the header. {decimal}If the first is the name of the row, "
            "write the table without: write.table(…, row.names=FALSE) in R."
        )
    remedy = "Correct the line; leave the cell of a missing value empty."
    held = (other for other in _SEPARATORS if other != separator and any(other in name for name in header))
    if other := next(held, None):
        remedy += f" If {other!r} separates the columns, put a line sep={other} before the header."
    return remedy


def checked_header(path: Path, cells: list[str]) -> list[str]:
    """The names of the columns, all different and in the first line."""
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
        return not float(cell.replace(",", ".")).is_integer()
    except (ValueError, OverflowError):
        return False
