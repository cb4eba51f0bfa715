"""The options for reading a table, which several commands share: those of `ReadOptions`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, get_args

from gflowdag.cli.options import (
    Continuous,
    Discrete,
    Discretize,
    Drop,
    InterventionBase,
    Interventions,
    MaxLevels,
    Missing,
    MissingValues,
    Sheet,
    Standardize,
    Transforms,
)
from gflowdag.errors import GFlowDAGError

if TYPE_CHECKING:
    from gflowdag.data.read_options import ReadOptions


def table_options(
    interventions: Interventions = None,
    intervention_base: InterventionBase = None,
    drop: Drop = None,
    continuous: Continuous = None,
    discrete: Discrete = None,
    transform: Transforms = None,
    standardize: Standardize = True,
    discretize: Discretize = None,
    missing: Missing = "impute",
    missing_values: MissingValues = None,
    sheet: Sheet = None,
    max_levels: MaxLevels = 30,
) -> ReadOptions:
    """What the user typed; lists of names are taken apart when the columns of the table are known."""
    from gflowdag.data.read_options import ReadOptions

    content = {
        "interventions": interventions,
        "intervention_base": intervention_base,
        "drop": drop,
        "continuous": continuous,
        "discrete": discrete,
        "transform": _transform(transform or []),
        "standardize": standardize,
        "discretize": discretize,
        "missing": missing,
        "missing_values": missing_values,
        "sheet": sheet,
        "max_levels": max_levels,
    }
    return ReadOptions.from_dict(content)


def reads_table(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the parameters of `table_options`, in the place of its own parameter `reading`."""
    shared = _parameters(table_options)
    parameters: list[inspect.Parameter] = []
    for parameter in _parameters(command):
        parameters += shared if parameter.name == "reading" else [parameter]

    @wraps(command)
    def run(**given: Any) -> None:
        reading = {
            parameter.name: given.pop(parameter.name) for parameter in shared if parameter.name in given
        }
        command(**given, reading=table_options(**reading))

    run.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Parameters whose annotations are types; of `reading`, whose type is slow to import, it stays text."""
    return [
        parameter
        if parameter.name == "reading"
        else parameter.replace(annotation=eval(parameter.annotation, function.__globals__))
        for parameter in inspect.signature(function).parameters.values()
    ]


def _transform(entries: list[str]) -> Any:
    """`log` or `rank` for all columns, or by name what `COLUMN=log` says."""
    from gflowdag.data.read_options import Transform

    if len(entries) == 1 and entries[0] in get_args(Transform):
        return entries[0]
    by_column = {}
    for entry in entries:
        column, equals, transform = entry.rpartition("=")
        if not equals:
            raise GFlowDAGError(
                f"cannot read --transform {entry!r}: write log or rank, or COLUMN=log for one column"
            )
        by_column[column.strip()] = transform.strip()
    return by_column or None
