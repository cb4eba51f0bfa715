"""Commands around data: simulate a table, list the data sets that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gflowdag.cli.options import JSON, Seed, make_console, print_json


def simulate(
    to: Annotated[
        Path, typer.Argument(help="CSV file to write; the true edges go to NAME.truth.csv beside it.")
    ],
    kind: Annotated[str, typer.Option(help="linear-gaussian or discrete.")] = "linear-gaussian",
    variables: Annotated[int, typer.Option(min=2, help="Number of variables.")] = 10,
    rows: Annotated[int, typer.Option(min=2, help="Number of rows.")] = 100,
    edges_per_node: Annotated[float, typer.Option(min=0, help="Expected edges per variable.")] = 1.0,
    graph: Annotated[str, typer.Option(help="erdos-renyi or scale-free.")] = "erdos-renyi",
    seed: Seed = 0,
) -> None:
    """Simulate a table from a random network, with its true graph."""
    from gflowdag.cli import commands

    for path in commands.run_simulation(to, kind, variables, rows, edges_per_node, graph, seed):
        print(path)


def datasets(json: JSON = False) -> None:
    """List the data sets that can be named instead of a file."""
    from gflowdag.data import list_datasets

    rows = list_datasets().to_dict(orient="records")
    if json:
        print_json(rows)
        return
    from rich.table import Table as Grid

    grid = Grid(box=None, pad_edge=False, show_header=False)
    for row in rows:
        source = f" [dim]({row['source']})[/dim]" if row["source"] else ""
        grid.add_row(f"[bold]{row['name']}[/bold]", row["description"] + source)
    make_console().print(grid)
