"""How results look on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gflowdag.digest import MAX_ROWS, digest
from gflowdag.posterior import Posterior

_COLOURS = {"exact": "green", "trusted": "green", "not converged": "red", "unverified": "yellow"}


def print_posterior(posterior: Posterior, console: Console, *, max_rows: int = MAX_ROWS) -> None:
    """The short answer: how far to trust it, the evidence, and the likely edges."""
    answer = digest(posterior, rest="the report", max_rows=max_rows)
    colour = _COLOURS.get(answer.verdict, "yellow")
    console.print(Text.assemble((answer.verdict.capitalize(), f"bold {colour}"), f" · {answer.size}"))
    console.print(Text(answer.explanation))
    for note in answer.notes:
        console.print(Text(note, style="dim"))
    if answer.evidence:
        console.print(answer.evidence)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in answer.titles:
        table.add_column(
            title, overflow="ellipsis", no_wrap=True, justify="left" if title == "edge" else "right"
        )
    for row in answer.rows:
        table.add_row(*map(Text, row))  # a name is text, never markup
    console.print()
    console.print(table)
    console.print()
    console.print(Text(answer.closing, style="dim"))
