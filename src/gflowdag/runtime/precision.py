"""Double precision where scores need it, without touching the user's JAX settings.

Scores are sums of thousands of nats and need float64; JAX gives it only under a process-wide or scoped
switch. Every estimator enters the scope once, at its own boundary, and lets only NumPy arrays out.
Inside, every network array and every random draw names its dtype, so that the answer does not depend on
the scope that the caller happened to be in.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def double_precision(function: Callable[P, T]) -> Callable[P, T]:
    """Run `function` with 64-bit JAX types enabled, in whichever thread it is called."""

    @functools.wraps(function)
    def scoped(*args: P.args, **kwargs: P.kwargs) -> T:
        with double_precision_scope():
            return function(*args, **kwargs)

    return scoped


def double_precision_scope() -> AbstractContextManager[None]:
    """A block with 64-bit JAX types."""
    import jax

    return jax.enable_x64(True)
