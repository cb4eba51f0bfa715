"""Answers about finished runs, as the command line prints them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.table import Table
from rich.text import Text

from gflowdag.posterior import runs
from gflowdag.posterior.difference import Difference, difference
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.messages import one_line

if TYPE_CHECKING:
    from rich.console import Console


def difference_of_runs(first: Path, second: Path) -> Difference:
    """The difference of two runs, with what they were asked where both are run folders."""
    posteriors = [Posterior.load(path) for path in (first, second)]
    asked = None
    if all((path / runs.CONFIG).exists() for path in (first, second)):
        asked = runs.differing_settings(runs.read_config(first), runs.read_config(second))
    return difference(*posteriors, asked=asked)


def difference_as_json(found: Difference) -> dict[str, Any]:
    """All of a difference, for a machine."""
    return {
        "summary": found.summary(),
        "edges": found.edges.to_dict(orient="records"),
        "asked": found.asked.to_dict(orient="records"),
        "only_first": found.only_first,
        "only_second": found.only_second,
        "unvouched": found.unvouched,
    }


def print_difference(found: Difference, console: Console, rows: int) -> None:
    """What was asked otherwise, then the edges that differ by more than noise."""
    for setting, first, second in found.asked.itertuples(index=False, name=None):
        what = "table" if setting == "data_sha256" else setting
        console.print(Text(one_line(f"{what}: {runs.brief(first)} → {runs.brief(second)}")))
    console.print(Text(one_line(found.summary())))
    changed = cast(Any, found.edges[found.edges["more_than_noise"]])
    if not len(changed):
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("edge", overflow="fold")
    for title in ("first", "second", "difference", "± error"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in changed.head(rows).to_dict(orient="records"):
        table.add_row(
            Text(one_line(f"{row['source']} → {row['target']}")),
            f"{row['first']:.3f}",
            f"{row['second']:.3f}",
            f"{row['difference']:+.3f}",
            f"{row['error']:.3f}",
        )
    console.print(table)
    if len(changed) > rows:
        console.print(f"{len(changed) - rows:,} more: --rows, or --json for all.", style="dim")
