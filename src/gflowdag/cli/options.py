"""Arguments, options and output that the commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gflowdag.estimators.registry import method_names

if TYPE_CHECKING:
    from rich.console import Console


class Prior(StrEnum):
    auto = "auto"
    uniform = "uniform"
    erdos_renyi = "erdos-renyi"
    edge = "edge"
    fair = "fair"


class ScoreName(StrEnum):
    auto = "auto"
    bge = "bge"
    bdeu = "bdeu"
    bde = "bde"
    conditional_gaussian = "conditional-gaussian"
    degenerate_gaussian = "degenerate-gaussian"
    generalized_linear = "generalized-linear"


ScoresFile = Annotated[
    Path | None, typer.Option(help="Local scores from a .jkl file, in place of a score.", metavar="FILE")
]
AlphaMu = Annotated[float | None, typer.Option(help="BGe: strength of the prior mean, in rows (default: 1).")]
AlphaW = Annotated[
    float | None, typer.Option(help="BGe: degrees of freedom of the Wishart prior (default: variables + 2).")
]
EquivalentSampleSize = Annotated[
    float | None,
    typer.Option("--ess", help="BDeu: equivalent sample size (default: averaged over 1, 4, 16)."),
]


class Question(StrEnum):
    edge = "edge"
    path = "path"
    blanket = "blanket"


class Format(StrEnum):
    csv = "csv"
    graphml = "graphml"
    dot = "dot"
    json = "json"
    gml = "gml"
    bnlearn = "bnlearn"
    tetrad = "tetrad"
    bif = "bif"
    nc = "nc"


def complete_method(incomplete: str) -> list[str]:
    """Names of methods, for the shell's completion."""
    return [name for name in method_names() if name.startswith(incomplete)]


def complete_table(incomplete: str) -> list[str]:
    """Files, folders and names of data sets, for the shell's completion."""
    from gflowdag.data import list_datasets

    folder = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    near = sorted(folder.iterdir()) if folder.is_dir() else []
    files = [f"{path}/" if path.is_dir() else str(path) for path in near if not path.name.startswith(".")]
    return [name for name in (*files, *list_datasets()["name"]) if name.startswith(incomplete)]


Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="File with a header row (CSV, Excel, Parquet, Stata, SPSS, SAS, …), - for standard input, or "
        "the name of a built-in data set.",
        autocompletion=complete_table,
    ),
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder, or a posterior.npz file.")]
JSON = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Seed = Annotated[int, typer.Option(min=0, help="Same seed, same answer.")]
Interventions = Annotated[
    str | None,
    typer.Option(help="Column that names the variable set from outside in each row (empty: none)."),
]
InterventionBase = Annotated[
    int | None,
    typer.Option(help="Number of the first variable, where the interventions column holds numbers."),
]
KnowledgeFile = Annotated[
    Path | None,
    typer.Option(help="TOML file with prior knowledge: required, forbidden, tiers, max_parents, exogenous."),
]
RecipeFile = Annotated[
    Path | None, typer.Option(help="TOML file with constants of the preset paper, such as batch_size.")
]
Exogenous = Annotated[
    list[str] | None, typer.Option(help="Variables without parents, separated by commas.", metavar="NAMES")
]
MaxParents = Annotated[int | None, typer.Option(min=0, help="The largest number of parents of a variable.")]
Standardize = Annotated[bool, typer.Option(help="Scale continuous columns to mean 0 and deviation 1.")]
Discretize = Annotated[
    str | None, typer.Option(help="quantile or interval: make continuous columns discrete.")
]
Missing = Annotated[
    str,
    typer.Option(help="impute, drop or error: fill missing values in, leave out rows with any, or refuse."),
]
MissingValues = Annotated[
    list[str] | None,
    typer.Option(
        help="What stands for a missing value, besides the usual words: -9999, or age=999 for one column.",
        metavar="[COLUMN=]CELL",
    ),
]
Sheet = Annotated[str | None, typer.Option(help="Sheet of an Excel file, where there are several.")]
Truth = Annotated[Path | None, typer.Option(help="CSV of true edges: source,target.")]
MaxLevels = Annotated[int, typer.Option(min=2, help="The most levels that a discrete column may have.")]
Devices = Annotated[
    str | None, typer.Option(help="Devices that share the training: a number, or all.", metavar="N|all")
]
Coordinator = Annotated[
    str | None,
    typer.Option(
        help="Train in several processes: HOST:PORT of process 0, or auto (Slurm).", metavar="ADDRESS"
    ),
]
Processes = Annotated[int | None, typer.Option(min=1, help="Number of processes, with --coordinator.")]
ProcessId = Annotated[int | None, typer.Option(min=0, help="Number of this process, counted from 0.")]
Deterministic = Annotated[
    bool, typer.Option("--deterministic", help="The same bytes in every run on a GPU; it may be slower.")
]
Drop = Annotated[
    list[str] | None, typer.Option(help="Columns to leave out, separated by commas.", metavar="NAMES")
]
Continuous = Annotated[
    list[str] | None,
    typer.Option(help="Columns to take as continuous, separated by commas.", metavar="NAMES"),
]
Discrete = Annotated[
    list[str] | None, typer.Option(help="Columns to take as discrete, separated by commas.", metavar="NAMES")
]

Transforms = Annotated[
    list[str] | None,
    typer.Option(
        help="Transform continuous columns: log, or rank (normal scores); COLUMN=log for one.",
        metavar="[COLUMN=]log|rank",
    ),
]


def make_console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def print_json(content: Any) -> None:
    """Print anything that a file of ours may hold."""
    from gflowdag.runtime.strict_json import dumps

    print(dumps(content, indent=2))
