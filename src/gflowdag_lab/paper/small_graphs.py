"""Figure 3: probabilities of edges, paths and Markov blankets against the exact ones, five variables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from gflowdag import plot
from gflowdag_lab.paper import figures, paper_numbers
from gflowdag_lab.paper.experiment import Experiment, Section, Tables
from gflowdag_lab.paper.judge import sampled
from gflowdag_lab.paper.methods import FOR_A_DOZEN
from gflowdag_lab.paper.policies import FEATURES as PROBABILITIES
from gflowdag_lab.paper.policies import kept_policy
from gflowdag_lab.paper.problems import Spec
from gflowdag_lab.paper.results import Results, study_folder
from gflowdag_lab.paper.tables import (
    Frame,
    as_runs,
    by_training,
    combined,
    drawn_label,
    label,
    markdown,
    shown,
    size_of,
)

STUDY = "small-graphs"
FEATURES = {"edge": "edges", "path": "paths", "markov blanket": "Markov blankets"}
_SOURCES = {"unweighted": "the samples alone", "estimate": "weighted", "policy": "policy's own"}
_DRAWN = ("dag-gflownet-paper", "dag-gflownet-retuned", "dag-gflownet", "order-gflownet")


def problems(quick: bool, num_datasets: int | None) -> list[Spec]:
    """20 networks of five variables with 100 rows (quick: two), raw and standardised."""
    count = num_datasets or (2 if quick else 20)
    return [
        Spec("linear-gaussian", 5, 100, seed, scaling)
        for scaling in ("raw", "standardised")
        for seed in range(count)
    ]


def tables(results: Results) -> Tables:
    """`small-graphs-points`: every probability; `small-graphs`: correlation over all networks.

    Each probability stands there as estimated from the weighted samples, from the samples alone where they
    have weights, and from the policy itself where it was kept.
    """
    fits = results.successes(STUDY)
    if fits.empty:
        return {}
    between = ~np.eye(5, dtype=bool)
    points = []
    for row in fits.to_dict(orient="records"):
        exact = results.all_graphs(row)
        estimate = sampled(results.posterior(STUDY, row))
        folder = study_folder(results.out, STUDY, quick=row["size"] == "quick")
        policy = kept_policy(folder, row["problem"], row["method"])
        weighted = np.ptp(estimate.log_weights) > 0
        points += [
            pd.DataFrame(
                {
                    "method": row["method"],
                    "scaling": row["scaling"],
                    "problem": row["problem"],
                    "feature": feature,
                    "exact": probabilities(exact).to_numpy()[between],
                    "estimate": probabilities(estimate).to_numpy()[between],
                    "unweighted": probabilities(estimate, weighted=False).to_numpy()[between]
                    if weighted
                    else np.nan,
                    "policy": np.nan if policy is None else policy[feature][between],
                }
            )
            for feature, probabilities in PROBABILITIES.items()
        ]
    table = pd.concat(points, ignore_index=True)
    return {"small-graphs-points": table, "small-graphs": _correlations(table, fits)}


def _correlations(points: Frame, fits: Frame) -> Frame:
    rows = []
    for (scaling, method), group in points.groupby(["scaling", "method"], sort=False):
        mine = fits[(fits["method"] == method) & (fits["scaling"] == scaling)]
        row = {"scaling": scaling, "method": method}
        for feature in FEATURES:
            part = group[group["feature"] == feature]
            row[f"{feature}_r"] = np.corrcoef(part["exact"], part["estimate"])[0, 1]
            row[f"{feature}_max_error"] = (part["exact"] - part["estimate"]).abs().max()
            for source in ("unweighted", "policy"):
                known = part.dropna(subset=[source])
                if len(known) == len(part):
                    row[f"{feature}_{source}_r"] = np.corrcoef(known["exact"], known[source])[0, 1]
                    row[f"{feature}_{source}_max_error"] = (known["exact"] - known[source]).abs().max()
        if "ess" in mine:
            row["ess"] = mine["ess"].median()
        if "cyclic_fraction" in mine:
            row["cyclic_fraction"] = mine["cyclic_fraction"].mean()
        rows.append(row | combined(as_runs(mine)) | {"run": size_of(mine)})
    return pd.DataFrame(rows)


def draw(tables: Tables, folder: Path) -> list[Path]:
    """Three scatter plots for each GFlowNet, the scalings in two colours."""
    if not tables:
        return []
    points, fits = tables["small-graphs-points"], tables[STUDY]
    methods = [method for method in _DRAWN if (fits["method"] == method).any()]
    figure, axes = figures.panels(max(len(methods), 1), len(FEATURES))
    for line, method in zip(axes, methods, strict=False):
        for cell, (feature, words) in zip(line, FEATURES.items(), strict=True):
            part = points[(points["method"] == method) & (points["feature"] == feature)]
            plot.agreement(
                part["exact"], part["estimate"], groups=part["scaling"], label=f"estimate, {words}", ax=cell
            )
            cell.set_title(f"{drawn_label(method, fits)}\n{words}", fontsize=9)
    return [figures.save(figure, folder / "small-graphs.png")]


def section(tables: Tables) -> Section:
    """What figure 3 says, ours beside the paper's."""
    if not tables:
        return Section(markdown([]))
    published = paper_numbers.SMALL_GRAPHS
    rows = []
    for row in tables["small-graphs"].to_dict(orient="records"):
        paper = row["method"] == "dag-gflownet-paper"
        rows.append(
            {
                "method": label(row["method"]),
                "data": row["scaling"],
                **{f"r, {words}": row[f"{feature}_r"] for feature, words in FEATURES.items()},
                "largest error of an edge": row["edge_max_error"],
                "paper (edges / paths / blankets)": " / ".join(f"{published[f'{f}_r']}" for f in FEATURES)
                if paper
                else None,
                "ESS": row.get("ess"),
                "run": row["run"],
            }
        )
    digits = {f"r, {words}": 4 for words in FEATURES.values()}
    finished, unfinished = by_training(rows, digits, heading="")
    return Section(
        "N = 100, one expected edge per variable (the paper does not say how dense its graphs were). "
        "Features of the 1,000 samples of each method (importance-weighted where the method has weights) "
        "against the sum over all 29,281 DAGs. The row *Exact posterior* is 1,000 independent exact "
        "draws: its distance from 1 is sampling noise, and no method can be told apart from exact beyond "
        "it.\n\n" + finished + _side_by_side(tables["small-graphs"]) + _by_network(tables),
        unfinished,
    )


def _side_by_side(table: Frame) -> str:
    """The samples alone, which is what the paper counts, beside the weighted ones and the policy itself."""
    rows = []
    for row in table.to_dict(orient="records"):
        if pd.isna(row.get("edge_unweighted_r")):
            continue
        cells = {"method": drawn_label(row["method"], pd.DataFrame([row])), "data": row["scaling"]}
        for source, words in _SOURCES.items():
            middle = "" if source == "estimate" else f"_{source}"
            numbers = [row.get(f"{feature}{middle}_r") for feature in FEATURES]
            cells[f"r, {words}"] = " / ".join(shown(number, 4) for number in numbers)
            cells[f"largest error of an edge, {words}"] = row.get(f"edge{middle}_max_error")
        rows.append(cells)
    if not rows:
        return ""
    return (
        "\n\nWith and without weights (r of edges / paths / Markov blankets). The paper counts the samples "
        "alone; the policy's own probabilities are summed over all DAGs, without the noise of sampling.\n\n"
        + markdown(rows)
    )


def _by_network(tables: Tables) -> str:
    """How many networks the paper's recipe has learnt."""
    fits, points = tables[STUDY], tables["small-graphs-points"]
    mine = fits[fits["method"] == "dag-gflownet-paper"]
    if mine.empty or (mine["size"] == "quick").any() or not (fits["method"] == "exact").any():
        return ""
    edges = points[(points["method"] == "dag-gflownet-paper") & (points["feature"] == "edge")]
    noise = fits[fits["method"] == "exact"].set_index("scaling")["edge_max_error"]
    sentences = []
    for scaling, part in edges.groupby("scaling", sort=False):
        networks = [(p["exact"], p["estimate"]) for _, p in part.groupby("problem")]
        median = np.median([np.corrcoef(*pair)[0, 1] for pair in networks])
        near = sum((exact - estimate).abs().max() <= noise[scaling] for exact, estimate in networks)
        sentences.append(
            f"{scaling}: median r of the edges of one network {median:.3f}, {near} of {len(networks)} "
            f"networks within {noise[scaling]:.3f}, the largest error of exact draws"
        )
    return (
        "\n\n*DAG-GFlowNet (paper)* by network, since those that it has not learnt decide the correlation "
        f"over all of them: {'; '.join(sentences)}."
    )


EXPERIMENT = Experiment(
    name="small-graphs",
    title="Figure 3: five variables, against the exact posterior",
    study=STUDY,
    problems=problems,
    methods=FOR_A_DOZEN,
    reference="exact",
    tables=tables,
    keys={"small-graphs-points": ("method", "scaling"), STUDY: ("method", "scaling")},
    figures=draw,
    section=section,
)
