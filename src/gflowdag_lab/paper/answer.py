"""The answer in ten lines at most, before all tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from gflowdag_lab.paper.claims import FAILS, HOLDS, UNDECIDED
from gflowdag_lab.paper.experiment import Tables
from gflowdag_lab.paper.tables import Frame, drawn_label

_GFLOWNETS = (
    "dag-gflownet-paper",
    "dag-gflownet-retuned",
    "dag-gflownet",
    "dag-gflownet-chains",
    "order-gflownet",
)
_OTHER_RECIPE = f"{UNDECIDED} for the paper's recipe"
_NO_ROWS: Frame = pd.DataFrame({"method": [], "scaling": [], "alignment": [], "reference_edges": []})


def text(tables: Tables, claims: Sequence[Mapping[str, Any]]) -> str:
    """A list of lines; those whose tables have not been computed are left out.

    Args:
        tables: all tidy tables by name.
        claims: the rows of `claims_table`.
    """
    return "\n".join(f"- {line}" for line in _lines(tables, claims))


def _lines(tables: Tables, claims: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    found = {verdict: [row for row in claims if row["verdict"].startswith(verdict)] for verdict in _VERDICTS}
    counts = ", ".join(f"{len(found[verdict])} {words}" for verdict, words in _VERDICTS.items())
    elsewhere = sum(_OTHER_RECIPE in row["verdict"] for row in claims)
    yield f"Of {len(claims)} claims of the paper {counts} ({elsewhere} by another recipe than the paper's)."
    for verdict, words in ((FAILS, "Do not hold"), (UNDECIDED, "Not decided")):
        if found[verdict]:
            yield f"{words}: {'; '.join(row['claim'] for row in found[verdict])}."
    small = tables.get("small-graphs", _NO_ROWS)
    for scaling, rows in small.groupby("scaling", sort=False):
        yield f"Figure 3, {scaling}, correlation of edges: {_named(rows, 'edge_r', 4, 'exact')}."
    for scaling, rows in tables.get("lingauss20", _NO_ROWS).groupby("scaling", sort=False):
        yield f"Figure 4, {scaling}, correlation with the exact posterior: {_named(rows, 'edge_r', 3)}."
    for number, name in ((1, "sachs"), (2, "sachs-interventional")):
        rows = tables.get(name, _NO_ROWS)
        rows = rows[(rows["alignment"] == "by name") & (rows["reference_edges"] == 17)]
        if "problem" in rows:
            rows = rows[rows["problem"] == name]
        if len(rows):
            yield f"Table {number}, E-SHD by name: {_named(rows, 'e_shd', 2, 'exact', 'mc3')}."


_VERDICTS = {HOLDS: "hold", FAILS: "do not", UNDECIDED: "are not decided"}


def _named(rows: Frame, column: str, digits: int, *others: str) -> str:
    """The medians of the GFlowNets and of `others`, with their names."""
    methods = [name for name in (*others, *_GFLOWNETS) if (rows["method"] == name).any()]
    return ", ".join(
        f"{drawn_label(name, rows)} {rows.loc[rows['method'] == name, column].median():.{digits}f}"
        for name in methods
        if column in rows
    )
