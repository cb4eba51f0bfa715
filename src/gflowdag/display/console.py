"""How results look on a terminal."""

from __future__ import annotations

import pandas as pd
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gflowdag.display.digest import MAX_ROWS, digest, value_text
from gflowdag.posterior.posterior import Posterior

_COLOURS = {"good": "green", "bad": "red", "unsure": "yellow"}
# Columns in the order in which a narrow terminal does without them. In a comparison the verdict sums up the
# first ones.
_DISPENSABLE = (
    "pareto k",
    "ess",
    "r hat",
    "edges",
    "auroc",
    "log evidence",
    "shd",
    "max error",
    "seconds",
    "± error",
    "absent",
    "reverse",
)
_LEFT = ("method", "verdict", "edge")
_BESIDE_NAMES = 42  # columns of the arrow, the four numbers of an edge and the gaps
_LEAST_NAME = 12


def print_posterior(posterior: Posterior, console: Console, *, max_rows: int = MAX_ROWS) -> None:
    """The short answer: how far to trust it, the evidence, and the likely edges."""
    width = max((console.width - _BESIDE_NAMES) // 2, _LEAST_NAME)
    answer = digest(
        posterior, rest="the report", language="command line", max_rows=max_rows, name_width=width
    )
    console.print(Text(answer.size))
    for line in answer.trust:
        colour = _COLOURS[line.colour]
        console.print(
            Text.assemble(f"{line.aspect:<10}", (line.state, f"bold {colour}"), f". {line.explanation}")
        )
    for sentence in answer.objections:
        console.print(Padding(Text(f"- {sentence}"), (0, 0, 0, 2)))
    for note in answer.notes:
        console.print(Text(note, style="dim"))
    if answer.evidence:
        console.print(answer.evidence)
    columns = {title: [row[k] for row in answer.rows] for k, title in enumerate(answer.titles)}
    console.print()
    _print_columns(columns, console, gap=2, rest="the report")
    console.print()
    console.print(Text(answer.closing, style="dim"))


def print_comparison(table: pd.DataFrame, console: Console, *, rest: str) -> None:
    """`Comparison.table()`, whole numbers only: columns that do not fit are left out, least important first.

    Args:
        table: to be printed.
        console: where.
        rest: where the reader finds the columns that are left out.
    """
    columns = {
        name.replace("_", " "): [value_text(value, name) for value in table[name]]
        for name in table.columns
        if name not in ("mean_error", "failure")
    }
    columns = {"method": [str(name) for name in table.index], **columns}
    _print_columns(columns, console, gap=1 if console.width < 100 else 2, rest=rest)


def _print_columns(columns: dict[str, list[str]], console: Console, *, gap: int, rest: str) -> None:
    """A table by its titles; columns for which there is no room are left out, and at last the first wraps."""
    titles = {name: name for name in columns}
    if _width(columns, titles, gap) > console.width:
        titles = {name: name.replace(" ", "\n") for name in columns}
    left_out = []
    for name in _DISPENSABLE:
        if _width(columns, titles, gap) > console.width and columns.pop(name, None) is not None:
            left_out.append(name)
    printed = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for index, name in enumerate(columns):
        printed.add_column(
            titles[name], justify="left" if name in _LEFT else "right", no_wrap=index > 0, overflow="fold"
        )
    for row in zip(*columns.values(), strict=True):
        printed.add_row(*map(Text, row))  # a name is text, never markup
    console.print(printed)
    if left_out:
        console.print(
            f"The terminal is too narrow for {', '.join(left_out)}: {rest} has all columns.",
            style="dim",
        )


def _width(columns: dict[str, list[str]], titles: dict[str, str], gap: int) -> int:
    """Of a table whose cells stay whole; a title may have several lines."""
    widths = [max(map(cell_len, (*cells, *titles[name].split("\n")))) for name, cells in columns.items()]
    return sum(widths) + gap * (len(widths) - 1)
