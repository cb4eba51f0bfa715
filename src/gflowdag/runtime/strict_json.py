"""JSON as its standard has it: no NaN, no Infinity, so that every parser reads what we write."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

_INFINITIES = {"Infinity": math.inf, "-Infinity": -math.inf}


def dumps(content: Any, *, indent: int | None = None, compact: bool = False) -> str:
    """`content` as JSON. NaN becomes null, an infinity the text "Infinity" or "-Infinity".

    Args:
        content: what `standard` takes.
        indent: spaces of each level; by default all is one line.
        compact: leave out the blanks after commas and colons.
    """
    separators = (",", ":") if compact else None
    return json.dumps(
        standard(content), indent=indent, ensure_ascii=False, allow_nan=False, separators=separators
    )


def standard(value: Any) -> Any:
    """The value as dictionaries, lists, text, finite numbers, booleans and None.

    Mappings, sequences, paths, NumPy arrays and scalars are taken; anything else is a `TypeError`.
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return None if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if isinstance(value, Mapping):
        return {str(name): standard(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [standard(part) for part in value]
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def with_infinities(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of values that `standard` wrote, with numbers again for the words "Infinity" and "-Infinity".

    What was NaN stays None: tables of pandas take both for a missing value.
    """
    return {
        name: _INFINITIES.get(value, value) if isinstance(value, str) else value
        for name, value in row.items()
    }


def read_number(value: Any) -> float:
    """The number that `standard` wrote: a number, null, or the word for an infinity.

    Raises:
        ValueError: anything else, or a whole number beyond 64 bits.
    """
    if value is None:
        return math.nan
    is_whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    if is_whole or isinstance(value, float) or value in _INFINITIES:
        return float(value)
    raise ValueError(f"{value!r} is not a number")
