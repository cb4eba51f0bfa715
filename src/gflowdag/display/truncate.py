"""Names cut to a width, so that those of one posterior stay different from each other."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import count, takewhile


def num_columns(text: str) -> int:
    """Columns that a text takes in a fixed-width font: two for wide characters."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def short_names(names: Sequence[str], width: int) -> list[str]:
    """Each name on one line and in `width` columns at most, no two alike.

    A long name loses its middle. Names that are then alike lose what they have in common instead, and those
    that still are get the number of their variable, or a higher one where that is a name of its own.

    Args:
        names: of all variables of a posterior.
        width: columns of a fixed-width font; a dozen or more.
    """
    texts = [" ".join(str(name).split()) for name in names]
    labels = [_without_middle(text, width) for text in texts]
    for _ in texts:  # each round tells a name of every group apart, or never will
        for group in _alike(labels):
            shared = _num_shared([texts[i] for i in group])
            for i in group:
                labels[i] = _from_difference(texts[i], shared, width)
    taken = set(labels)
    for i in (i for group in _alike(labels) for i in group):
        numbered = (_numbered(texts[i], number, width) for number in count(i + 1, len(texts)))
        labels[i] = next(label for label in numbered if label not in taken)
        taken.add(labels[i])
    return labels


def _alike(labels: Sequence[str]) -> list[list[int]]:
    """The positions of each label that occurs more than once."""
    places: dict[str, list[int]] = {}
    for i, label in enumerate(labels):
        places.setdefault(label, []).append(i)
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
