"""Text in CSV files that no spreadsheet takes for a formula.

A spreadsheet computes a cell that begins with `=`, `+`, `-` or `@`. An apostrophe in front makes it text.
Text that has this apostrophe already gets another one, so that nothing is lost when the file is read again.
"""

from __future__ import annotations

import re

_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # the last four: full-width forms
_NEEDS_QUOTES = re.compile(r'[",\r\n]')


def escaped(text: str) -> str:
    """The text as a cell that stays text."""
    return f"'{text}" if _FORMULA.match(text) else text


def cell(text: str) -> str:
    """The text as a cell of a file, in quotes where it needs them: Python's `csv` forgets those of `\\r`."""
    text = escaped(text)
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text


def unescaped(text: str) -> str:
    """The inverse of `escaped`."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
