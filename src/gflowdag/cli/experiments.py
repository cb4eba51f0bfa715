"""The next experiment, as the command line prints it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from gflowdag.runtime.messages import one_line

if TYPE_CHECKING:
    from rich.console import Console

    from gflowdag.posterior.experiments import NextExperiments


def print_experiments(found: NextExperiments, console: Console) -> None:
    """A sentence, then every experiment with its expected gain."""
    console.print(Text(one_line(found.summary())))
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("set", overflow="fold")
    if any(one.measured is not None for one in found.experiments):
        table.columns[0].header = "set, or measure"
    for title in ("gain, nats", "± error", "rows"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in found.experiments:
        if one.measured is not None:
            name = Text(one_line(one.name))
        else:
            name = Text("nothing", style="dim") if one.target is None else Text(one_line(one.target))
        table.add_row(name, f"{one.gain:.3f}", f"{one.error:.3f}", f"{one.num_rows:,}")
    console.print(table)
