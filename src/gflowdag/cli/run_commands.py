"""Commands about a finished run: single probabilities, files for other programs, the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gflowdag.cli.options import JSON, Format, Question, RunFolder, print_json
from gflowdag.errors import GFlowDAGError

if TYPE_CHECKING:
    from gflowdag.posterior.posterior import Posterior


def query(
    run: RunFolder,
    question: Annotated[Question, typer.Argument(help="edge A B, path A B, or blanket A [B].")],
    source: Annotated[str, typer.Argument(help="Variable.")],
    target: Annotated[str | None, typer.Argument(help="Second variable.")] = None,
    json: JSON = False,
) -> None:
    """Ask for the probability of an edge, path or blanket."""
    from gflowdag.cli.export import answer
    from gflowdag.runtime.messages import one_line

    posterior = _load(run)
    rows = answer(posterior, question.value, source, target)
    if json:
        print_json(rows)
        return
    for row in rows:
        spread = f" ± {row['error']:.4f}" if row["error"] >= 0.00005 else ""  # not ± 0.0000
        print(f"{one_line(row['statement'])}: {row['probability']:.4f}{spread}")
    found = posterior.diagnosis
    print(f"{found.verdict.capitalize()}: {one_line(found.explanation)}")


def export(
    run: RunFolder,
    to: Annotated[Path | None, typer.Option(help="File to write (default: standard output).")] = None,
    format: Annotated[
        Format | None, typer.Option(help="Default: by the file's ending; csv without one.")
    ] = None,
    threshold: Annotated[float, typer.Option(min=0, max=1, help="Leave out less probable edges.")] = 0.0,
) -> None:
    """Write the edge probabilities as CSV, GraphML, DOT or JSON, with the verdict on the run."""
    from gflowdag.cli.export import export_text
    from gflowdag.runtime.files import atomic_write

    text = export_text(_load(run), (format or _format_of(to)).value, threshold)
    if to is None:
        print(text, end="")
    else:
        with atomic_write(to) as stream:
            stream.write(text)
        print(to)


def _format_of(to: Path | None) -> Format:
    """The format that a file's ending stands for."""
    ending = "" if to is None else to.suffix.lstrip(".").lower()
    if ending and ending not in Format.__members__:
        known = ", ".join(f".{name}" for name in Format)
        raise GFlowDAGError(f"{to} does not say its format: end it in one of {known}, or name it by --format")
    return Format(ending or "csv")


def report(
    run: RunFolder,
    to: Annotated[
        Path | None, typer.Option(help="File to write (default: report.html in the run folder).")
    ] = None,
) -> None:
    """Write the HTML report of a run anew."""
    from gflowdag.cli import commands

    print(commands.rewrite_report(run, to))


def _load(run: Path) -> Posterior:
    from gflowdag.posterior.posterior import Posterior

    return Posterior.load(run)
