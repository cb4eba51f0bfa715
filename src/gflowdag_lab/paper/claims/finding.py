"""What a claim is judged by: the rows behind it, and the recipe that speaks for the DAG-GFlowNet."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gflowdag_lab.paper import paper_numbers
from gflowdag_lab.paper.experiment import Tables
from gflowdag_lab.paper.tables import Frame, earlier_versions

LEARNT = 0.05  # effective sample size from which on a policy counts as trained
_FAITHFUL = 0.99  # the same, of the correlation of its edge probabilities with the exact ones
_WRONG = 0.95  # correlation below which it does not, whatever its effective sample size
PAPERS_RECIPE = "dag-gflownet-paper"
_OTHER_RECIPES = (
    "dag-gflownet-retuned",
    "dag-gflownet",
    "dag-gflownet-canonical",
    "dag-gflownet-chains",
)


class Finding(NamedTuple):
    """Our side of a claim."""

    ours: str
    holds: bool
    rows: Frame  # the rows behind it, for their `size`
    why: str = ""  # what lies behind a difference, with its number
    speaker: str = PAPERS_RECIPE  # which DAG-GFlowNet it was judged by, where it is about one
    settled: bool = False  # more training could not change it


class Claim(NamedTuple):
    """A sentence of the paper and what tests it."""

    text: str
    where: str  # in the paper
    test: Callable[[Tables], Finding]  # its docstring is the rule
    changed: str = ""  # how the rule was changed when rows were there already


def suffice(trained: Frame, share: float = 0.5) -> bool:
    """Whether these fits of the paper's recipe are today's and had half of its iterations, or all."""
    return bool(
        (trained["size"] == "full").all()
        and trained["iterations"].min() >= share * paper_numbers.ITERATIONS
        and not earlier_versions(trained)
    )


def speaker_of(table: Frame, final: bool) -> str:
    """Which row speaks for the DAG-GFlowNet: the paper's recipe, or one that has learnt the posterior.

    Args:
        table: has the rows of all recipes.
        final: whether more training of the paper's recipe could not change what it says.
    """
    if suffice(of(table, PAPERS_RECIPE), share=0.5 if final else 1.0):
        return PAPERS_RECIPE
    recipes = [name for name in _OTHER_RECIPES if not earlier_versions(table[table["method"] == name])]
    others = table[table["method"].isin(recipes) & (table["size"] == "full")]
    medians = others.groupby("method")[[name for name in ("ess", "edge_r") if name in others]].median()
    learnt = medians["ess"] > LEARNT
    if "edge_r" in medians:
        # Weights degenerate with the number of variables long before marginals go wrong, and they do not see
        # what was never drawn.
        learnt = (learnt | (medians["edge_r"] > _FAITHFUL)) & ~(medians["edge_r"] < _WRONG)
    learnt = medians[learnt]
    return PAPERS_RECIPE if learnt.empty else str(learnt["ess"].idxmax())


def behind(speaker: str, table: Frame) -> str:
    """How far the paper's recipe came, where another one speaks; else nothing."""
    if speaker == PAPERS_RECIPE:
        return ""
    rows = of(table, PAPERS_RECIPE)
    least = rows.groupby("scaling", sort=False)["iterations"].min() if "scaling" in rows else None
    if least is None or least.nunique() == 1:
        made = f"{rows['iterations'].min():,.0f}"
    else:
        made = " and ".join(f"{number:,.0f} ({scaling})" for scaling, number in least.items())
    iterations = f"{made} of its {paper_numbers.ITERATIONS:,} iterations"
    by = "".join(f" by version {version}" for version in earlier_versions(rows))
    return f"; the paper's recipe had {iterations}{by}, and a median ESS of {rows['ess'].median():.3f}"


def of(table: Frame, *methods: str) -> Frame:
    """The rows of the methods, all of which must be there."""
    for method in methods:
        if not (table["method"] == method).any():
            raise KeyError(method)
    return table[table["method"].isin(methods)]


def raw(tables: Tables, study: str) -> Frame:
    return tables[study][tables[study]["scaling"] == "raw"]


def in_common(rows: Frame, by: str = "seed") -> Frame:
    """The rows of the data sets that all methods were run on: others would compare data, not methods."""
    count = rows.groupby(by)["method"].nunique()
    return rows[rows[by].isin(count.index[count == rows["method"].nunique()])]
