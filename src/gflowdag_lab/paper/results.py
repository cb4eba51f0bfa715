"""What was computed, wherever and at whichever size: stored fits, their posteriors, and their judgement."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from gflowdag.errors import FileFormatError
from gflowdag.posterior import Posterior
from gflowdag_lab.paper import judge
from gflowdag_lab.paper.fits import load_posterior
from gflowdag_lab.paper.methods import METHODS
from gflowdag_lab.paper.problems import Problem, Spec, load
from gflowdag_lab.paper.study import read_record
from gflowdag_lab.paper.tables import Frame

SIZES = ("full", "quick")
MUST_BE_NUMBERS = ("e_edges", "e_shd", "auroc", "edge_r")


def study_folder(out: Path, study: str, *, quick: bool) -> Path:
    """Where the fits of a study live. Quick and full ones never overwrite each other."""
    return out / ("quick" if quick else "full") / study


class Results:
    """The stored fits under one folder, read once."""

    def __init__(self, out: str | Path) -> None:
        self.out = Path(out)
        self._fits: dict[str, Frame] = {}
        self._judged: dict[tuple[str, str], Frame] = {}
        self._posteriors: dict[tuple[str, ...], Posterior] = {}
        self._listed: dict[str, Posterior] = {}
        self._problem = cache(load)

    def fits(self, study: str) -> Frame:
        """One row for each fit, with its `size`, or with `error`. Where both sizes exist, the full one.

        A method whose fits were run at full size on some problems shows these alone, so that one line of a
        table never mixes sizes.
        """
        if study not in self._fits:
            rows = [
                self._checked(study, row | {"size": size})
                for size in SIZES
                for row in _stored_rows(study_folder(self.out, study, quick=size == "quick"))
            ]
            self._fits[study] = _chosen(pd.DataFrame(rows))
        return self._fits[study]

    def successes(self, study: str) -> Frame:
        """The fits without an error."""
        table = self.fits(study)
        return table if "error" not in table else table[table["error"].isna()].drop(columns="error")

    def _checked(self, study: str, row: dict[str, Any]) -> dict[str, Any]:
        """The row, with an error if its posterior cannot be read."""
        if "error" not in row:
            try:
                self.posterior(study, row)
            except FileFormatError as error:
                return row | {"error": f"{error}. Delete the file of its task to run it again."}
        return row

    def posterior(self, study: str, row: Frame) -> Posterior:
        """The posterior of a fit."""
        key = (study, row["size"], row["problem"], row["method"])
        if key not in self._posteriors:
            folder = study_folder(self.out, study, quick=row["size"] == "quick")
            self._posteriors[key] = load_posterior(folder, row["problem"], row["method"])
        return self._posteriors[key]

    def problem(self, row: Frame) -> Problem:
        """The problem of a fit."""
        fields = {name: row[name] for name in Spec._fields if name in row and not pd.isna(row[name])}
        for name in ("num_variables", "num_rows", "seed"):
            fields[name] = int(fields[name])
        return self._problem(Spec(**fields))

    def all_graphs(self, row: Frame) -> Posterior:
        """The exact posterior of a small problem as the weighted list of all DAGs."""
        if row["problem"] not in self._listed:
            self._listed[row["problem"]] = judge.exact_by_enumeration(self.problem(row))
        return self._listed[row["problem"]]

    def reference(self, study: str, problem: str, method: str) -> Posterior | None:
        """The stored posterior of the reference method for a problem, of either size."""
        for size in SIZES:
            try:
                return self.posterior(study, {"size": size, "problem": problem, "method": method})
            except FileFormatError:
                continue
        return None

    def judge(self, study: str, row: dict[str, Any], reference: str) -> dict[str, Any]:
        """A fit with recovery, and with fidelity where the reference was computed."""
        row = self._checked(study, row)
        if "error" in row:
            return row
        posterior, truth = self.posterior(study, row), self.problem(row).truth
        exact = self.reference(study, row["problem"], reference)
        row |= judge.recovery(posterior, truth)
        return row if exact is None else row | judge.fidelity(posterior, exact)

    def judged(self, study: str, reference: str) -> Frame:
        """All successful fits, judged."""
        key = (study, reference)
        if key not in self._judged:
            rows = self.successes(study).to_dict(orient="records")
            self._judged[key] = pd.DataFrame([self.judge(study, row, reference) for row in rows])
        return self._judged[key]


def _chosen(table: Frame) -> Frame:
    """Full-size rows of every method that has any, else its quick ones, in the order of `METHODS`."""
    if table.empty:
        return table
    is_full = table["size"] == "full"
    done = table["error"].isna() if "error" in table else pd.Series(True, index=table.index)
    complete = table.loc[is_full & done, "method"].unique()
    table = table[is_full & done | ~table["method"].isin(complete)]
    rank = table["method"].map({name: i for i, name in enumerate(METHODS)})
    return (
        table.assign(rank=rank)
        .sort_values(["rank", "task"], kind="stable", ignore_index=True)
        .drop(columns="rank")
    )


def _stored_rows(folder: Path) -> list[dict[str, Any]]:
    rows = []
    failures = {path.stem: path for path in (folder / "failures").glob("*.json")}
    finished = {path.stem: path for path in (folder / "tasks").glob("*.json")}
    for _, path in sorted((failures | finished).items()):
        record = read_record(path) or {}
        arguments = record["arguments"]
        known = {
            "task": path.stem,
            "problem": Spec(**arguments["problem"]).name,
            "method": arguments["method"],
        }
        rows.append(known | record.get("row", {"error": record.get("error", "")}))
    return rows
