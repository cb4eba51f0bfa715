"""How results look on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from gflowdag.posterior import Posterior

_COLOURS = {"exact": "green", "trusted": "green", "not converged": "red", "unverified": "yellow"}
MAX_ROWS = 20


def print_posterior(posterior: Posterior, console: Console, *, max_rows: int = MAX_ROWS) -> None:
    """The short answer: how it was obtained, how far to trust it, the evidence and the likely edges."""
    facts = posterior.diagnostics()
    verdict = str(facts["verdict"])
    line = Text.assemble((verdict, f"bold {_COLOURS.get(verdict, 'yellow')}"))
    line.append(f" · by {posterior.method} · " if posterior.method != verdict else " · ")
    line.append(f"{posterior.num_variables} variables, {posterior.num_samples} sampled graphs")
    console.print(line)
    console.print(Text(str(facts["explanation"])))
    if "chosen" in facts:
        console.print(Text(f"Chosen: {facts['chosen']}.", style="dim"))
    for note in facts.get("notes", ()):
        console.print(Text(note, style="dim"))
    if posterior.log_evidence is not None:
        error = posterior.log_evidence_error or 0.0
        spread = f" ± {error:.3f}" if error else ""
        console.print(f"log evidence {posterior.log_evidence:.4f}{spread}")
    console.print(edge_table(posterior, max_rows))
    p = posterior.edge_probabilities().to_numpy()
    console.print(
        f"{p.sum():.2f} edges expected; {(p > 0.5).sum()} with probability above one half.", style="dim"
    )


def edge_table(posterior: Posterior, max_rows: int = MAX_ROWS) -> Table:
    """The most probable edges as a rich table."""
    rows = posterior.edge_table()
    shown = rows[rows.probability >= 0.01].head(max_rows)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("edge", "probability", "reverse", "absent", "± error"):
        table.add_column(title, justify="left" if title == "edge" else "right")
    for row in shown.itertuples():
        table.add_row(
            f"{escape(str(row.source))} → {escape(str(row.target))}",
            f"{row.probability:.3f}",
            f"{row.reverse:.3f}",
            f"{row.absent:.3f}",
            "exact" if row.error == 0 else f"{row.error:.3f}",
        )
    hidden = len(rows) - len(shown)
    if hidden:
        table.caption = f"{hidden} less probable pairs are in the report and in `gflowdag export`"
        table.caption_justify = "left"
    return table
