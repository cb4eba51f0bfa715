"""Errors of host code that compiled loops call, handed to the caller as they were raised.

JAX makes an error of its own out of whatever a callback raises: only the text of the original is left in it,
behind a traceback. Here the original is kept aside under a key, and the key is what JAX gets to see.
"""

from __future__ import annotations

import functools
import logging
import re
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_MOST_KEPT = 16  # a batch may fail in several places at once, and only one of them is reported
_raised: dict[str, Exception] = {}


class _HostCallError(Exception):
    """Stands for the error that is kept under the key `str(self)`."""


def host_call(function: Callable[P, T]) -> Callable[P, T]:
    """A function for `jax.pure_callback` whose errors `host_errors` raises again."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            key = f"host-call-{uuid.uuid4().hex}"
            while len(_raised) >= _MOST_KEPT:
                _raised.pop(next(iter(_raised)), None)
            _raised[key] = error
            raise _HostCallError(key) from None

    return call


@contextmanager
def host_errors() -> Iterator[None]:
    """Raise what a `host_call` raised inside of this, in place of JAX's error about it."""
    try:
        yield
    except Exception as error:
        jax = sys.modules.get("jax")
        if jax is None or not isinstance(error, jax.errors.JaxRuntimeError):
            raise
        found = re.search(r"host-call-[0-9a-f]{32}", str(error))
        original = _raised.pop(found[0], None) if found else None
        if original is None:
            raise
        raise original from None


def _is_not_ours(record: logging.LogRecord) -> bool:
    """Whether JAX logs another error than one that `host_errors` reports."""
    return not (record.exc_info and isinstance(record.exc_info[1], _HostCallError))


logging.getLogger("jax._src.callback").addFilter(_is_not_ours)
