"""Threads over kernels that release the interpreter's lock; nothing here that a fork could break."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from contextvars import ContextVar

from gflowdag.runtime.progress import Progress, silent

_alone: ContextVar[bool] = ContextVar("alone", default=False)


@contextmanager
def one_thread() -> Iterator[None]:
    """Here `map_threads` runs in the caller's thread: for tasks shorter than it takes to start threads."""
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


def num_cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_threads(function: Callable[[int], None], items: Sequence[int], progress: Progress = silent) -> None:
    """Call `function` on each item, for what it writes; the first error is raised here."""
    if _alone.get():
        for done, item in enumerate(items, start=1):
            function(item)
            progress(done, len(items))
        return
    with ThreadPoolExecutor(num_cores()) as pool:
        futures = [pool.submit(function, item) for item in items]
        for done, future in enumerate(as_completed(futures), start=1):
            future.result()
            progress(done, len(items))
