"""Ctrl-C and SIGTERM: held back while a file is written, never lost, and the end of the program."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn


class Terminated(KeyboardInterrupt):
    """SIGTERM, by which Slurm, Docker and systemd end a program: treated as Ctrl-C in all but its name."""

    def __str__(self) -> str:
        return "SIGTERM"


def end_in_order_at_sigterm() -> None:
    """Have SIGTERM raise `Terminated`, for a program that owns its process; not where it is ignored."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _raise_terminated)


def _raise_terminated(*_: Any) -> NoReturn:
    raise Terminated


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C and SIGTERM take effect when the block ends.

    In the middle of an archive they would become an error of the archive, or be swallowed by its destructor.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    held: list[tuple[int, Any]] = []
    for number in handlers:
        signal.signal(number, lambda *arguments: held.append(arguments))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if held:
            number, frame = held[-1]
            handlers[signal.Signals(number)](number, frame)


def interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The Ctrl-C or SIGTERM that is behind an exit or an error: typer turns it into one before we see it."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error


@contextmanager
def noted_at_interrupt(hint: str) -> Iterator[None]:
    """Ctrl-C or SIGTERM in the block carries a note of what the user can do then."""
    try:
        yield
    except BaseException as error:
        if (interrupt := interrupt_behind(error)) is not None:
            interrupt.add_note(hint)
        raise


def repeat_lost_interrupts() -> None:
    """Send Ctrl-C or SIGTERM again where Python has swallowed it; for a program that owns its process.

    What is raised in a destructor or by the garbage collector's callbacks, of which JAX has one, is told to
    `sys.unraisablehook` and forgotten.
    """
    tell = sys.unraisablehook

    def repeat_or_tell(lost: Any) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            # A moment later, when the main thread is out of there.
            number = signal.SIGTERM if issubclass(lost.exc_type, Terminated) else signal.SIGINT
            threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
        else:
            tell(lost)

    sys.unraisablehook = repeat_or_tell


def end_at_once(code: int) -> NoReturn:
    """End the process without Python's own way out, unless there are workers to be stopped on it.

    On that way, half of the fits that were interrupted in their first seconds, before JAX had compiled them,
    crashed when the pieces were taken down.
    """
    loky = sys.modules.get("joblib.externals.loky.reusable_executor")
    if loky is not None and loky._executor is not None:
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # a full disk behind it
            stream.flush()
    os._exit(code)
