"""Loops compiled by numba, with the types that they were written with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
T = TypeVar("T")


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Compile at the first call, keep the machine code on disk, and let other threads run meanwhile.

    numba tells type checkers nothing about what it returns; this says that it is the same function.
    """
    njit: Any = cast(Any, numba).njit
    return njit(cache=True, nogil=True)(function)


def compiled_sum(function: Callable[P, T]) -> Callable[P, T]:
    """`compiled`, where the terms of a sum may be added in any order: several at a time, so faster."""
    njit: Any = cast(Any, numba).njit
    return njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})(function)
