"""Progress as data: a method calls `progress(done, total, **figures)`; who listens decides how it looks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """What every long computation reports to."""

    def __call__(self, done: float, total: float, /, **figures: float) -> None:
        """Say that `done` of `total` units are finished, with the figures of the moment (loss=0.3)."""
        ...


def silent(done: float, total: float, /, **figures: float) -> None:
    """Listen to nothing."""


@contextmanager
def progress_bar(title: str, *, enabled: bool = True) -> Iterator[Progress]:
    """A rich progress bar on stderr, with the latest figures and the time left behind it."""
    if not enabled:
        yield silent
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("[dim]{task.fields[figures]}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, figures="")

        def show(done: float, total: float, /, **figures: float) -> None:
            text = "  ".join(f"{name} {value:.4g}" for name, value in figures.items())
            bar.update(task, completed=done, total=total, figures=text)

        yield show
