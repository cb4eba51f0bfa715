"""The commands of the laboratory, `gflowdag reproduce` and `gflowdag bench`.

They are entry points of the group `gflowdag.commands`; everything heavy is imported inside them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gflowdag.cli import Quiet, Seed, make_console
from gflowdag.runtime import noted_at_interrupt

_GOES_ON = "what is finished stays; run the same command again for the rest"


def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            help="small-graphs, lingauss20, lingauss20-erdos-renyi, lingauss50, sachs, sachs-coverage, "
            "sachs-interventional, limitations, all; or page: write the page from what is stored."
        ),
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Small settings, which take minutes on two cores.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder of the fits; finished fits are not repeated.")] = Path(
        "reproduction"
    ),
    methods: Annotated[str | None, typer.Option(help="Rows to run, separated by commas.")] = None,
    datasets: Annotated[int | None, typer.Option(min=1, help="Number of simulated data sets.")] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            min=1.0, help="Seconds of training for each DAG-GFlowNet, or for each stack with --together."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
    scheduler: Annotated[str | None, typer.Option(help="Dask scheduler, tcp://HOST:8786.")] = None,
    together: Annotated[
        bool, typer.Option("--together", help="Train DAG-GFlowNets of equal size at once (GPU).")
    ] = False,
    page: Annotated[Path | None, typer.Option(help="Markdown file (default: OUT/reproduction.md).")] = None,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Keep the rows of the page's tables that no fit in the folder replaces."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run the paper's experiments again.

    The exit code is 1 if a row is missing or not a number.
    """
    from gflowdag_lab.paper.command import run_experiments

    with noted_at_interrupt(_GOES_ON):
        complete = run_experiments(
            experiment,
            out,
            quick=quick,
            methods=None if methods is None else methods.split(","),
            num_datasets=datasets,
            budget=budget,
            jobs=jobs,
            scheduler=scheduler,
            together=together,
            page=page,
            keep=keep,
            verbose=not quiet,
        )
    raise typer.Exit(0 if complete else 1)


def bench(
    out: Annotated[
        Path, typer.Option(help="JSON file of results; rows that it already has are not measured again.")
    ] = Path("bench.json"),
    methods: Annotated[str | None, typer.Option(help="Methods, separated by commas (default: all).")] = None,
    sizes: Annotated[
        str | None, typer.Option(help="Numbers of variables, up to 20 (default: 5,11,16,20).")
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(help="exact, quality, sampling, scores, variables, rows (default: all)."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure four methods at one size, in about two minutes.")
    ] = False,
    cap: Annotated[
        float | None,
        typer.Option(min=0.1, help="Do not begin a fit that would take longer than this, in seconds."),
    ] = None,
    baseline: Annotated[str, typer.Option(help="Method with which the others are compared.")] = "mc3",
    join: Annotated[
        list[Path] | None, typer.Option(help="Another result file of this machine, whose rows are added.")
    ] = None,
    compare: Annotated[
        Path | None, typer.Option(help="File of older results: report what became slower.")
    ] = None,
    tolerance: Annotated[
        float, typer.Option(min=1, help="Factor in time up to which two measurements count as equal.")
    ] = 1.5,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Time to quality, speed and memory of every method.

    Each measurement runs in a process of its own, beside a baseline of the same run. A table is printed, and
    a figure written beside the JSON file. The exit code is 1 if --compare shows something slower.
    """
    from gflowdag_lab.bench.command import run_bench

    def parts(text: str | None) -> list[str] | None:
        return None if text is None else [part.strip() for part in text.split(",") if part.strip()]

    with noted_at_interrupt(_GOES_ON):
        alike = run_bench(
            out,
            methods=parts(methods),
            sizes=parts(sizes),
            kinds=parts(measure),
            quick=quick,
            cap=cap,
            seed=seed,
            baseline=baseline,
            join=join or (),
            compare=compare,
            tolerance=tolerance,
            console=None if quiet else make_console(),
        )
    raise typer.Exit(0 if alike else 1)
