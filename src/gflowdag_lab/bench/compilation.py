"""Seconds that this process has spent compiling, by JAX and by numba, counted as they go by."""

from __future__ import annotations

import time
from typing import Any

import jax
from numba.core import event as numba_event

_JAX_EVENTS = "/jax/core/compile/"  # tracing, lowering, and XLA


class _Clock(numba_event.Listener):
    """Keeps the stretches of time that were spent compiling; one that lies within another counts once."""

    def __init__(self) -> None:
        self.stretches: list[tuple[float, float]] = []  # begin and end, disjoint and in order
        self._begun: list[float] = []

    def add(self, begin: float, end: float) -> None:
        while self.stretches and self.stretches[-1][0] >= begin:
            self.stretches.pop()
        self.stretches.append((begin, end))

    def of_jax(self, event: str, duration_secs: float, **_: Any) -> None:
        if event.startswith(_JAX_EVENTS):
            now = time.perf_counter()
            self.add(now - duration_secs, now)

    def on_start(self, event: numba_event.Event) -> None:
        self._begun.append(time.perf_counter())

    def on_end(self, event: numba_event.Event) -> None:
        self.add(self._begun.pop(), time.perf_counter())


_CLOCK = _Clock()
jax.monitoring.register_event_duration_secs_listener(_CLOCK.of_jax)
numba_event.register("numba:compile", _CLOCK)


def compilation_seconds() -> float:
    """The sum so far."""
    return sum(end - begin for begin, end in _CLOCK.stretches)
