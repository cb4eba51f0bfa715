"""Tables of a page outlive the fits behind them: new rows take the place of old ones, the others stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from gflowdag.errors import GFlowDAGError
from gflowdag_lab.paper.experiment import Tables
from gflowdag_lab.paper.methods import METHODS
from gflowdag_lab.paper.tables import Frame

_FIDELITY = "edge_r"  # of the columns that need a reference


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
    _require_no_loss(kept[replaced], new, columns)
    # Columns without a value are left out: they would turn the numbers beside them into objects.
    parts = [part.dropna(axis=1, how="all") for part in (kept[~replaced], new)]
    table = pd.concat(parts, ignore_index=True).reindex(columns=kept.columns.union(new.columns, sort=False))
    return table.sort_values(columns, key=_rank, kind="stable", ignore_index=True)


def _require_no_loss(replaced: Frame, new: Frame, columns: list[str]) -> None:
    """Refuse rows that say less than those whose place they would take."""
    if _FIDELITY in replaced:
        known = pd.MultiIndex.from_frame(replaced.loc[replaced[_FIDELITY].notna(), columns])
        found = new.dropna(subset=[_FIDELITY]) if _FIDELITY in new else new.head(0)
        lost = known.difference(pd.MultiIndex.from_frame(found[columns]))
        if len(lost):
            raise GFlowDAGError(
                f"the new fit {lost[0][-1]} has no reference to be compared with, the one on the page has: "
                "run the reference of its experiment (exact; at d = 50 order-mcmc) into the same folder"
            )
    if "fits" in replaced:
        pairs = replaced.merge(new, on=columns, suffixes=("_kept", ""))
        if len(fewer := pairs[pairs["fits"] < pairs["fits_kept"]]):
            row = fewer.iloc[0]
            raise GFlowDAGError(
                f"there are {row['fits']} new fits of {', '.join(str(row[name]) for name in columns)}, and "
                f"{row['fits_kept']} on the page, whose place they would take: run at least as many data sets"
            )


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
