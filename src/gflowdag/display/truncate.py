"""Long names of variables, truncated to a width so that no two of them become alike."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import count, takewhile


def num_columns(text: str) -> int:
    """Columns that a text takes in a fixed-width font: two for wide characters."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def truncated_names(names: Sequence[str], width: int) -> list[str]:
    """Each name on one line, in at most `width` columns, no two alike.

    A long name is cut in the middle. Where two names become alike, the beginning that they share is cut
    instead. Where they are still alike, they get the number of their variable, or the next one that is free.

    Args:
        names: of all variables of a posterior.
        width: columns of a fixed-width font; a dozen or more.
    """
    texts = [" ".join(str(name).split()) for name in names]
    truncated = [_without_middle(text, width) for text in texts]
    for _ in texts:  # a cut can make a name like one of another group, so several rounds may be needed
        for group in _alike(truncated):
            shared = _num_shared([texts[i] for i in group])
            for i in group:
                truncated[i] = _from_difference(texts[i], shared, width)
    taken = set(truncated)
    for i in (i for group in _alike(truncated) for i in group):
        numbered = (_numbered(texts[i], number, width) for number in count(i + 1, len(texts)))
        truncated[i] = next(name for name in numbered if name not in taken)
        taken.add(truncated[i])
    return truncated


def _alike(truncated: Sequence[str]) -> list[list[int]]:
    """The positions of each text that occurs more than once."""
    places: dict[str, list[int]] = {}
    for i, name in enumerate(truncated):
        places.setdefault(name, []).append(i)
    return [group for group in places.values() if len(group) > 1]


def _num_shared(texts: Sequence[str]) -> int:
    """Length of the beginning that all have in common."""
    return sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, zip(*texts, strict=False)))


def _without_middle(text: str, width: int) -> str:
    if num_columns(text) <= width:
        return text
    return f"{_start(text, width // 2)}…{_end(text, (width - 1) // 2)}"


def _from_difference(text: str, shared: int, width: int) -> str:
    """The beginning, a gap, and what follows the first `shared` characters."""
    beginning = _start(text, width // 3)
    if num_columns(text) <= width or len(beginning) >= shared:
        return _without_end(text, width)
    return f"{beginning}…{_without_end(text[shared:], width - num_columns(beginning) - 1)}"


def _numbered(text: str, number: int, width: int) -> str:
    return f"{_start(text, width - 1 - len(str(number)))}…{number}"


def _without_end(text: str, width: int) -> str:
    return text if num_columns(text) <= width else f"{_start(text, width - 1)}…"


def _start(text: str, width: int) -> str:
    """The longest beginning in `width` columns."""
    while num_columns(text) > width:
        text = text[: max(len(text) - (num_columns(text) - width + 1) // 2, 0)]
    return text


def _end(text: str, width: int) -> str:
    """The longest end in `width` columns."""
    return _start(text[::-1], width)[::-1]
