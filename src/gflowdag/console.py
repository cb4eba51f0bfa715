"""How results look on a terminal."""

from __future__ import annotations

import pandas as pd
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gflowdag.digest import MAX_ROWS, digest, figure
from gflowdag.posterior import Posterior

_COLOURS = {"exact": "green", "trusted": "green", "not converged": "red", "unverified": "yellow"}
# Columns of a comparison in the order in which a narrow terminal does without them: the verdict sums up the
# first ones.
_DISPENSABLE = (
    "pareto_k",
    "ess",
    "r_hat",
    "edges",
    "auroc",
    "log_evidence",
    "shd",
    "max_error",
    "seconds",
)


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


def print_comparison(table: pd.DataFrame, console: Console, *, rest: str) -> None:
    """`Comparison.table()`, whole figures only: columns that do not fit are left out, least important first.

    Args:
        table: to be printed.
        console: where.
        rest: where the reader finds the columns that are left out.
    """
    gap = 1 if console.width < 100 else 2
    columns = {
        name: [figure(value, name) for value in table[name]]
        for name in table.columns
        if name not in ("mean_error", "failure")
    }
    columns = {"method": [str(name) for name in table.index], **columns}
    titles = {name: name.replace("_", " ") for name in columns}
    left_out = []
    if _width(columns, titles, gap) > console.width:
        titles = {name: title.replace(" ", "\n") for name, title in titles.items()}
    for name in _DISPENSABLE:
        if _width(columns, titles, gap) > console.width and columns.pop(name, None) is not None:
            left_out.append(name.replace("_", " "))
    printed = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for name in columns:
        justify = "left" if name in ("method", "verdict") else "right"
        printed.add_column(titles[name], justify=justify, no_wrap=True)
    for row in zip(*columns.values(), strict=True):
        printed.add_row(*map(Text, row))
    console.print(printed)
    if left_out:
        console.print(f"For want of width without {', '.join(left_out)}: {rest} has all.", style="dim")


def _width(columns: dict[str, list[str]], titles: dict[str, str], gap: int) -> int:
    """Of a table whose cells stay whole; a title may have several lines."""
    widths = [max(map(cell_len, (*cells, *titles[name].split("\n")))) for name, cells in columns.items()]
    return sum(widths) + gap * (len(widths) - 1)
