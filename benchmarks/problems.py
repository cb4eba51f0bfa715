"""The problems that every benchmark shares, so that their rows can be set side by side."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from gflowdag.data import Dataset, load_dataset, simulate


class Problem(NamedTuple):
    """A table with the graph that made it."""

    name: str
    data: Dataset
    truth: pd.DataFrame | None  # bool [source, target]
    held_out: pd.DataFrame | None = None


def linear_gaussian(
    d: int, n: int, seed: int, *, standardize: bool, edges_per_node: float | None = None
) -> Problem:
    """The paper's simulation: ER2 (ER1 at d = 5), N(0, 1) weights, noise variance 0.01, 100 held-out rows."""
    edges = edges_per_node if edges_per_node is not None else (1.0 if d <= 5 else 2.0)
    drawn = simulate.linear_gaussian(d, n, edges_per_node=edges, held_out=100, random_state=seed)
    scaling = "standardised" if standardize else "raw"
    # Values are rounded so that every machine sees the same table, whatever its matrix products round to.
    frame = drawn.frame.map(lambda value: float(np.format_float_scientific(value, precision=9)))
    data = Dataset.from_frame(frame, standardize=standardize)
    return Problem(f"d={d} N={n} seed={seed} {scaling}", data, drawn.truth, drawn.held_out)


def sachs_continuous() -> Problem:
    """853 observations of 11 proteins, standardised."""
    named = load_dataset("sachs")
    return Problem("Sachs continuous", named.dataset(), named.truth)


def sachs_interventional(folder: Path | None) -> Problem:
    """5400 discretised observations under nine conditions; `folder` holds the file."""
    if folder is None:
        named = load_dataset("sachs-interventional")
        return Problem("Sachs interventional", named.dataset(), named.truth)
    frame = pd.read_csv(folder / "sachs_interventional_discrete.csv")
    data = Dataset.from_frame(frame, interventions="INT", intervention_base=1)
    return Problem("Sachs interventional", data, load_dataset("sachs").truth)
