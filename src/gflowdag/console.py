"""How results look on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gflowdag.posterior import Posterior

_COLOURS = {"exact": "green", "trusted": "green", "not converged": "red", "unverified": "yellow"}
MAX_ROWS = 20
_LEAST_PROBABILITY = 0.01
_NAME_WIDTH = 24  # columns of a variable's name, so that a row fits into 80


def print_posterior(posterior: Posterior, console: Console, *, max_rows: int = MAX_ROWS) -> None:
    """The short answer: how far to trust it, the evidence, and the likely edges."""
    facts = posterior.diagnostics()
    verdict = str(facts["verdict"])
    line = Text.assemble((verdict.capitalize(), f"bold {_COLOURS.get(verdict, 'yellow')}"))
    line.append("" if posterior.method == verdict else f" · {posterior.method}")
    line.append(f" · {posterior.num_variables} variables · {posterior.num_samples:,} graphs drawn")
    console.print(line)
    console.print(Text(str(facts["explanation"])))
    for note in _notes(facts):
        console.print(Text(note, style="dim"))
    if posterior.log_evidence is not None:
        error = posterior.log_evidence_error
        spread = f" ± {error:.2g}" if error else ""
        console.print(f"Log evidence {posterior.log_evidence:.4f}{spread}")
    console.print()
    console.print(edge_table(posterior, max_rows))
    console.print()
    console.print(Text(_summary(posterior, max_rows), style="dim"))


def edge_table(posterior: Posterior, max_rows: int = MAX_ROWS) -> Table:
    """The most probable edges as a rich table."""
    exact = posterior.diagnostics()["verdict"] == "exact"
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("edge", overflow="ellipsis", no_wrap=True)
    for title in ("probability", "reverse", "absent", *(() if exact else ("± error",))):
        table.add_column(title, justify="right", no_wrap=True)
    for row in _likely_pairs(posterior, max_rows):
        figures = [row["probability"], row["reverse"], row["absent"], *(() if exact else (row["error"],))]
        table.add_row(
            Text(f"{_short(row['source'])} → {_short(row['target'])}"), *(f"{value:.3f}" for value in figures)
        )
    return table


def _likely_pairs(posterior: Posterior, max_rows: int) -> list[dict]:
    rows = posterior.edge_table().head(max_rows).to_dict(orient="records")
    return [row for row in rows if row["probability"] >= _LEAST_PROBABILITY]


def _summary(posterior: Posterior, max_rows: int) -> str:
    p = posterior.edge_probabilities().to_numpy()
    likely = int((p > 0.5 + 1e-9).sum())  # rounding must not decide between two directions of ½ each
    hidden = p.shape[0] * (p.shape[0] - 1) // 2 - len(_likely_pairs(posterior, max_rows))
    sentence = f"{p.sum():.2f} edges expected; {likely} more likely than not."
    if hidden:
        sentence += f" {hidden} less probable {'pair is' if hidden == 1 else 'pairs are'} in the report."
    return sentence


def _notes(facts: dict) -> list[str]:
    chosen = [f"Method chosen: {facts['chosen']}."] if facts.get("chosen") else []
    return chosen + [str(note) for note in facts.get("notes", ())]


def _short(name: str) -> str:
    name = " ".join(str(name).split())
    return name if len(name) <= _NAME_WIDTH else name[: _NAME_WIDTH - 1] + "…"
