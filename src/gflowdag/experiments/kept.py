"""Tables of a page outlive the fits behind them: new rows take the place of old ones, the others stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from gflowdag.experiments.experiment import Tables
from gflowdag.experiments.methods import METHODS
from gflowdag.experiments.tables import Frame


def updated(kept: Tables, new: Tables, keys: Mapping[str, Sequence[str]]) -> Tables:
    """The tables of an experiment from those on its page and those of new fits.

    A method that was run at full size shows full-size rows alone, wherever they are from.

    Args:
        kept: tables on the page, by name.
        new: tables of the fits.
        keys: of each table, the columns that tell which of its rows take each other's place.
    """
    sizes = [_size_of_methods(tables) for tables in (kept, new)]
    full = {method for size in sizes for method in size if size[method] == "full"}
    quick_kept, quick_new = ({method for method in size if size[method] == "quick"} for size in sizes)
    kept = {name: _without(table, full & quick_kept) for name, table in kept.items()}
    new = {name: _without(table, full & quick_new) for name, table in new.items()}
    empty = pd.DataFrame()
    return {name: merged(kept.get(name, empty), new.get(name, empty), key) for name, key in keys.items()}


def merged(kept: Frame, new: Frame, key: Sequence[str]) -> Frame:
    """All of `new`, and what `kept` has under other values of the columns `key`, sorted by these."""
    if kept.empty or new.empty:
        return new if kept.empty else kept
    columns = list(key)
    replaced = pd.MultiIndex.from_frame(kept[columns]).isin(pd.MultiIndex.from_frame(new[columns]))
    table = pd.concat([kept[~replaced], new], ignore_index=True)
    return table.sort_values(columns, key=_rank, kind="stable", ignore_index=True)


def _rank(values: Frame) -> Frame:
    """What to sort a column by: methods have the order of `METHODS`, and the true graph comes last."""
    if values.name != "method":
        return values
    order = {name: rank for rank, name in enumerate(METHODS)}
    return values.map(lambda name: order.get(name, len(order)))


def _size_of_methods(tables: Tables) -> dict[str, str]:
    pairs = [table[["method", "size"]] for table in tables.values() if {"method", "size"} <= set(table)]
    return {method: size for table in pairs for method, size in table.itertuples(index=False)}


def _without(table: Frame, methods: set[str]) -> Frame:
    return table[~table["method"].isin(methods)] if "method" in table else table
