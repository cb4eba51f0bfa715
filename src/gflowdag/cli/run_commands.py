"""Commands about a finished run: single probabilities, files for other programs, the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gflowdag.cli.options import JSON, Format, Question, RunFolder, Seed, make_console, print_json
from gflowdag.errors import GFlowDAGError
from gflowdag.runtime.messages import shown

if TYPE_CHECKING:
    from gflowdag.posterior.posterior import Posterior


def query(
    run: RunFolder,
    question: Annotated[
        str,
        typer.Argument(
            help="A statement in quotes, or edge A B, path A B, blanket A [B].", metavar="STATEMENT"
        ),
    ],
    source: Annotated[str | None, typer.Argument(help="Variable, after edge, path or blanket.")] = None,
    target: Annotated[str | None, typer.Argument(help="Second variable.")] = None,
    json: JSON = False,
) -> None:
    """Ask for the probability of anything that can be said about the graph.

    A -> B is an edge, A ~> B a directed path, A - B an edge in either direction, A _||_ B | C a d-separation;
    chains (A -> B -> C), and, or, not and parentheses combine them. Quote the whole for the shell, and inside
    of it names with blanks or signs in them: 'A -> "my B" and not A ~> C'.
    """
    from gflowdag.cli.export import answer, answer_statement
    from gflowdag.display.trust import is_doubtful, trust_in_lines
    from gflowdag.runtime.messages import one_line

    posterior = _load(run)
    doubtful = is_doubtful(posterior)
    if source is None:
        rows = [answer_statement(posterior, question)]
    elif question in Question.__members__:
        rows = answer(posterior, question, source, target)
    else:
        raise GFlowDAGError(
            f"put the statement in quotes: gflowdag query {run} 'A -> B'; without quotes there are "
            f"{shown(Question)} and one or two variables"
        )
    if json:
        print_json([row | {"model_doubtful": doubtful} for row in rows])
        return
    for row in rows:
        told = posterior.diagnosis.has_errors and row["error"] >= 0.00005  # not ± 0.0000
        spread = f" ± {row['error']:.4f}" if told else ", exactly" if row.get("exact") else ""
        condition = ", if the model is right" if doubtful else ""
        print(f"{one_line(row['statement'])}: {row['probability']:.4f}{spread}{condition}")
        if row.get("assumed"):
            edges = ", ".join(f"{a} → {b}" for a, b in row["assumed"])
            print(f"Assumed by the score, not learnt from the data: {one_line(edges)}")
    for line in trust_in_lines(posterior):
        print(one_line(line))


def diff(
    first: Annotated[Path, typer.Argument(metavar="RUN1", help="Run folder, or a posterior.npz file.")],
    second: Annotated[Path, typer.Argument(metavar="RUN2", help="Another.")],
    rows: Annotated[int, typer.Option(min=0, help="The most edges to print.")] = 20,
    json: JSON = False,
) -> None:
    """What changed between two runs: edges, beyond sampling noise or not, and settings.

    Variables are matched by name. Printed are the edges that differ by more than noise.
    """
    from gflowdag.cli import answers

    found = answers.difference_of_runs(first, second)
    if json:
        print_json(answers.difference_as_json(found))
    else:
        answers.print_difference(found, make_console(), rows)


def effect(
    run: RunFolder,
    cause: Annotated[str | None, typer.Argument(help="Variable that is set (default: all pairs).")] = None,
    outcome: Annotated[str | None, typer.Argument(help="Variable that is looked at (default: all).")] = None,
    given: Annotated[str | None, typer.Option(help="Statement that holds: 'A -> B'.")] = None,
    to: Annotated[
        str | None, typer.Option(help="Setting of the cause: the difference and the ratio to --base.")
    ] = None,
    base: Annotated[str | None, typer.Option(help="The setting that --to is compared with.")] = None,
    level: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.95,
    table: Annotated[Path | None, typer.Option(help="The table, where the run does not keep enough.")] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of draws of the parameters (default: 10,000; 2,000 in tables of both kinds)."
        ),
    ] = None,
    seed: Seed = 0,
    json: JSON = False,
) -> None:
    """What changes in OUTCOME if CAUSE is set from outside: total effects, with the uncertainty of the graph.

    Of one variable on another, of one on all others, or of all on all (posterior means).
    """
    from gflowdag.cli import answers

    if (to is None) != (base is None) or (to is not None and cause is None):
        raise GFlowDAGError("two settings of one cause are compared: give CAUSE, --to LEVEL and --base LEVEL")
    settings = None if to is None or base is None else (to, base)
    posterior = answers.prepared(_load(run), table, given)
    found = answers.effects(posterior, cause, outcome, draws, seed)
    if json:
        print_json(answers.effects_as_json(found, level, settings))
    else:
        answers.print_effects(found, make_console(), level, settings)
        answers.print_trust_in_effects(posterior, make_console())


def next_(
    run: RunFolder,
    about: Annotated[
        str | None, typer.Option(help="What is to be learnt: 'A ~> B' (default: the graph).")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Number of rows of each experiment.")] = 100,
    targets: Annotated[
        str | None, typer.Option(help="Variables that can be set, separated by commas (default: all).")
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(help="Columns with missing cells that can be measured, separated by commas."),
    ] = None,
    table: Annotated[Path | None, typer.Option(help="The table, where the run does not keep enough.")] = None,
    outcomes: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Simulated outcomes of each experiment (default: 200; 50 in tables of both kinds).",
        ),
    ] = None,
    seed: Seed = 0,
    json: JSON = False,
) -> None:
    """Which experiment next: what setting each variable from outside can be expected to tell, in nats.

    With --measure also what it would tell to measure the missing cells of a column.
    """
    from gflowdag.cli import answers, experiments
    from gflowdag.display.trust import trust_in_lines
    from gflowdag.runtime.messages import one_line

    posterior = answers.prepared(_load(run), table, None)
    found = posterior.next_experiments(
        about=about,
        num_rows=rows,
        targets=None if targets is None else _names(targets),
        measure=[] if measure is None else _names(measure),
        num_outcomes=outcomes,
        random_state=seed,
    )
    if json:
        print_json(found.to_dict())
        return
    experiments.print_experiments(found, make_console())
    for line in trust_in_lines(posterior):
        print(one_line(line))


def _names(text: str) -> list[str]:
    """Names that are separated by commas; none of an empty text."""
    return [name.strip() for name in text.split(",") if name.strip()]


def export(
    run: RunFolder,
    to: Annotated[Path | None, typer.Option(help="File to write (default: standard output).")] = None,
    format: Annotated[
        Format | None, typer.Option(help="Default: by the file's ending; csv without one.")
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(
            help="One graph: best, cpdag (its class), or the number of a sample. Default: edge "
            "probabilities, or best where the format has none.",
            metavar="GRAPH",
        ),
    ] = None,
    threshold: Annotated[float, typer.Option(min=0, max=1, help="Leave out less probable edges.")] = 0.0,
) -> None:
    """Write the edge probabilities, one graph, or all samples, for other programs.

    Edge probabilities, with the verdict on the run: csv, json, graphml, dot, gml. One graph: these, bnlearn
    (its model string), tetrad (Tetrad and causal-learn), bif (with fitted tables). All samples: nc (netCDF
    of ArviZ, needs xarray and h5netcdf).
    """
    from gflowdag.cli.export import OF_EDGES, export_text, graph_text
    from gflowdag.runtime.files import atomic_write

    chosen, posterior = (format or _format_of(to)).value, _load(run)
    if chosen == "nc" and graph is None:
        if to is None:
            raise GFlowDAGError("nc is a binary format: give a file, --to FILE.nc")
        _write_netcdf(posterior, to)
        print(to)
        return
    if graph is None and chosen in OF_EDGES:
        text = export_text(posterior, chosen, threshold)
    else:
        text = graph_text(posterior, chosen, graph or "best")
    if to is None:
        print(text, end="")
    else:
        with atomic_write(to) as stream:
            stream.write(text)
        print(to)


def _write_netcdf(posterior: Posterior, to: Path) -> None:
    import shutil
    import tempfile

    from gflowdag.errors import MissingExtraError
    from gflowdag.runtime.files import atomic_write, write_error

    tree = posterior.to_datatree()
    with tempfile.TemporaryDirectory() as folder:  # the library writes to a path, piece by piece
        part = Path(folder) / "samples.nc"
        try:
            tree.to_netcdf(str(part))
        except (ImportError, ValueError) as error:  # xarray says so where no engine can write groups
            raise MissingExtraError(f"netCDF needs h5netcdf: pip install h5netcdf ({error})") from error
        except OSError as error:
            raise write_error(part, error) from error
        with part.open("rb") as written, atomic_write(to, "wb") as stream:
            shutil.copyfileobj(written, stream)


def _format_of(to: Path | None) -> Format:
    """The format that a file's ending stands for."""
    ending = "" if to is None else to.suffix.lstrip(".").lower()
    ending = {"txt": "tetrad"}.get(ending, ending)
    if ending and ending not in Format.__members__:
        known = ", ".join(f".{name}" for name in Format)
        raise GFlowDAGError(f"{to} has no ending that names a format: use one of {known}, or --format")
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
