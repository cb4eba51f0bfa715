"""The command line: thin, typed, and quick to start (everything heavy is imported inside a command)."""

from __future__ import annotations

import errno
import io
import os
import shlex
import sys
import warnings
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from gflowdag.cli import data_commands, run_commands
from gflowdag.cli.options import (
    JSON,
    AlphaMu,
    AlphaW,
    Coordinator,
    Deterministic,
    Devices,
    EquivalentSampleSize,
    Exogenous,
    KnowledgeFile,
    MaxParents,
    Prior,
    Processes,
    ProcessId,
    Quiet,
    RecipeFile,
    ScoreName,
    ScoresFile,
    Seed,
    Table,
    Truth,
    complete_method,
    make_console,
    print_json,
)
from gflowdag.cli.table_options import reads_table
from gflowdag.estimators.parameters import MOST
from gflowdag.estimators.registry import method_names
from gflowdag.runtime.place import speaking

if TYPE_CHECKING:
    from gflowdag.data.read_options import ReadOptions
    from gflowdag.posterior.posterior import Posterior

app = typer.Typer(
    name="gflowdag",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: twice as many words to a line of 80 columns
    context_settings={"help_option_names": ["-h", "--help"]},
)


_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EPIPE)
_OUT_OF_MEMORY = (
    "not enough memory, or too few threads allowed (ulimit -u): see `gflowdag check` for what each method "
    "needs, or ask for fewer --samples"
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from gflowdag import __version__

        typer.echo(f"gflowdag {__version__}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """The posterior over the directed acyclic graphs that could have produced your table.

    Start with: gflowdag check TABLE.csv, then gflowdag fit TABLE.csv
    """
    context.with_resource(speaking("command line"))


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(help="Run folder.")] = None,
    quiet: Quiet = False,
) -> None:
    """The posterior of the Sachs cytometry data, with a report."""
    fit(data="sachs", out=out, quiet=quiet)
    if not quiet:
        from gflowdag.cli.demo import print_transforms

        print_transforms(make_console())


@app.command()
@reads_table
def fit(
    data: Table,
    method: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(method_names()[:-1])} or {method_names()[-1]}.",
            metavar="NAME",
            autocompletion=complete_method,
        ),
    ] = "auto",
    score: Annotated[ScoreName, typer.Option(help="Local score.")] = ScoreName.auto,
    scores: ScoresFile = None,
    alpha_mu: AlphaMu = None,
    alpha_w: AlphaW = None,
    ess: EquivalentSampleSize = None,
    prior: Annotated[
        Prior, typer.Option(help="Structure prior; auto is fair, and uniform with --preset paper.")
    ] = Prior.auto,
    yes: Annotated[
        bool, typer.Option("--yes", help="Read the table as check proposes, and note what was decided.")
    ] = False,
    reading: ReadOptions | None = None,
    knowledge: KnowledgeFile = None,
    max_parents: MaxParents = None,
    exogenous: Exogenous = None,
    truth: Truth = None,
    samples: Annotated[int, typer.Option(min=1, help="Number of graphs to return.")] = 1000,
    seed: Seed = 0,
    budget: Annotated[str | None, typer.Option(help="Time that the fit may take: 90s, 10m, 1h.")] = None,
    iterations: Annotated[
        int | None, typer.Option(min=1, max=MOST, help="Number of training iterations.")
    ] = None,
    completions: Annotated[
        int | None, typer.Option(min=1, help="Number of completed tables, where cells are missing.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="auto, canonical, fast, chains, retuned or paper (dag-gflownet).")
    ] = None,
    recipe: RecipeFile = None,
    out: Annotated[Path | None, typer.Option(help="Run folder (default: runs/NAME-METHOD).")] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue the run in --out, or the last run of that name in runs."),
    ] = False,
    devices: Devices = None,
    coordinator: Coordinator = None,
    processes: Processes = None,
    process_id: ProcessId = None,
    deterministic: Deterministic = False,
    json: JSON = False,
    quiet: Quiet = False,
) -> None:
    """Infer the posterior for a table; write a run folder.

    The folder holds the answer (posterior.npz), a report to open in a browser (report.html), and what is
    needed to do it again.
    """
    from gflowdag.cli import commands
    from gflowdag.posterior import runs

    several = any(option is not None for option in (coordinator, processes, process_id))
    leads = not several or commands.join_processes(coordinator, processes, process_id)
    config = {
        "data": data,
        "method": method,
        "score": score.value,
        "scores_file": commands.checked_scores_file(score.value, scores),
        "alpha_mu": alpha_mu,
        "alpha_w": alpha_w,
        "ess": ess,
        "prior": prior.value,
        "yes": yes,
        **(reading.to_dict() if reading is not None else {}),
        "knowledge_file": knowledge,
        "max_parents": max_parents,
        "exogenous": exogenous,
        "truth_file": truth,
        "samples": samples,
        "seed": seed,
        "budget": budget,
        "iterations": iterations,
        "completions": completions,
        "preset": preset,
        "recipe_file": recipe,
        "devices": "all" if several and devices is None else devices,
        "deterministic": deterministic,
        "command": _command(),
    }
    if resume and out is not None and leads and not quiet and not runs.holds_work(out):
        _complain(f"there is no run in {out} to continue: a new one starts")
    posterior, run = commands.run_fit(config, out=out, resume=resume, verbose=leads and not (quiet or json))
    if not leads:
        return
    if json:
        print_json(_summary(posterior) | {"run": str(run)})
    elif not quiet:
        from gflowdag.display.console import print_posterior

        console = make_console()
        print_posterior(posterior, console)
        console.print(f"\nReport: {run / 'report.html'}", soft_wrap=True)


@app.command()
@reads_table
def check(
    data: Table,
    reading: ReadOptions | None = None,
    knowledge: KnowledgeFile = None,
    max_parents: MaxParents = None,
    exogenous: Exogenous = None,
    json: JSON = False,
) -> None:
    """Look at a table: kinds, problems, cost of each method."""
    from gflowdag.cli import commands, inspect
    from gflowdag.errors import DataError

    frame, options = commands.read_table(data, reading)
    known = commands.load_knowledge(knowledge, max_parents)
    known = commands.with_exogenous(known, exogenous, frame)
    facts = inspect.examine(frame, options, known)
    others = {"knowledge": knowledge, "max_parents": max_parents}
    facts["command"] = inspect.command(data, reading, facts, others, exogenous or [])
    if json:
        print_json(inspect.plain(facts))
    else:
        inspect.print_description(facts, make_console())
    if facts["problems"]:
        raise DataError(facts["refusal"])


@app.command()
@reads_table
def scores(
    data: Table,
    to: Annotated[Path, typer.Option(help="File to write, in the format .jkl of GOBNILP and others.")],
    score: Annotated[ScoreName, typer.Option(help="Local score.")] = ScoreName.auto,
    reading: ReadOptions | None = None,
    knowledge: KnowledgeFile = None,
    parents: Annotated[int, typer.Option(min=0, help="The most parents in a set.")] = 3,
) -> None:
    """Write the local scores of a table for other programs: log marginal likelihoods, without a prior.

    What another program wrote is read by fit --scores FILE.
    """
    from gflowdag.cli import commands

    number = commands.write_scores(data, to, score.value, reading, knowledge, parents)
    print(f"{to}: {number:,} parent sets")


for about_runs in (
    run_commands.query,
    run_commands.effect,
    run_commands.next_,
    run_commands.diff,
    run_commands.export,
    run_commands.report,
):
    app.command(about_runs.__name__.rstrip("_"))(about_runs)


@app.command()
@reads_table
def compare(
    data: Table,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Method names separated by commas (default: the method that fit would choose, and mc3)."
        ),
    ] = None,
    truth: Truth = None,
    reading: ReadOptions | None = None,
    knowledge: KnowledgeFile = None,
    max_parents: MaxParents = None,
    exogenous: Exogenous = None,
    samples: Annotated[int, typer.Option(min=1, help="Number of graphs that each method returns.")] = 1000,
    seed: Seed = 0,
    report: Annotated[
        Path | None, typer.Option(help="HTML file to write (default: runs/NAME-compare.html).")
    ] = None,
    json: JSON = False,
    quiet: Quiet = False,
) -> None:
    """Run several methods on one table, side by side.

    The exit code is 1 if a method gave no answer; the others are shown nevertheless.
    """
    from gflowdag.cli import commands

    known = commands.load_knowledge(knowledge, max_parents)
    table = commands.load_table(data, reading, knowledge=known, exogenous=exogenous)
    comparison = commands.run_comparison(
        table,
        methods=None if methods is None else [name.strip() for name in methods.split(",") if name.strip()],
        truth=commands.load_truth(data, truth, table.names),
        samples=samples,
        seed=seed,
        verbose=not (quiet or json),
    )
    config = {
        "data": data,
        **({} if reading is None else reading.to_dict()),
        "knowledge_file": knowledge,
        "max_parents": max_parents,
        "exogenous": exogenous,
        "truth_file": truth,
        "samples": samples,
        "seed": seed,
        "command": _command(),
    }
    written = commands.report_comparison(comparison, report, config, table)
    if json:
        rows = comparison.table().reset_index().astype(object)
        print_json(rows.where(rows.notna(), None).to_dict(orient="records"))
    elif not quiet:
        from gflowdag.display.console import print_comparison

        console = make_console()
        print_comparison(comparison.table(), console, rest="--json")
        if written is not None:
            console.print(f"\nReport: {written}", soft_wrap=True)
    for name, reason in comparison.failures.items():
        _complain(f"{name} failed: {reason}")
    raise typer.Exit(1 if comparison.failures else 0)


for about_data in (data_commands.simulate, data_commands.datasets):
    app.command()(about_data)
for other in metadata.entry_points(group="gflowdag.commands"):  # the laboratory's, say
    app.command(other.name)(other.load())


@app.command()
def doctor(json: JSON = False) -> None:
    """Versions, devices, optional packages and data."""
    from gflowdag.cli.machine import examine_machine

    facts = examine_machine()
    if json:
        print_json(facts)
    else:
        for name, value in facts.items():
            print(f"{name:<14} {value}")


def main() -> None:
    """Entry point: what the user can put right is one line on stderr and exit code 2.

    Ctrl-C is 130, SIGTERM 143.
    """
    from gflowdag.errors import GFlowDAGError
    from gflowdag.runtime import interrupts

    warnings.showwarning = lambda message, *_, **__: _complain(str(message))
    interrupts.end_in_order_at_sigterm()
    interrupts.repeat_lost_interrupts()
    for stream in (sys.stdout, sys.stderr):  # a terminal without an arrow shows a question mark
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        try:
            app()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, and not on Python's way out, where it is too late to tell
    except GFlowDAGError as error:
        _fail(str(error), 2)
    except MemoryError:
        _fail(_OUT_OF_MEMORY, 1)
    except BaseException as end:
        if (interrupt := interrupts.interrupt_behind(end)) is not None:
            terminated = isinstance(interrupt, interrupts.Terminated)
            what = "stopped by SIGTERM" if terminated else "interrupted"
            _complain("; ".join([what, *getattr(interrupt, "__notes__", ())]))
            interrupts.end_at_once(143 if terminated else 130)
        if isinstance(end, OSError) and end.errno in _UNWRITABLE and _is_raised_by("numba", end):
            _fail(
                f"cannot store compiled code: {end.strerror}. Free some space, or set the variable "
                "NUMBA_CACHE_DIR to a folder that has some",
                2,
            )
        if isinstance(end, OSError) and end.filename is None and end.errno in _UNWRITABLE:
            _fail_without_output(end)
        if _is_out_of_memory(end):
            _fail(_OUT_OF_MEMORY, 1)
        raise


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether a device, a thread or compiled code says in its own words that it has no memory left."""
    if isinstance(error, RuntimeError):
        return "RESOURCE_EXHAUSTED" in str(error) or "can't start new thread" in str(error)
    if isinstance(error, SystemError):  # numba, where an array of compiled code got no memory
        return "without exception set" in str(error)
    return isinstance(error, ImportError) and "failed to map segment" in str(error)


def _is_raised_by(package: str, error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        if trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] == package:
            return True
        trace = trace.tb_next
    return False


def _fail_without_output(error: OSError) -> NoReturn:
    """End where standard output takes no more; quietly where its reader has gone, as in `… | head`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is lost: Python would fail
    if error.errno != errno.EPIPE:
        _complain(f"cannot write to standard output: {error.strerror}")
    sys.exit(1)


def _fail(message: str, code: int) -> NoReturn:
    _complain(message)
    sys.exit(code)


def _complain(message: str) -> None:
    from gflowdag.runtime.messages import printable

    print(f"gflowdag: {printable(message)}", file=sys.stderr)


def _command() -> str:
    """What the user typed, fit to be typed again."""
    return shlex.join(["gflowdag", *sys.argv[1:]])


def _summary(posterior: Posterior) -> dict[str, Any]:
    found = posterior.diagnosis
    parts = {"model_fit": found.model_fit, "imputation": found.imputation}
    plain = {name: part.to_dict() for name, part in parts.items() if part is not None}
    return {
        "method": posterior.method,
        "names": posterior.names,
        "log_evidence": posterior.log_evidence,
        "log_evidence_error": posterior.log_evidence_error,
        "edges": posterior.edge_table().to_dict(orient="records"),
        "diagnostics": {**found, **plain},
    }
