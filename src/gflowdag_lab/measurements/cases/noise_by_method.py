"""What every method finds in pure noise, with the default score and prior.

The bar, from before anything was measured, for the methods that sample the posterior: at most 0.3
expected edges a variable in the mean, no arrow above 0.5 in 99 % of the tables, an adjacency above 0.5 in at
most 10 %.
Bootstraps and variational methods stand beside. All methods see the first of the same tables, as many as
`tables` says; eight variables, so that compiled code serves all.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gflowdag as gd
from gflowdag import Dataset
from gflowdag.errors import DataError
from gflowdag_lab.measurements.cases.calibration import SAMPLERS
from gflowdag_lab.measurements.harness import Options, Row, case

FILE = Path("docs/laboratory/discrete-noise/methods.csv")
NUM_VARIABLES = 8
BESIDE: dict[str, dict[str, Any]] = {
    "bootstrap-ges": {"n_jobs": 1},
    "bootstrap-pc": {"n_jobs": 1},
    "dibs": {},
}
SHORT: dict[str, dict[str, Any]] = {
    "mc3": {"num_chains": 8, "burn_in": 500, "num_steps": 4000, "thinning": 20},
    "order-mcmc": {"iterations": 150, "num_chains": 8},
}
# Shorter than their defaults; noise is easy to sample. The GFlowNets as in the tests of calibration.
METHODS: dict[str, dict[str, Any]] = {"exact": {}, **SAMPLERS, **SHORT, **BESIDE}


@case
def noise_by_method(options: Options) -> Iterator[Row]:
    """Expected edges, surest arrows and adjacencies on independent discrete columns; `methods`, `tables`."""
    num_tables = 2 if options.quick else int(options.extra.get("tables", 240))
    for method in options.extra.get("methods", ",".join(METHODS)).split(","):
        rows = []
        started = time.process_time()
        for number in range(num_tables):
            kind, data = table(options.seed, number)
            posterior = gd.fit(data, method=method, random_state=number, **METHODS[method])
            edges = posterior.edge_probabilities().to_numpy()
            rows.append((method, number, kind, data.num_rows, *_figures(edges), posterior.diagnosis.verdict))
            if not options.quick:
                _append(rows[-1])
        yield _summary(method, rows) | {"cpu_seconds": round(time.process_time() - started, 1)}


def table(seed: int, number: int) -> tuple[str, Dataset]:
    """Independent columns of two or three levels, uniform or skewed, or normal ones cut at quantiles.

    Of 200, 500 or 2000 rows. Twelve tables in a row have every kind with every number of rows once.
    """
    rng = np.random.default_rng([seed, number])
    while True:
        kinds = ("2 uniform", "3 uniform", "2 skewed", "normal, 3 bins")
        kind, num_rows = kinds[number % 4], (200, 500, 2000)[number // 4 % 3]
        try:
            return kind, _draw(kind, num_rows, rng)
        except DataError:  # a constant column
            continue


def _draw(kind: str, num_rows: int, rng: np.random.Generator) -> Dataset:
    shape = (num_rows, NUM_VARIABLES)
    if kind.startswith("normal"):
        frame = pd.DataFrame(rng.normal(size=shape)).add_prefix("X")
        return Dataset.from_frame(frame, discretize="quantile", bins=3)
    levels = int(kind[0])
    if kind.endswith("uniform"):
        return Dataset.from_array(rng.integers(levels, size=shape), kinds="discrete")
    shares = rng.dirichlet(np.ones(levels), NUM_VARIABLES)
    columns = [rng.choice(levels, num_rows, p=share) for share in shares]
    return Dataset.from_array(np.stack(columns, axis=1), kinds="discrete")


def _figures(edges: np.ndarray) -> tuple[float, float, float]:
    return float(edges.sum() / len(edges)), float(edges.max()), float((edges + edges.T).max())


def _summary(method: str, rows: list[tuple[Any, ...]]) -> Row:
    edges, arrow, adjacency = (np.array([row[place] for row in rows]) for place in (4, 5, 6))
    mean, arrows, adjacencies = edges.mean(), (arrow > 0.5).mean(), (adjacency > 0.5).mean()
    return {
        "method": method,
        "tables": len(rows),
        "edges_per_variable": float(mean),
        "arrow": float(arrows),
        "adjacency": float(adjacencies),
        "passes": str(bool(mean <= 0.3 and arrows <= 0.01 and adjacencies <= 0.1)),
    }


def _append(row: tuple[Any, ...]) -> None:
    is_new = not FILE.exists()
    with FILE.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if is_new:
            names = "method,table,kind,rows,edges_per_variable,arrow,adjacency,verdict"
            writer.writerow(names.split(","))
        writer.writerow([f"{value:.4g}" if isinstance(value, float) else value for value in row])
