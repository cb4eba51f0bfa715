"""Limits on the parameters of an estimator, declared beside the parameter and checked by `fit`.

    num_steps: int = whole(3000)
    learning_rate: float = positive(0.005)

None is allowed where it is the default. `keyword_parameters` makes the class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, TypeVar, dataclass_transform

from gflowdag.errors import GFlowDAGError
from gflowdag.runtime.keywords import named_parameters
from gflowdag.runtime.place import option

MOST = 10**9  # of a whole number: steps, draws or sizes beyond it are a slip, and overflow compiled code
_LIMIT = "limit"  # key of a field's metadata

Limit = Callable[[Any], str | None]
"""From a value to what it must be, or None if it is."""


T = TypeVar("T")


@dataclass_transform(kw_only_default=True, eq_default=False)
def keyword_parameters(cls: type[T]) -> type[T]:
    """A dataclass whose parameters are keywords; a misspelt one is answered with the name that was meant."""
    return named_parameters(dataclass(kw_only=True, eq=False, repr=False)(cls))


def whole(default: int | None, *, least: int = 1) -> Any:
    """A whole number, `least` or more, and at most `MOST`."""

    def limit(value: Any) -> str | None:
        if isinstance(value, Integral) and least <= int(value) <= MOST:
            return None
        if isinstance(value, Integral) and int(value) > MOST:
            return f"at most {MOST}, got a larger one"
        return f"{least} or more, got {value!r} (whole numbers only)"

    return _limited(default, limit)


def positive(default: float | None, *, zero: bool = False) -> Any:
    """A finite positive number; `zero` is allowed where it means something."""

    def limit(value: Any) -> str | None:
        number = float(value) if isinstance(value, Real) else math.nan
        if 0 < number < math.inf or (zero and number == 0):
            return None
        return f"{'0 or a positive number' if zero else 'a positive number'}, got {value!r}"

    return _limited(default, limit)


def fraction(default: float, *, zero: bool = False) -> Any:
    """A number between 0 and 1, both excluded; `zero` is allowed where it means something."""

    def limit(value: Any) -> str | None:
        number = float(value) if isinstance(value, Real) else math.nan
        if 0 < number < 1 or (zero and number == 0):
            return None
        return f"{'0 or a number' if zero else 'a number'} between 0 and 1, got {value!r}"

    return _limited(default, limit)


def one_of(default: str | None, choices: Iterable[str]) -> Any:
    """One of a few words."""
    choices = list(choices)

    def limit(value: Any) -> str | None:
        if isinstance(value, str) and value in choices:
            return None
        known = ", ".join(f'"{choice}"' for choice in choices[:-1])
        return f'{known} or "{choices[-1]}", got {value!r}'

    return _limited(default, limit)


def check_parameters(estimator: Any) -> None:
    """Refuse the first parameter of a dataclass that is outside of its limits."""
    for parameter in fields(estimator):
        limit: Limit | None = parameter.metadata.get(_LIMIT)
        value = getattr(estimator, parameter.name)
        if limit is None or (value is None and parameter.default is None):
            continue
        if (sentence := limit(value)) is not None:
            raise GFlowDAGError(f"{option(parameter.name)} must be {sentence}")


def _limited(default: Any, limit: Limit) -> Any:
    return field(default=default, metadata={_LIMIT: limit})
