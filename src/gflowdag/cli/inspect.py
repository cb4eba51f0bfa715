"""What `check` finds out about a table and `doctor` about a machine, before anything is computed."""

from __future__ import annotations

import importlib.util
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gflowdag import __version__
from gflowdag.data import Dataset
from gflowdag.display.trust import sentences
from gflowdag.posterior.model_fit import ModelFit, check_table
from gflowdag.runtime.messages import counted

_MIXED = (
    "Columns of both kinds: name a score that takes them, --score conditional-gaussian (directions between "
    "the kinds are assumed) or --score degenerate-gaussian (levels count as numbers)."
)
_MAX_COLUMNS = 20  # of the table that `check` lists


def describe(data: Dataset) -> dict[str, Any]:
    """What a table holds and what each method would do and cost on it."""
    from gflowdag.estimators.cost import automatic_choice
    from gflowdag.estimators.method import Problem

    method, why = automatic_choice(Problem.of(data), data.num_rows)
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
        "notes": [*data.notes, *([_MIXED] if data.is_mixed else [])],
        "model_fit": check_table(data),
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
    details = {"levels": "levels", "intervened_rows": "intervened rows"}
    _print_rows(columns[:_MAX_COLUMNS], {"name": "column", "kind": "kind", **details}, console)
    if len(columns) > _MAX_COLUMNS:
        console.print(f"… and {len(columns) - _MAX_COLUMNS} more columns", style="dim")
    _print_model_fit(facts["model_fit"], console)
    titles = {"method": "method", "answer": "answer", "time": "estimated time", "memory": "memory"}
    _print_rows(facts["methods"], titles, console)
    chosen = facts["chosen"]
    console.print(
        "\nTimes are rough: one core (exact, dag-gflownet: two), default settings; "
        "a GPU trains faster. --budget sets an end to any of them; the exact posterior is refused "
        "where it would take longer.\n"
        f"gflowdag fit takes {chosen['method']}: {chosen['why']}. --method chooses another.",
        style="dim",
    )


def _print_model_fit(fit: ModelFit, console: Console) -> None:
    """Print what in the table speaks against the model."""
    console.print("\nDoes the model fit?", style="bold")
    for sentence in sentences(fit, "command line") or [
        "Nothing in the table alone speaks against it; the fit looks again."
    ]:
        console.print(f"- {sentence}", markup=False)
    for note in fit.not_checked:
        console.print(note, style="dim", markup=False)


def _print_rows(rows: list[dict[str, Any]], titles: dict[str, str], console: Console) -> None:
    """Print the columns of a table that hold anything."""
    titles = {field: title for field, title in titles.items() if any(row[field] for row in rows)}
    grid = Table(box=None, header_style="bold", pad_edge=False)
    for field, title in titles.items():
        grid.add_column(title, no_wrap=field == "method", overflow="fold")
    for row in rows:
        grid.add_row(*(escape(str(row[field] or "")) for field in titles))
    console.print()
    console.print(grid)


def examine_machine() -> dict[str, str]:
    """Versions, devices, optional packages and the data folder."""
    import jax

    extras = {"baselines": "causallearn", "gadget": "sumu", "dask": "distributed", "notebook": "ipywidgets"}
    found = [
        f"{extra} {'yes' if importlib.util.find_spec(module) else 'no'}" for extra, module in extras.items()
    ]
    folder = os.environ.get("GFLOWDAG_DATA")
    return {
        "gflowdag": __version__,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "devices": ", ".join(_device(device) for device in jax.devices()),
        "cores": str(os.cpu_count()),
        "extras": ", ".join(found),
        "GFLOWDAG_DATA": folder if folder and Path(folder).is_dir() else "not set",
    }


def _device(device: Any) -> str:
    kind = device.device_kind
    return device.platform if kind == device.platform else f"{device.platform} ({kind})"
