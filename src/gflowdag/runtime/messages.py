"""Fragments of the sentences in which the package speaks to the user."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

# No part of a name, and never printed: terminal escapes, null, lone surrogates, code points that are no
# characters, and marks that show the text around them in another order. Tabs and line breaks are allowed, and
# so are the marks of direction (U+200E, U+200F): they do no more than a letter of their script does.
CONTROL_CHARACTER = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_LINE_BREAKS = re.compile(r"[\t\n\r\x85\u2028\u2029]+")


def printable(text: str) -> str:
    """The text with a visible sign for each control character."""
    return CONTROL_CHARACTER.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """The text with a blank for line breaks and tabs, and nothing that controls a terminal."""
    return printable(_LINE_BREAKS.sub(" ", text))


def shown(values: Iterable[Any], limit: int = 6) -> str:
    """The first few of `values`, separated by commas."""
    values = list(values)
    return ", ".join(map(str, values[:limit])) + (", …" if len(values) > limit else "")


def counted(count: int, noun: str) -> str:
    """`"1 row"`, `"2,000 rows"`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def was(count: int) -> str:
    """The verb after so many: `"1 row was"`, `"2 rows were"`."""
    return "was" if count == 1 else "were"


def told_together(values: Sequence[float], digits: int = 4) -> list[str]:
    """Numbers of one scale, with `digits` significant digits of the largest: what is tiny beside it is 0."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    places = digits - 1 - math.floor(math.log10(largest)) if largest > 0 else 0
    return [f"{round(value, places) + 0.0:.{digits}g}" for value in values]


def duration(seconds: float) -> str:
    """Seconds in words."""
    if seconds > 100 * 365 * 86400.0:
        return "centuries"
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds" if seconds >= 1.5 else "a second"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """What was probably meant by a misspelt `name`, if anything."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return near[0] if near else None


def instead(name: str, known: Iterable[str]) -> str:
    """What to choose in place of `name`, which is none of `known`; completes an error's sentence."""
    known = list(known)
    meant = nearest(name, known)
    hint = "choose one of" if meant is None else f"did you mean {meant}? There are"
    return f"{hint} {', '.join(known)}"


def unknown_name(name: str, names: Sequence[str]) -> str:
    """Sentence for a name that is none of `names`, with the nearest ones."""
    near = difflib.get_close_matches(str(name), names, n=3)
    if near:
        return f"There is no variable {name!r}; did you mean {' or '.join(map(repr, near))}?"
    known = shown([other or "''" for other in names], 12)
    return f"There is no variable {name!r}; the variables are {known}."


def memory(num_bytes: int) -> str:
    """Bytes in words."""
    if num_bytes > 2**50:
        return "more memory than any machine has"
    if num_bytes > 2**29:
        return f"{num_bytes / 2**30:.1f} GiB"
    return f"{max(num_bytes / 2**20, 1):.0f} MiB"
