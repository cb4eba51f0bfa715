"""Appendix A: what happens to the GFlowNets as the number of observations grows."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pandas as pd

from gflowdag_lab.paper import figures
from gflowdag_lab.paper.experiment import Experiment, Section, Tables
from gflowdag_lab.paper.problems import Spec
from gflowdag_lab.paper.results import Results
from gflowdag_lab.paper.tables import Frame, by_training, drawn_label, label, markdown, size_of, spread

STUDY = "limitations"
NUM_VARIABLES = 10
METHODS = (
    "exact",
    "dag-gflownet-paper",
    "plain-policy",
    "temperature-schedule",
    "reparametrised-policy",
    "dag-gflownet",
    "order-gflownet",
)
_DRAWN = {
    "edge_r": "correlation with the exact posterior ↑",
    "edge_max_error": "largest error of an edge ↓",
    "ess": "effective sample size ↑",
}


def problems(quick: bool, num_datasets: int | None) -> list[Spec]:
    """10² … 10⁵ rows of networks of ten variables with ten expected edges (quick: the two ends)."""
    sizes = (100, 100_000) if quick else (100, 1000, 10_000, 100_000)
    count = num_datasets or (1 if quick else 5)
    return [
        Spec("linear-gaussian", NUM_VARIABLES, rows, seed, edges_per_node=1.0)
        for rows in sizes
        for seed in range(count)
    ]


def tables(results: Results) -> Tables:
    """`limitations`: every fit with its distance to the exact posterior."""
    judged = results.judged(STUDY, "exact")
    return {} if judged.empty else {"limitations": judged}


def draw(tables: Tables, folder: Path) -> list[Path]:
    """Quality against the number of rows."""
    if not tables:
        return []
    fits = tables["limitations"]
    fits = fits[fits["method"] != "exact"]
    figure, axes = figures.panels(1, len(_DRAWN), width=4, height=3.6)
    for cell, (column, title) in zip(axes[0], _DRAWN.items(), strict=True):
        if column in fits:
            name = partial(drawn_label, rows=fits)
            figures.curves(cell, fits.dropna(subset=[column]), "num_rows", column, name=name)
        cell.set(xscale="log", xlabel="rows", title=title)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    return [figures.save(figure, folder / "limitations.png")]


def section(tables: Tables) -> Section:
    """Quality against the number of rows, one line for each method and number."""
    if not tables:
        return Section(markdown([]))
    rows = []
    for (num_rows, method), group in tables["limitations"].groupby(["num_rows", "method"], sort=False):
        rows.append(
            {
                "rows": int(num_rows),
                "method": label(str(method)),
                "r": spread(_column(group, "edge_r"), 4),
                "r, unweighted samples": spread(_column(group, "unweighted_edge_r"), 4),
                "largest error": spread(_column(group, "edge_max_error"), 3),
                "error of the log evidence": spread(_column(group, "evidence_error"), 2),
                "ESS": spread(_column(group, "ess"), 3),
                "iterations": spread(_column(group, "iterations").astype(float), 0),
                "run": size_of(group),
            }
        )
    rows.sort(key=lambda row: row["rows"])
    finished, unfinished = by_training(rows, heading="")
    return Section(
        "Appendix A observes that training gets harder as data grow, because single edges change the "
        "score by ever more, and leaves two remedies as future work: a schedule of temperature, and a "
        "policy parametrised for large differences of scores. Both exist here. The rows *Edge-wise* share "
        "one trainer and one network and differ in nothing but the remedies: *no remedy* has neither, "
        "*DAG-GFlowNet (fast)* both, and from version 0.2 on graphs of chains. Linear-Gaussian networks of "
        f"{NUM_VARIABLES} variables with as many expected edges, standardised, so that the posterior is "
        "known exactly.\n\n" + _answer(tables["limitations"]) + finished,
        unfinished,
    )


def _answer(fits: Frame) -> str:
    """What becomes of each method from the fewest rows to the most, in one sentence; full-size rows alone."""
    fits = fits[(fits["size"] == "full") & (fits["method"] != "exact")]
    if "edge_r" not in fits:
        return ""
    medians = fits.pivot_table(
        index="method", columns="num_rows", values="edge_r", aggfunc="median", sort=False
    ).dropna()
    if medians.empty or len(medians.columns) < 2:
        return ""
    few, many = medians.columns.min(), medians.columns.max()
    sets = fits.groupby("method")["seed"].nunique()
    changes = [
        f"{drawn_label(str(m), fits)}{', one data set,' if sets[m] == 1 else ''} {r[few]:.3f} → {r[many]:.3f}"
        for m, r in medians.iterrows()
    ]
    return (
        f"**The answer in one line**, median correlation with the exact posterior at {few:,} and at {many:,} "
        f"rows: {'; '.join(changes)}.\n\n"
    )


def _column(rows: Frame, name: str) -> Frame:
    return rows[name] if name in rows else pd.Series(dtype=float)


EXPERIMENT = Experiment(
    name="limitations",
    title="Appendix A: many observations",
    study=STUDY,
    problems=problems,
    methods=METHODS,
    reference="exact",
    tables=tables,
    keys={STUDY: ("method", "task")},
    figures=draw,
    section=section,
)
