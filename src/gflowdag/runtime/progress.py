"""Progress as data: a method calls `progress(done, total, **values)`; who listens decides how it looks."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress

_NOTEBOOK_SECONDS = 0.5  # between two updates of a line in a notebook


class Progress(Protocol):
    """What every long computation reports to."""

    def __call__(self, done: float, total: float, /, **values: float) -> None:
        """Say that `done` of `total` units are finished, with the values of the moment (loss=0.3)."""
        ...


def silent(done: float, total: float, /, **values: float) -> None:
    """Listen to nothing."""


def begin_phase(progress: Progress, name: str) -> None:
    """Announce the phase `name` to a listener that shows phases."""
    if isinstance(progress, _Shown):
        progress.begin(name)


@contextmanager
def progress_bar(title: str, *, enabled: bool = True) -> Iterator[Progress]:
    """A progress bar on stderr or in a notebook; nothing where stderr is a file or a pipe."""
    if not enabled:
        yield silent
        return
    from rich.console import Console

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield silent
    elif console.is_jupyter and importlib.util.find_spec("ipywidgets") is None:
        line = _NotebookLine(title)
        try:
            yield line
        finally:
            line.end()
    else:
        with _rich_progress(console) as bar:
            yield _Bar(title, bar)


class _Shown:
    """A listener with a title and the name of the phase behind it."""

    def __init__(self, title: str) -> None:
        self.title = self.label = title

    def begin(self, phase: str) -> None:
        self.label = f"{self.title} · {phase}"

    def __call__(self, done: float, total: float, /, **values: float) -> None:
        raise NotImplementedError


class _Bar(_Shown):
    """A bar with the latest values and the time left behind it; each phase has its own."""

    def __init__(self, title: str, bar: RichProgress) -> None:
        super().__init__(title)
        self.bar = bar
        self.task = bar.add_task(title, total=None, values="")

    def begin(self, phase: str) -> None:
        super().begin(phase)
        self.bar.remove_task(self.task)
        self.task = self.bar.add_task(self.label, total=None, values="")

    def __call__(self, done: float, total: float, /, **values: float) -> None:
        self.bar.update(self.task, completed=done, total=total, values=_text(values))


class _NotebookLine(_Shown):
    """A line that is written over, for notebooks without widgets."""

    def __init__(self, title: str) -> None:
        from IPython.display import display  # pyright: ignore[reportMissingImports]

        super().__init__(title)
        self.started = self.last = time.monotonic()
        self.handle: Any = display(_plain(title), raw=True, display_id=True)

    def begin(self, phase: str) -> None:
        super().begin(phase)
        self._show(self.label, self._elapsed())

    def __call__(self, done: float, total: float, /, **values: float) -> None:
        if time.monotonic() - self.last >= _NOTEBOOK_SECONDS:
            self.last = time.monotonic()
            self._show(self.label, f"{done / total:.0%}" if total else "", self._elapsed(), _text(values))

    def end(self) -> None:
        self._show(self.title, self._elapsed())

    def _elapsed(self) -> str:
        return f"{time.monotonic() - self.started:.0f} s"

    def _show(self, *parts: str) -> None:
        self.handle.update(_plain("  ".join(filter(None, parts))), raw=True)


def _rich_progress(console: Console) -> RichProgress:
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("[dim]{task.fields[values]}"),
        console=console,
        transient=True,
    )


def _plain(text: str) -> dict[str, str]:
    return {"text/plain": text}


def _text(values: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in values.items())
