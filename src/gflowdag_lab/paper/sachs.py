"""Tables 1 and 2 and figures 5 and 8: protein signalling from flow cytometry (Sachs et al. 2005)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chisquare

from gflowdag import metrics, plot
from gflowdag.graph import class_keys, class_size, cpdag, graph_keys
from gflowdag.posterior import Posterior
from gflowdag_lab.paper import figures, judge, paper_numbers
from gflowdag_lab.paper.experiment import Experiment, Section, Tables
from gflowdag_lab.paper.methods import FOR_A_DOZEN, WITH_INTERVENTIONS
from gflowdag_lab.paper.problems import SACHS, Spec
from gflowdag_lab.paper.results import Results
from gflowdag_lab.paper.tables import Frame, by_training, drawn_label, label, markdown, shown, size_of

CONTINUOUS, INTERVENTIONAL = "sachs", "sachs-interventional"
ALIGNMENTS = ("by name", "by position")
_FEW = ("mc3", "gadget", "dag-gflownet-paper", "dag-gflownet", "order-gflownet")  # figure 5


def reference_graphs(consensus: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """The two consensus graphs in use, by their number of edges.

    Args:
        consensus: the graph of 17 edges, bool [source, target].
    """
    larger = consensus.copy()
    larger.loc["Plcg", "PIP3"] = False
    for source, target in (("PIP3", "Plcg"), ("PIP2", "PKC"), ("Plcg", "PKC"), ("PIP3", "Akt")):
        larger.loc[source, target] = True
    return {17: consensus, 20: larger}


def problems_continuous(quick: bool, num_datasets: int | None) -> list[Spec]:
    """The one data set of table 1."""
    del quick, num_datasets
    return [SACHS["sachs"]]


def problems_interventional(quick: bool, num_datasets: int | None) -> list[Spec]:
    """The data of table 2, and the continuous data of all nine conditions."""
    del quick, num_datasets
    return [SACHS["sachs-interventional"], SACHS["sachs-all"]]


def table_continuous(results: Results) -> Tables:
    """`sachs`: every method under both graphs and alignments; `sachs-random-orders`: wrong orders."""
    return _recovery_tables(results, CONTINUOUS)


def table_interventional(results: Results) -> Tables:
    """`sachs-interventional`: the same for the two interventional data sets."""
    return _recovery_tables(results, INTERVENTIONAL)


def _recovery_tables(results: Results, study: str) -> Tables:
    rows = list(_recoveries(results, study))
    if not rows:
        return {}
    shuffled = list(_random_orders(results, study))
    return {study: pd.DataFrame(rows), f"{study}-random-orders": pd.DataFrame(shuffled)}


def _recovery_keys(study: str) -> dict[str, tuple[str, ...]]:
    return {study: ("method", "task"), f"{study}-random-orders": ("problem",)}


def _random_orders(results: Results, study: str) -> Iterator[dict[str, Any]]:
    """How the exact posterior compares with the graph in random wrong orders, for each data set."""
    fits = results.successes(study)
    for fit in fits[fits["method"] == "exact"].to_dict(orient="records"):
        posterior, consensus = results.posterior(study, fit), results.problem(fit).truth
        assert consensus is not None
        yield {"problem": fit["problem"], **judge.random_orders(posterior, consensus)}


def _recoveries(results: Results, study: str) -> Iterator[dict[str, Any]]:
    for fit in results.successes(study).to_dict(orient="records"):
        posterior, consensus = results.posterior(study, fit), results.problem(fit).truth
        assert consensus is not None
        exact = results.reference(study, fit["problem"], "exact")
        fit = fit | ({} if exact is None else judge.fidelity(posterior, exact))
        for num_edges, graph in reference_graphs(consensus).items():
            for alignment in ALIGNMENTS:
                truth = graph if alignment == "by name" else judge.misaligned(graph)
                judgement = judge.recovery(posterior, truth) | judge.bootstrap_intervals(posterior, truth)
                yield fit | {"reference_edges": num_edges, "alignment": alignment} | judgement


def section_continuous(tables: Tables) -> Section:
    """Table 1 in both alignments."""
    if not tables:
        return Section(markdown([]))
    table = tables[CONTINUOUS]
    note = (
        "853 observations, standardised, BGe. E-edges, E-SHD and AUROC are those of 1,000 samples, with 95 % "
        "bootstrap intervals over the samples (they take the draws of a Markov chain as independent); AUROC "
        "counts the diagonal; *AUROC, marginals* uses the method's own edge probabilities (exact or "
        "Rao–Blackwellised where it has them). Which way the published numbers were aligned is not known "
        "(finding 2), so they stand in both tables."
    )
    finished, unfinished = _in_both_alignments(table, paper_numbers.SACHS, "")
    return _as_section([note, *finished, _larger_graph(table)], unfinished)


def section_interventional(tables: Tables) -> Section:
    """Table 2 in both alignments, and the continuous data."""
    if not tables:
        return Section(markdown([]))
    table = tables[INTERVENTIONAL]
    parts = [
        "5,400 observations at three levels under nine conditions, BDeu with the rows in which a variable "
        "was set left out of its own local score. The consensus graph was drawn from these same "
        "experiments, so recovery is partly circular: a high AUROC here says that the posterior finds "
        "what the same data had been found to say. Bootstrap GES, Bootstrap PC and BCD Nets cannot use "
        "interventions. The paper quotes 0.816 as the exact posterior's AUROC from Eaton & Murphy (2007); "
        "our exact row is computed on these data, with a uniform prior over DAGs, and is above it by name "
        "and below it by position."
    ]
    unfinished: list[str] = []
    for problem, title in (("sachs-interventional", "Discrete"), ("sachs-all", "Continuous")):
        part = table[table["problem"] == problem]
        if part.empty:
            continue
        if problem == "sachs-all":
            parts.append(
                "**Continuous interventional data** (7,466 observations of the nine conditions, "
                "standardised, interventional BGe): not in the paper."
            )
        beside = paper_numbers.SACHS_INTERVENTIONAL if problem == "sachs-interventional" else {}
        finished, cut_short = _in_both_alignments(part, beside, f"*{title}.* ")
        parts += [*finished, _larger_graph(part)]
        unfinished += cut_short
    return _as_section(parts, unfinished)


def _in_both_alignments(
    table: Frame, published: Mapping[str, tuple[float | None, float | None, float]], title: str
) -> tuple[list[str], list[str]]:
    """Tables of the rows that came to their end, and of the others, each with its heading."""
    found = []
    for alignment in ALIGNMENTS:
        rows = table[(table["reference_edges"] == 17) & (table["alignment"] == alignment)]
        heading = title + _alignment_heading(alignment, 17)
        found.append(by_training(_lines(rows, published), heading=heading))
    return [finished for finished, _ in found], [unfinished for _, unfinished in found]


def _as_section(finished: list[str], unfinished: list[str]) -> Section:
    return Section("\n\n".join(filter(None, finished)), "\n\n".join(filter(None, unfinished)))


def _alignment_heading(alignment: str, num_edges: int) -> str:
    words = {
        "by name": f"Graph of {num_edges} edges, **aligned by name**:",
        "by position": f"Graph of {num_edges} edges **in alphabetical order, read in the order of the data's "
        "columns** (finding 2):",
    }
    return words[alignment]


def _lines(
    rows: Frame, published: Mapping[str, tuple[float | None, float | None, float]]
) -> list[dict[str, Any]]:
    lines = []
    for row in rows.to_dict(orient="records"):
        line: dict[str, Any] = {
            "method": label(row["method"]),
            "E-edges": _with_interval(row, "e_edges", 2),
            "E-SHD": _with_interval(row, "e_shd", 2),
            "AUROC": _with_interval(row, "auroc", 3),
            "AUROC, marginals": row["marginal_auroc"],
        }
        if published:
            numbers = published.get(row["method"], (None, None, None))
            line["paper: edges / SHD / AUROC"] = (
                " / ".join(shown(x, digits) for x, digits in zip(numbers, (2, 2, 3), strict=True))
                if row["method"] in published
                else None
            )
        if row["alignment"] == ALIGNMENTS[0]:  # it does not depend on the graph
            line["fidelity: r"] = shown(row.get("edge_r"), 4)
            line["largest error"] = row.get("edge_max_error")
            line["unweighted: edges / r / largest error"] = _unweighted(row)
            line["ESS"] = row.get("ess")
        line["run"] = size_of(pd.DataFrame([row]))
        lines.append(line)
    return lines


def _unweighted(row: dict[str, Any]) -> str | None:
    """The samples without their weights, where they have any."""
    if bool(pd.isna(row.get("ess"))) or "unweighted_edge_max_error" not in row:
        return None
    names = {"unweighted_e_edges": 2, "unweighted_edge_r": 4, "unweighted_edge_max_error": 3}
    return " / ".join(shown(row[name], digits) for name, digits in names.items())


def _with_interval(row: dict[str, Any], name: str, digits: int) -> str:
    low, high = shown(row[f"{name}_low"], digits), shown(row[f"{name}_high"], digits)
    return f"{shown(row[name], digits)} ({low}–{high})"


def _larger_graph(table: Frame) -> str:
    rows = [
        {
            "method": drawn_label(row["method"], pd.DataFrame([row])),
            "E-SHD": row["e_shd"],
            "AUROC": row["auroc"],
            "AUROC, marginals": row["marginal_auroc"],
        }
        for row in table[(table["reference_edges"] == 20) & (table["alignment"] == "by name")].to_dict(
            orient="records"
        )
    ]
    return _alignment_heading("by name", 20) + "\n\n" + markdown(rows, {"E-SHD": 2})


# -- figures 5 and 8: coverage -------------------------------------------------------------------------------


def table_coverage(results: Results) -> Tables:
    """`sachs-coverage`: every class that a method sampled; `sachs-classes`: one line for each method."""
    classes, even = [], []
    for fit in results.successes(CONTINUOUS).to_dict(orient="records"):
        posterior = results.posterior(CONTINUOUS, fit)
        table = metrics.class_coverage(posterior)
        table["class_size"] = table["class_size"].astype(float)
        table.insert(0, "method", fit["method"])
        known = {name: fit.get(name) for name in ("size", "num_variables", "iterations", "version")}
        classes.append(table.assign(**known))
        size, p_value = evenness(posterior)
        even.append(
            {"method": fit["method"], **known, "class_size": size, "p_value": p_value}
            | {name: fit.get(name) for name in ("ess", "cyclic_fraction", "best_log_score")}
            | {"num_particles": posterior.diagnostics().get("num_particles")}
        )
    if not classes:
        return {}
    return {"sachs-coverage": pd.concat(classes, ignore_index=True), "sachs-classes": pd.DataFrame(even)}


def draw_coverage(tables: Tables, folder: Path) -> list[Path]:
    """Figure 5: linear, MCMC and GFlowNets. Figure 8: logarithmic, all."""
    if not tables:
        return []
    fits = tables["sachs-classes"]
    classes = dict(list(tables["sachs-coverage"].groupby("method", sort=False)))
    paths = []
    for number, chosen, logarithmic in (("5", _FEW, False), ("8", FOR_A_DOZEN, True)):
        shown_here = {name: part for name, part in classes.items() if name in chosen}
        if shown_here:
            figure, axes = figures.panels(1, 1, width=8, height=4.5)
            named = {drawn_label(name, fits): part for name, part in shown_here.items()}
            with figures.colours_of(shown_here):  # edges are coloured when the figure is drawn
                plot.class_coverage(named, log=logarithmic, ax=axes[0, 0])
                paths.append(figures.save(figure, folder / f"sachs-coverage-figure{number}.png"))
    return paths


def section_coverage(tables: Tables) -> Section:
    """Classes, distinct graphs and best scores of each method."""
    if not tables:
        return Section(markdown([]))
    rows = []
    for method, part in tables["sachs-coverage"].groupby("method", sort=False):
        best = part["log_score"].max()
        rows.append(
            {
                "method": drawn_label(str(method), tables["sachs-classes"]),
                "distinct DAGs": int(part["num_graphs"].sum()),
                "classes": len(part),
                "DAGs per class, at most": int(part["num_graphs"].max()),
                "share of the most probable class": part["probability"].max(),
                "best score": shown(best, 2),
                "lowest score": shown(part["log_score"].min(), 2),
                "class of the best score": "the optimum"
                if best > paper_numbers.BEST_GES_SCORE - 0.01
                else None,
                "run": part["size"].iloc[0],
            }
        )
    return Section(
        "Equivalence classes among the 1,000 samples of each method on the continuous Sachs data. The "
        f"best score of any DAG is {paper_numbers.BEST_GES_SCORE:,.2f} (the paper's best GES class, and "
        "ours by exact search).\n\n" + markdown(rows)
    )


def _no_figures(tables: Tables, folder: Path) -> list[Path]:
    del tables, folder
    return []


def evenness(posterior: Posterior) -> tuple[int, float]:
    """Whether the members of the most sampled class are sampled equally often.

    Returns:
        The size of that class and the p-value of a χ² test over all its members, sampled or not; importance
        weights are left out, since the question is about the sampler.
    """
    keys = graph_keys(posterior.samples)
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    member_of = pd.factorize(pd.Series(list(class_keys(posterior.samples[first]))))[0]
    largest = np.bincount(member_of, weights=counts).argmax()
    members = member_of == largest
    size = class_size(cpdag(posterior.samples[first[members][:1]])[0])
    frequencies = np.zeros(size)
    frequencies[: members.sum()] = counts[members]
    return size, float(chisquare(frequencies).pvalue) if size > 1 else float("nan")


EXPERIMENTS = (
    Experiment(
        name="sachs",
        title="Table 1: flow cytometry, observational",
        study=CONTINUOUS,
        problems=problems_continuous,
        methods=FOR_A_DOZEN,
        reference="exact",
        tables=table_continuous,
        keys=_recovery_keys(CONTINUOUS),
        figures=_no_figures,
        section=section_continuous,
    ),
    Experiment(
        name="sachs-coverage",
        title="Figures 5 and 8: coverage of equivalence classes",
        study=CONTINUOUS,
        problems=problems_continuous,
        methods=FOR_A_DOZEN,
        reference="exact",
        tables=table_coverage,
        keys={"sachs-coverage": ("method",), "sachs-classes": ("method",)},
        figures=draw_coverage,
        section=section_coverage,
    ),
    Experiment(
        name="sachs-interventional",
        title="Table 2: flow cytometry with interventions",
        study=INTERVENTIONAL,
        problems=problems_interventional,
        methods=WITH_INTERVENTIONS,
        reference="exact",
        tables=table_interventional,
        keys=_recovery_keys(INTERVENTIONAL),
        figures=_no_figures,
        section=section_interventional,
    ),
)
