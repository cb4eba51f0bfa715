"""What `check` finds out about a table, before anything is computed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gflowdag.cli.proposal import proposed
from gflowdag.data import Dataset, Knowledge
from gflowdag.data.columns import MAX_LEVELS, infer_kind, plain_name
from gflowdag.data.read_options import ReadOptions
from gflowdag.data.refusals import added_options, mended, problem_list, table_problems
from gflowdag.data.table import with_gaps
from gflowdag.display.trust import sentences
from gflowdag.errors import DataError, KnowledgeError, TooLargeError
from gflowdag.posterior.model_fit import ModelFit, check_table
from gflowdag.runtime.messages import counted
from gflowdag.runtime.place import option

_UNUSABLE = "cannot be used"  # in place of a kind
_LEFT_OUT = "left out"  # by the command that is proposed
_MAX_COLUMNS = 20  # of the table that `check` lists


def examine(
    frame: pd.DataFrame, options: ReadOptions | None = None, knowledge: Knowledge | None = None
) -> dict[str, Any]:
    """What a table holds and what each method would do and cost on it, problems or not.

    The description is that of the table with the options that are proposed (`options`), which mend problems
    if there are any. Where none do, it holds the columns and the costs by what can be guessed of them.
    """
    options = options or ReadOptions()
    if (refusal := _size_refusal(frame, options)) is not None:
        facts = _of_size(frame, options)
        return facts | {"problems": [refusal], "refusal": refusal, "asked": options, "options": None}
    try:
        found = table_problems(frame, options, knowledge=knowledge)
        problems = found.messages
    except KnowledgeError as error:
        facts = examine(frame, options)
        problems = (*facts["problems"], str(error))
        return facts | {"problems": [*problems], "refusal": "\n".join(problems), "options": None}
    readable = mended(frame, options, knowledge=knowledge) if problems else options
    proposal = proposed(frame, options, knowledge=knowledge, data=found.data)
    if readable is None or proposal is None:
        facts = _guessed(frame, options)
    else:
        facts = describe(proposal.data, proposal.model_fit)
        if proposal.options is not readable:
            read = found.data or Dataset.from_frame(frame, readable, knowledge=knowledge)
            facts |= {"notes": [*read.notes], "model_fit": check_table(read)}
        facts["columns"] += [
            {"name": name, "kind": _UNUSABLE if name in readable.drop else _LEFT_OUT}
            for name in proposal.options.drop
            if name not in options.drop
        ]
        facts["columns"] = _with_gaps(facts["columns"], with_gaps(frame, proposal.options)[0])
    refusal = problem_list(problems, options, readable) if problems else None
    return {
        **facts,
        "problems": list(problems),
        "refusal": refusal,
        "asked": options,
        "options": None if proposal is None else proposal.options,
    }


def _size_refusal(frame: pd.DataFrame, options: ReadOptions) -> str | None:
    """Why no method can take a table of so many columns; None if one can."""
    from gflowdag.estimators.parent_set_mcmc import check_number_of_columns

    try:
        check_number_of_columns(frame.shape[1] - len(options.drop))
    except TooLargeError as error:
        return str(error)
    return None


def _of_size(frame: pd.DataFrame, options: ReadOptions) -> dict[str, Any]:
    """A description by the numbers of rows and columns alone."""
    from gflowdag.estimators.cost import estimate_costs

    number = frame.shape[1] - len(options.drop)
    costs = estimate_costs(number, len(frame), discrete=False)
    return {"rows": len(frame), "variables": number, "columns": [], "notes": [], "methods": costs}


def _with_gaps(columns: list[dict[str, Any]], frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The columns in the order of the table, with the number of cells that are missing in each."""
    gaps = {plain_name(name): int(count) for name, count in frame.isna().sum().items()}
    place = {name: index for index, name in enumerate(gaps)}
    ordered = sorted(columns, key=lambda column: place[column["name"]])
    return [column | {"missing": gaps[column["name"]]} for column in ordered]


def _guessed(frame: pd.DataFrame, options: ReadOptions) -> dict[str, Any]:
    """A description without a data set: what the columns seem to be, and what such a table would cost."""
    kept = frame.drop(columns=[name for name in options.drop if name in frame.columns])
    columns = [_guessed_column(str(name), kept.iloc[:, place]) for place, name in enumerate(kept)]
    usable = [column["kind"] for column in columns if column["kind"] != _UNUSABLE]
    costs = []
    if usable:
        from gflowdag.estimators.cost import estimate_costs

        mixed = len(set(usable)) > 1
        costs = estimate_costs(len(usable), len(frame), discrete="discrete" in usable, mixed=mixed)
    return {"rows": len(frame), "variables": len(usable), "columns": columns, "notes": [], "methods": costs}


def _guessed_column(name: str, cells: Any) -> dict[str, Any]:
    try:
        kind = infer_kind(name, cells)
    except DataError:
        kind = _UNUSABLE
    values = cells.nunique()
    levels = int(values) if kind == "discrete" else None
    if (values < 2 <= len(cells)) or (kind == "discrete" and values > MAX_LEVELS):
        kind = _UNUSABLE
    return {"name": name, "kind": kind, "levels": levels, "missing": int(cells.isna().sum())}


def command(
    source: str,
    asked: ReadOptions | None,
    facts: dict[str, Any],
    others: Mapping[str, Any],
    exogenous: Sequence[str] = (),
) -> str | None:
    """The fit of an examined table as it is typed, with the options that it needs; None where none does it.

    Args:
        source: of the table.
        asked: the options of the check.
        facts: what `examine` found.
        others: the options of the check about knowledge.
        exogenous: what was given as `--exogenous`.
    """
    readable = facts["options"]
    if readable is None:
        return None
    typed = replace(readable, interventions=None if asked is None else asked.interventions)
    parts = [f"gflowdag fit {shlex.quote(source)}", added_options(ReadOptions(), typed)]
    parts += [option(name, str(value)) for name, value in others.items() if value is not None]
    parts += [option("exogenous", [names]) for names in exogenous]
    return " ".join(filter(None, parts))


def plain(facts: dict[str, Any]) -> dict[str, Any]:
    """What `examine` found, for a file."""
    fit = {"model_fit": facts["model_fit"].to_dict()} if "model_fit" in facts else {}
    return {name: value for name, value in facts.items() if name not in ("asked", "options", "refusal")} | fit


def describe(data: Dataset, model_fit: ModelFit) -> dict[str, Any]:
    """What a table holds, what speaks against the model, and what each method would do and cost on it."""
    from gflowdag.estimators.cost import automatic_choice, expected_rounds
    from gflowdag.estimators.method import Problem

    method, why = automatic_choice(Problem.of(data), data.num_rows, rounds=expected_rounds(data))
    intervened = np.zeros(data.num_variables) if data.intervened is None else data.intervened.sum(axis=0)
    columns = [
        {
            "name": column.name,
            "kind": column.kind,
            "levels": None if column.levels is None else len(column.levels),
            "intervened_rows": int(count),
        }
        for column, count in zip(data.columns, intervened, strict=True)
    ]
    return {
        "rows": data.num_rows,
        "variables": data.num_variables,
        "columns": columns,
        "notes": [*data.notes],
        "model_fit": model_fit,
        "methods": method_costs(data),
        "chosen": {"method": method, "why": why},
    }


def method_costs(data: Dataset) -> list[dict[str, Any]]:
    """`estimate_costs` of a table."""
    from gflowdag.estimators.cost import estimate_costs

    knowledge = None if data.knowledge is None else data.knowledge.resolve(data.names)
    return estimate_costs(
        data.num_variables,
        data.num_rows,
        discrete=not data.is_continuous,
        mixed=data.is_mixed,
        gaps=data.missing is not None,
        intervened=data.intervened is not None,
        known_edges=knowledge is not None and knowledge.rules_out_edges,
        limited_parents=knowledge is not None and knowledge.max_parents is not None,
    )


def print_description(facts: dict[str, Any], console: Console) -> None:
    """Print what `describe` found."""
    console.print(f"{counted(facts['rows'], 'row')}, {counted(facts['variables'], 'variable')}", style="bold")
    for note in facts["notes"]:
        console.print(note, style="dim", markup=False)
    columns = facts["columns"]
    if facts.get("options") is not None and added_options(facts["asked"], facts["options"]):
        console.print("\nThe columns as the command below takes them:", style="dim", end="")
    details = {"levels": "levels", "missing": "missing", "intervened_rows": "intervened rows"}
    _print_rows(columns[:_MAX_COLUMNS], {"name": "column", "kind": "kind", **details}, console)
    if len(columns) > _MAX_COLUMNS:
        console.print(f"… and {len(columns) - _MAX_COLUMNS} more columns", style="dim")
    if "model_fit" in facts:
        _print_model_fit(facts["model_fit"], console)
    titles = {"method": "method", "answer": "answer", "time": "estimated time", "memory": "memory"}
    _print_rows(facts["methods"], titles, console)
    console.print(
        "\nTimes are rough: one core (exact, dag-gflownet: two), default settings; "
        "a GPU trains faster. --budget limits the time of any of them; the exact posterior is refused "
        "where it would take longer.",
        style="dim",
    )
    if "chosen" in facts:
        chosen = facts["chosen"]
        why = f"gflowdag fit takes {chosen['method']}: {chosen['why']}. --method chooses another."
        console.print(why, style="dim", markup=False)
    if facts.get("command") is not None:
        console.print(f"\nNext: {facts['command']}", markup=False, soft_wrap=True)


def _print_model_fit(fit: ModelFit, console: Console) -> None:
    """Print what in the table speaks against the model."""
    console.print("\nDoes the model fit?", style="bold")
    said = sentences(fit, "command line")
    if not said:
        said = ["Nothing in the table alone speaks against it; the residuals are checked after the fit."]
    for sentence in said:
        console.print(f"- {sentence}", markup=False)
    for note in fit.not_checked:
        console.print(note, style="dim", markup=False)


def _print_rows(rows: list[dict[str, Any]], titles: dict[str, str], console: Console) -> None:
    """Print the columns of a table that hold anything."""
    titles = {field: title for field, title in titles.items() if any(row.get(field) for row in rows)}
    grid = Table(box=None, header_style="bold", pad_edge=False)
    for field, title in titles.items():
        grid.add_column(title, no_wrap=field == "method", overflow="fold")
    for row in rows:
        grid.add_row(*(escape(str(row.get(field) or "")) for field in titles))
    console.print()
    console.print(grid)
