"""What every method finds in pure noise, with the default options, score and prior.

The bar, from before anything was measured, for the methods that sample the posterior: at most 0.3
expected edges a variable in the mean, no arrow above 0.5 in 99 % of the tables, an adjacency above 0.5 in at
most 10 %.
Bootstraps and variational methods stand beside. All methods see the first of the same tables, as many as
`tables` says; eight variables unless `variables` says otherwise, so that compiled code serves all. Tables are
discrete, or with `columns=mixed` half discrete and half continuous.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gflowdag as gd
from gflowdag import Dataset
from gflowdag.errors import DataError
from gflowdag_lab.measurements.harness import Options, Row, case

FOLDER = Path("docs/laboratory/discrete-noise")
METHODS = ("exact", "mc3", "order-mcmc", "parent-set-mcmc", "gadget", "order-gflownet", "dag-gflownet")
METHODS += ("bootstrap-ges", "bootstrap-pc", "dibs")
IN_PROCESSES = ("gadget", "bootstrap-ges", "bootstrap-pc")  # here in one, so that their seconds are counted

_ABOUT = ["method", "seed", "variables", "table"]  # what a row of the files is found by


@case
def noise_by_method(options: Options) -> Iterator[Row]:
    """Expected edges, surest arrows and adjacencies on independent columns.

    `methods`, `tables`, `variables` and `columns` choose. Tables that are in the file are not fitted again,
    so that a run can be stopped and continued.
    """
    num_tables = 2 if options.quick else int(options.extra.get("tables", 240))
    num_variables = int(options.extra.get("variables", 8))
    columns = options.extra.get("columns", "discrete")
    file = None if options.quick else FOLDER / f"methods-{columns}.csv"
    for method in options.extra.get("methods", ",".join(METHODS)).split(","):
        rows = _stored(file, (method, options.seed, num_variables))[:num_tables]
        started = time.process_time()
        for number in range(len(rows), num_tables):
            kind, data = table(options.seed, number, num_variables, mixed=columns == "mixed")
            alone: dict[str, Any] = {"n_jobs": 1} if method in IN_PROCESSES else {}
            posterior = gd.fit(data, method=method, random_state=number, **alone)
            about = dict(zip(_ABOUT, (method, options.seed, num_variables, number), strict=True))
            edges = _edge_counts(posterior.edge_probabilities().to_numpy())
            about |= {"kind": kind, "rows": data.num_rows}
            rows.append(about | edges | {"verdict": posterior.diagnosis.verdict})
            if file is not None:
                _append(file, rows[-1])
        spent = {"cpu_seconds": round(time.process_time() - started, 1)}
        yield {"columns": columns, "method": method, "variables": num_variables} | _summary(rows) | spent


def table(
    seed: int, number: int, num_variables: int = 8, *, mixed: bool = False, num_rows: int | None = None
) -> tuple[str, Dataset]:
    """Independent columns of two or three levels, uniform or skewed, or normal ones cut at quantiles.

    Of 200, 500 or 2000 rows in turn, where no number is given: twelve tables in a row have every kind with
    every number of rows once. In mixed tables every other column is normal and not cut.
    """
    rng = np.random.default_rng([seed, number])
    while True:
        kinds = ("2 uniform", "3 uniform", "2 skewed", "normal, 3 bins")
        kind = kinds[number % 4]
        try:
            data = _draw(kind, (num_rows or (200, 500, 2000)[number // 4 % 3], num_variables), rng)
            return kind, _with_numbers(data, rng) if mixed else data
        except DataError:  # a constant column
            continue


def _draw(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> Dataset:
    if kind.startswith("normal"):
        frame = pd.DataFrame(rng.normal(size=shape)).add_prefix("X")
        return Dataset.from_frame(frame, discretize="quantile", bins=3)
    levels = int(kind[0])
    if kind.endswith("uniform"):
        return Dataset.from_array(rng.integers(levels, size=shape), kinds="discrete")
    shares = rng.dirichlet(np.ones(levels), shape[1])
    columns = [rng.choice(levels, shape[0], p=share) for share in shares]
    return Dataset.from_array(np.stack(columns, axis=1), kinds="discrete")


def _with_numbers(data: Dataset, rng: np.random.Generator) -> Dataset:
    """The table with independent normal columns in every other place."""
    frame = pd.DataFrame(data.values.astype(int)).add_prefix("X")
    for name in frame.columns[::2]:
        frame[name] = rng.normal(size=len(frame))
    return Dataset.from_frame(frame, discrete=frame.columns[1::2].tolist())


def _edge_counts(edges: np.ndarray) -> Row:
    return {
        "edges_per_variable": float(edges.sum() / len(edges)),
        "arrow": float(edges.max()),
        "adjacency": float((edges + edges.T).max()),
    }


def _summary(rows: list[Row]) -> Row:
    mean = float(np.mean([row["edges_per_variable"] for row in rows]))
    arrows, adjacencies = (
        float(np.mean([row[name] > 0.5 for row in rows])) for name in ("arrow", "adjacency")
    )
    return {
        "tables": len(rows),
        "edges_per_variable": mean,
        "arrow": arrows,
        "adjacency": adjacencies,
        "trusted": float(np.mean([row["verdict"] in ("exact", "trusted") for row in rows])),
        "passes": str(mean <= 0.3 and arrows <= 0.01 and adjacencies <= 0.1),
    }


def _stored(file: Path | None, about: tuple[str, int, int]) -> list[Row]:
    """The rows of a method on the tables of a seed and size."""
    if file is None or not file.exists():
        return []
    rows: list[Row] = pd.read_csv(file).to_dict("records")  # pyright: ignore[reportAssignmentType]
    return [row for row in rows if tuple(row[name] for name in _ABOUT[:3]) == about]


def _append(file: Path, row: Row) -> None:
    line = pd.DataFrame([row])
    line.to_csv(file, mode="a", header=not file.exists(), index=False, float_format="%.4g")
