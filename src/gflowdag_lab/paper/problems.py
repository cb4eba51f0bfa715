"""The problems of the experiments and benchmarks, by name, so that results can be set side by side.

A `Spec` is the plain-JSON name of a problem: it travels to workers and into files. `load` makes the table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gflowdag import simulate
from gflowdag.data import Dataset, load_dataset
from gflowdag.errors import GFlowDAGError

NUM_HELD_OUT = 100  # rows of D'; the paper does not say how many it used


class Problem(NamedTuple):
    """A table with the graph that made it."""

    name: str
    data: Dataset
    truth: pd.DataFrame  # bool [source, target]
    held_out: pd.DataFrame | None = None  # further rows, not scaled


class Spec(NamedTuple):
    """What identifies a problem."""

    kind: str  # "linear-gaussian", or the name of a Sachs data set
    num_variables: int = 11
    num_rows: int = 853
    seed: int = 0  # of the simulated network and data
    scaling: str = "standardised"  # or "raw"
    edges_per_node: float | None = None  # of the simulated network; None is the paper's density

    @property
    def name(self) -> str:
        """A name that is unique and can be part of a file's."""
        if self.kind != "linear-gaussian":
            return self.kind
        return f"d{self.num_variables}-n{self.num_rows}-s{self.seed}-{self.scaling}"


def load(spec: Spec) -> Problem:
    """The table and the true graph of a problem."""
    if spec.kind == "linear-gaussian":
        return linear_gaussian(
            spec.num_variables,
            spec.num_rows,
            spec.seed,
            standardize=spec.scaling == "standardised",
            edges_per_node=spec.edges_per_node,
        )
    if spec.kind in SACHS:
        return _sachs(spec.kind, spec.kind)
    raise GFlowDAGError(f"there is no problem {spec.kind!r}")


def linear_gaussian(
    d: int, n: int, seed: int, *, standardize: bool, edges_per_node: float | None = None
) -> Problem:
    """The paper's simulation: ER2 (ER1 at d = 5), N(0, 1) weights, noise variance 0.01, 100 held-out rows."""
    edges = edges_per_node if edges_per_node is not None else (1.0 if d <= 5 else 2.0)
    drawn = simulate.linear_gaussian(d, n, edges_per_node=edges, held_out=NUM_HELD_OUT, random_state=seed)
    scaling = "standardised" if standardize else "raw"
    data = Dataset.from_frame(_rounded(drawn.frame), standardize=standardize)
    held_out = None if drawn.held_out is None else _rounded(drawn.held_out)
    return Problem(f"d={d} N={n} seed={seed} {scaling}", data, drawn.truth, held_out)


def sachs_continuous() -> Problem:
    """853 observations of 11 proteins, standardised."""
    return _sachs("sachs", "Sachs continuous")


def sachs_interventional(folder: Path | None) -> Problem:
    """5400 discretised observations under nine conditions; `folder` holds the file."""
    if folder is None:
        return _sachs("sachs-interventional", "Sachs interventional")
    frame = pd.read_csv(folder / "sachs_interventional_discrete.csv")
    data = Dataset.from_frame(frame, interventions="INT", intervention_base=1)
    return Problem("Sachs interventional", data, sachs_continuous().truth)


def _sachs(dataset: str, name: str) -> Problem:
    named = load_dataset(dataset)
    assert named.truth is not None  # the network of Sachs et al.
    return Problem(name, named.dataset(), named.truth)


SACHS = {
    "sachs": Spec("sachs", 11, 853),
    "sachs-interventional": Spec("sachs-interventional", 11, 5400, scaling="three levels"),
    "sachs-all": Spec("sachs-all", 11, 7466),
}


def as_json(spec: Spec) -> dict[str, Any]:
    """The spec as the arguments of a task."""
    return spec._asdict()


def _rounded(frame: pd.DataFrame) -> pd.DataFrame:
    """Ten significant digits, so that every machine sees the same table, whatever its products round to."""
    return frame.map(lambda value: float(np.format_float_scientific(value, precision=9)))
