"""The answer in ten lines at most, before all tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from gflowdag_lab.paper import paper_numbers, structure_prior
from gflowdag_lab.paper.claims import FAILS, HOLDS, UNDECIDED
from gflowdag_lab.paper.claims.finding import PAPERS_RECIPE
from gflowdag_lab.paper.experiment import Tables
from gflowdag_lab.paper.tables import Frame, label, row_notes, was_cut_short

_GFLOWNETS = (
    PAPERS_RECIPE,
    "dag-gflownet-retuned",
    "dag-gflownet",
    "dag-gflownet-canonical",
    "dag-gflownet-chains",
    "order-gflownet",
)
_OTHER_RECIPE = f"{UNDECIDED} for the paper's recipe"
_VERDICTS = {HOLDS: "hold", FAILS: "do not", UNDECIDED: "are not decided"}
_PLACES = {
    "small-graphs": "figure 3",
    "lingauss20": "figure 4",
    "lingauss50": "appendix D",
    "sachs": "table 1",
    "sachs-interventional": "table 2",
    "limitations": "appendix A",
}
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
            yield f"{words}: {_listed(claims, found[verdict])}."
    yield from _papers_recipe(tables)
    small = _by_scaling(tables.get("small-graphs", _NO_ROWS), "edge_r", 4, "exact")
    if small:
        yield f"Figure 3, correlation of edges with the exact posterior, from 1,000 graphs: {small}."
    twenty = tables.get("lingauss20", _NO_ROWS)
    if large := _by_scaling(twenty, "edge_r", 3):
        yield f"Figure 4, the same at d = 20: {large}."
    if distances := _by_scaling(twenty[twenty["method"] == "exact"], "e_shd", 1, "exact"):
        yield (
            "On raw data a low E-SHD is no sign of a good approximation (finding 1); E-SHD at d = 20: "
            f"{distances}."
        )
    if line := structure_prior.line(tables):
        yield line
    yield from _sachs(tables)


def _listed(claims: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> str:
    """Claims in words: first those that need no other recipe to speak for the paper's."""
    own = [_whole(claims, row) for row in rows if _OTHER_RECIPE not in row["verdict"]]
    others = [_whole(claims, row) for row in rows if _OTHER_RECIPE in row["verdict"]]
    parts = ["; ".join(own)] if own else []
    if others:
        parts.append(f"for another recipe, with that of the paper not trained: {'; '.join(others)}")
    return "; ".join(parts)


def _whole(claims: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> str:
    """A claim; one that goes on with that above it, by its number in the list."""
    words = str(row["claim"])
    if not words.startswith("…"):
        return words
    above = next(c for c in reversed(claims[: claims.index(row)]) if not c["claim"].startswith("…"))
    return f"{above['claim']} {words}"


def _papers_recipe(tables: Tables) -> Iterator[str]:
    """Where the paper's own recipe was trained to its end, and where the clock ended it."""
    ended: dict[bool, list[str]] = {False: [], True: []}
    for name, place in _PLACES.items():
        rows = tables.get(name, _NO_ROWS)
        rows = rows[rows["method"] == PAPERS_RECIPE]
        groups = rows.groupby("scaling", sort=False) if name == "small-graphs" else [("", rows)]
        for scaling, part in groups:
            if len(part):
                ended[was_cut_short(part)].append(f"{place}, {scaling}" if scaling else place)
    if any(ended.values()):
        yield (
            f"The paper's recipe was trained for its {paper_numbers.ITERATIONS:,} iterations in: "
            f"{'; '.join(ended[False]) or 'none'}; the clock ended it in: {'; '.join(ended[True]) or 'none'} "
            "(section *Training not finished*)."
        )


def _by_scaling(table: Frame, column: str, digits: int, *others: str) -> str:
    """The medians of the GFlowNets that came to their end, and of `others`, raw and standardised."""
    parts = []
    for scaling, rows in table.groupby("scaling", sort=False):
        if values := _named(rows, column, digits, *others):
            parts.append(f"{scaling} {values}")
    return "; ".join(parts)


def _sachs(tables: Tables) -> Iterator[str]:
    """E-SHD of tables 1 and 2, by name; of the exact posterior by position too."""
    tables_of_the_paper: Any = {
        "sachs": paper_numbers.SACHS,
        "sachs-interventional": paper_numbers.SACHS_INTERVENTIONAL,
    }
    for number, (name, published) in enumerate(tables_of_the_paper.items(), start=1):
        rows = tables.get(name, _NO_ROWS)
        rows = rows[rows["reference_edges"] == 17]
        if "problem" in rows:
            rows = rows[rows["problem"] == name]
        found = dict(list(rows.groupby("alignment", sort=False)))
        if set(found) >= {"by name", "by position"}:
            said = published[PAPERS_RECIPE][1], published["mc3"][1]
            yield (
                f"Table {number}, E-SHD by name: {_named(found['by name'], 'e_shd', 2, 'exact', 'mc3')}; by "
                f"position: {_named(found['by position'], 'e_shd', 2, 'exact', 'mc3')}; published: "
                f"DAG-GFlowNet {said[0]:.2f}, MC3 {said[1]:.2f} (finding 2)."
            )


def _named(rows: Frame, column: str, digits: int, *others: str) -> str:
    """The medians of the GFlowNets that came to their end and of `others`, with their names."""
    if column not in rows:
        return ""
    named = []
    for name in (*others, *_GFLOWNETS):
        part = rows[rows["method"] == name]
        if len(part) and not row_notes(part):
            named.append(f"{label(name)} {part[column].median():.{digits}f}")
    return ", ".join(named)
