"""Missing cells that are worth measuring: is the stated gain what comes true, and does it choose well?

What has to hold, from before anything was measured. Tables of four variables whose graph and parameters come
from the prior of the score that fits them; 40 rows; in X1, X2 and X3 each cell is missing with probability
0.4, whatever its value. For each of the three columns `next_experiments(measure=…)` states a gain; then the
true cells of that column are filled in, and the table is fitted again. What came true is the divergence of
the posterior over all 543 graphs after from that before. Over the tables of one kind (60 by default):

1. the mean of what came true, less what was stated, is within two standard errors of zero (one value a table,
   the mean of its columns);
2. the same within each third of the columns by what was stated, within two and a half;
3. the column with the largest stated gain tells more than the mean of the three, by more than two standard
   errors.

Posteriors over all graphs are means over the completed tables of a fit, so they have a Monte-Carlo error
themselves; it makes divergences a little too large, by about what the other gaps tell over the number of
completed tables.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

import gflowdag as gd
from gflowdag.errors import GFlowDAGError
from gflowdag.graph import all_dags
from gflowdag.score import make_score
from gflowdag_lab.measurements.harness import Options, Row, case

_D, _ROWS, _GAPS = 4, 40, 0.4
_COLUMNS = ["X1", "X2", "X3"]
_SCORES = {"continuous": ("bge", 0), "discrete": ("bdeu", 2)}


@case
def measure_gaps(options: Options) -> Iterator[Row]:
    """Stated and realised information of missing cells; `tables`, `kinds`, `completions`, `outcomes`."""
    number = 2 if options.quick else int(options.extra.get("tables", 60))
    completions = 20 if options.quick else int(options.extra.get("completions", 200))
    outcomes = 8 if options.quick else int(options.extra.get("outcomes", 64))
    for kind in options.extra.get("kinds", "continuous,discrete").split(","):
        stated, true, began = [], [], time.process_time()
        seed = 0
        while len(stated) < number:
            rng = np.random.default_rng([options.seed, seed])
            seed += 1
            try:
                found = _one_table(kind, completions, outcomes, rng)
            except GFlowDAGError:  # a constant column: the law given any other table is the same
                continue
            stated.append([one[0] for one in found])
            true.append([one[1] for one in found])
            yield {
                "kind": kind,
                "table": len(stated) - 1,
                **{f"stated {name}": gain for name, (gain, _) in zip(_COLUMNS, found, strict=True)},
                **{f"realised {name}": gain for name, (_, gain) in zip(_COLUMNS, found, strict=True)},
            }
        yield from _summary(kind, np.array(stated), np.array(true), time.process_time() - began)


def _summary(kind: str, stated: np.ndarray, true: np.ndarray, seconds: float) -> Iterator[Row]:
    """Means with their standard errors, over tables."""
    chosen = true[np.arange(len(true)), stated.argmax(axis=1)]
    thirds = np.array_split(np.argsort(stated, axis=None), 3)
    for what, values, said in (
        ("all columns", (true - stated).mean(axis=1), stated.mean()),
        *(
            (f"third {k + 1}", (true - stated).flat[own], stated.flat[own].mean())
            for k, own in enumerate(thirds)
        ),
        ("chosen less mean of the three", chosen - true.mean(axis=1), stated.max(axis=1).mean()),
    ):
        yield {
            "kind": kind,
            "what": what,
            "tables": len(stated),
            "stated": float(said),
            "difference": float(np.mean(values)),
            "error": float(np.std(values, ddof=1) / np.sqrt(len(values))),
            "cpu_seconds": round(seconds, 1),
        }


def _one_table(
    kind: str, completions: int, outcomes: int, rng: np.random.Generator
) -> list[tuple[float, float]]:
    """What was stated of each column, and what came true."""
    score, levels = _SCORES[kind]
    drawn = gd.simulate.from_prior(_D, _ROWS, score=score, num_levels=levels, random_state=rng)
    missing = rng.random((_ROWS, _D)) < _GAPS
    missing[:, len(_COLUMNS) :] = False
    post, before = _fit(drawn.frame, missing, score, completions, rng)
    said = post.next_experiments(measure=_COLUMNS, targets=[], num_outcomes=outcomes, random_state=rng)
    gains = {one.measured: one.gain for one in said.experiments}
    found = []
    for place, name in enumerate(_COLUMNS):
        left = missing.copy()
        left[:, place] = False
        _, after = _fit(drawn.frame, left, score, completions, rng)
        found.append((gains[name], float((after * np.log(after / before)).sum())))
    return found


def _fit(
    frame: pd.DataFrame, missing: np.ndarray, score: str, completions: int, rng: np.random.Generator
) -> tuple[gd.Posterior, np.ndarray]:
    """The posterior of a table with these gaps, and the probability of each of all graphs."""
    kinds = "continuous" if score == "bge" else "discrete"
    data = gd.Dataset.from_frame(
        frame.astype(float).mask(missing), kinds=kinds, standardize=False, missing="impute"
    )
    post = gd.fit(
        data, method="exact", score=score, standardize=False, completions=completions, num_samples=1000,
        random_state=int(rng.integers(2**31)),
    )  # fmt: skip
    cells = post.imputed_cells
    assert cells is not None
    mean = np.zeros(len(all_dags(_D)))
    for drawn in cells.values:
        values = data.values.copy()
        values[cells.rows, cells.columns] = drawn
        logs = make_score(replace(data, values=values), score=score).log_score(all_dags(_D))
        p = np.exp(logs - logs.max())
        mean += p / p.sum() / len(cells.values)
    return post, np.maximum(mean, 1e-300)
