"""TOML files of the user, with an error that says what is wrong with them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

from gflowdag.data.contents import read_text
from gflowdag.errors import GFlowDAGError

_BEYOND = 2**63  # the first whole number that 64 bits do not hold


def read_toml(path: str | Path, error_class: type[GFlowDAGError]) -> dict[str, Any]:
    """The content of a TOML file; `error_class` is raised where it is none."""
    text = read_text(Path(path), error_class)
    try:
        content = tomllib.loads(text)
        has_long_number = _holds_long_number(content)
    except (tomllib.TOMLDecodeError, RecursionError) as error:  # the latter: deep nesting
        raise error_class(f"{path} is not a TOML file: {error}.") from error
    except ValueError:  # Python reads no number of thousands of digits
        has_long_number, content = True, {}
    if has_long_number:
        raise error_class(
            f"{path} holds a whole number of more than 64 bits, which TOML does not allow. "
            "Write a smaller one."
        )
    return content


def is_too_long(value: Any) -> bool:
    """Whether a value is a whole number beyond 64 bits."""
    return isinstance(value, Integral) and not -_BEYOND <= int(value) < _BEYOND


def _holds_long_number(value: Any) -> bool:
    """Whether a number somewhere in the content of a file is beyond 64 bits."""
    if isinstance(value, Mapping | list):
        return any(map(_holds_long_number, value.values() if isinstance(value, Mapping) else value))
    return is_too_long(value)
