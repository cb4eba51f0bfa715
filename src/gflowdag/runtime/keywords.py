"""Misspelt keyword arguments in public functions: a sentence with the name that was meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

from gflowdag.errors import OptionError
from gflowdag.runtime.messages import instead

C = TypeVar("C", bound=Callable[..., Any])


def check_keywords(name: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse the first of the names `given` that is not `known`; `name` has them as parameters."""
    known = list(known)
    for keyword in given:
        if keyword not in known:
            others = instead(keyword, known) if known else "it has none"
            raise OptionError(f"{name} has no parameter {keyword!r}: {others}")


def named_parameters(door: C) -> C:
    """A function or a class that answers a misspelt keyword with the name that was meant."""
    made: Any = door
    takes = made.__init__ if isinstance(made, type) else made
    parameters = inspect.signature(takes).parameters.values()
    known = [each.name for each in parameters if each.kind is not each.VAR_POSITIONAL and each.name != "self"]

    @wraps(takes)
    def checked(*args: Any, **given: Any) -> Any:
        check_keywords(made.__name__, given, known)
        return takes(*args, **given)

    if not isinstance(made, type):
        return checked  # pyright: ignore[reportReturnType]
    made.__init__ = checked  # pyright: ignore[reportAttributeAccessIssue]
    return door
