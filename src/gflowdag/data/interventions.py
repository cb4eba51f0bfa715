"""Which variables were set from outside in which rows: every way of saying so becomes one boolean mask."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from gflowdag.data.columns import plain_name
from gflowdag.errors import DataError
from gflowdag.runtime.messages import counted, unknown_name
from gflowdag.runtime.place import option

FORMS = (
    "a boolean mask [rows, variables], the name of a column, one name per row (None: observational), "
    "or a list of environments [(number of rows, targets), …]"
)


def intervention_mask(
    interventions: Any, names: Sequence[str], num_rows: int, *, base: int | None = None
) -> np.ndarray:
    """The mask of the variables that were set from outside.

    Args:
        interventions: one of

            - a boolean array [n, d], or a DataFrame of that shape whose columns are aligned by name;
            - one entry for each row: a name, several names (a list, or text separated by `,` `;` `|` or `+`),
              and `None`, NaN or empty text for an observational row;
            - one integer for each row, with `base`: `base` is the first variable, `base − 1` (or a missing
              value) an observational row. bnlearn's `INT` column has `base=1`;
            - environments `[(number_of_rows, targets), …]` in the order of the rows, with `targets` a name,
              a list of names, or `None`.
        names: the variables, in the order of the columns.
        num_rows: number of rows of the table.
        base: number of the first variable, for integers only.

    Returns:
        bool [n, d], True where the variable was set from outside.

    Raises:
        DataError: none of these forms, a wrong length, or an unknown name.
    """
    if isinstance(interventions, pd.DataFrame):
        return _check_mask(_aligned(interventions, names), names, num_rows)
    if isinstance(interventions, np.ndarray) and interventions.ndim == 2:
        return _check_mask(interventions, names, num_rows)
    if isinstance(interventions, str) or not hasattr(interventions, "__len__"):
        raise DataError(f"interventions must be {FORMS}; got {interventions!r}.")
    if _is_environments(interventions):
        return _from_environments(interventions, names, num_rows)

    cells = pd.Series([None if entry is pd.NA else entry for entry in interventions])
    if len(cells) != num_rows:
        raise DataError(
            f"interventions has {len(cells)} entries for {counted(num_rows, 'row')}; it must be {FORMS}."
        )
    if types.is_bool_dtype(cells):
        raise DataError(f"One True or False per row does not say which variable was set. Pass {FORMS}.")
    if types.is_numeric_dtype(cells) and cells.notna().any():
        return _from_numbers(cells, names, base)
    return _from_names(cells, names)


def _aligned(mask: pd.DataFrame, names: Sequence[str]) -> np.ndarray:
    mask = mask.rename(columns=plain_name)
    for name in mask.columns:
        if name not in names:
            raise DataError(
                f"The intervention mask has a column that the table lacks. {unknown_name(name, names)}"
            )
    if missing := [name for name in names if name not in mask.columns]:
        raise DataError(f"The intervention mask lacks the columns {', '.join(missing)}.")
    return mask[list(names)].to_numpy()


def _check_mask(mask: np.ndarray, names: Sequence[str], num_rows: int) -> np.ndarray:
    if mask.shape != (num_rows, len(names)):
        raise DataError(
            f"The intervention mask has shape {mask.shape}; the table has {counted(num_rows, 'row')} and "
            f"{counted(len(names), 'variable')}."
        )
    if mask.dtype != bool:
        try:
            is_mask = bool(np.isin(mask, (0, 1)).all())
        except TypeError:
            is_mask = False
        if not is_mask:
            raise DataError("The intervention mask must hold True and False (or 1 and 0) only.")
    return mask.astype(bool)


def _is_environments(interventions: Any) -> bool:
    return len(interventions) > 0 and all(
        isinstance(entry, tuple | list)
        and len(entry) == 2
        and isinstance(entry[0], int | np.integer)
        and not isinstance(entry[0], bool)
        for entry in interventions
    )


def _from_environments(environments: Any, names: Sequence[str], num_rows: int) -> np.ndarray:
    sizes = [int(rows) for rows, _ in environments]
    if min(sizes) < 1 or sum(sizes) != num_rows:
        raise DataError(
            f"The environments have {' + '.join(map(str, sizes))} = {sum(sizes)} rows, the table {num_rows}. "
            "List every environment with its number of rows, in the order of the rows."
        )
    rows = np.zeros((len(environments), len(names)), dtype=bool)
    for row, (_, targets) in zip(rows, environments, strict=True):
        row[_targets(targets, names)] = True
    return np.repeat(rows, sizes, axis=0)


def _from_numbers(cells: pd.Series, names: Sequence[str], base: int | None) -> np.ndarray:
    if base is None:
        raise DataError(
            "The interventions are numbers: say which number stands for the first variable. "
            f"{option('intervention_base', 1)} where 1 is the first variable and 0 means none (bnlearn's "
            f"INT), {option('intervention_base', 0)} where 0 is the first variable and −1 or empty is none."
        )
    if not isinstance(base, int | np.integer):
        raise DataError(
            f"{option('intervention_base')} must be a whole number, usually 0 or 1; got {base!r}."
        )
    numbers = cells.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan)
    index = np.where(np.isnan(numbers), -1, numbers - base)
    bad = (index != np.floor(index)) | (index < -1) | (index >= len(names))
    if bad.any():
        raise DataError(
            f"Intervention {numbers[bad][0]:g} in row {bad.argmax() + 1} is not a variable. With "
            f"{option('intervention_base', base)} variables are {base} to "
            f"{base + len(names) - 1}; {base - 1} is none."
        )
    return index[:, None] == np.arange(len(names))


def _from_names(cells: pd.Series, names: Sequence[str]) -> np.ndarray:
    mask = np.zeros((len(cells), len(names)), dtype=bool)
    for row, entry in enumerate(cells.tolist()):
        mask[row, _targets(entry, names)] = True
    return mask


def _targets(entry: Any, names: Sequence[str]) -> list[int]:
    """Positions of the variables that one entry names; none for an observational one."""
    if entry is None or (isinstance(entry, float) and np.isnan(entry)):
        return []
    if isinstance(entry, str):
        entry = entry.strip()
        if entry in names:
            return [list(names).index(entry)]
        entry = [part.strip() for part in re.split(r"[,;|+]", entry) if part.strip()]
    if not isinstance(entry, list | tuple | set | frozenset | np.ndarray):
        raise DataError(f"{entry!r} names no variable; interventions must be {FORMS}.")
    targets = [plain_name(name) for name in entry]
    for name in targets:
        if name not in names:
            raise DataError(
                f"An intervention targets an unknown variable. {unknown_name(name, names)} "
                "Leave the entry empty for an observational row."
            )
    return [list(names).index(name) for name in targets]
