"""Bayesian networks with known parameters, to sample data from."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gflowdag.graph.order import topological_order


def graph_frame(adjacency: np.ndarray, names: Sequence[str]) -> pd.DataFrame:
    """The adjacency matrix with names, bool [source, target]."""
    labels = list(names)
    return pd.DataFrame(
        adjacency.astype(bool),
        index=pd.Index(labels, name="source"),
        columns=pd.Index(labels, name="target"),
    )


@dataclass(frozen=True, eq=False)
class LinearGaussianNetwork:
    """`X_j = intercept_j + Σ_i weight_ij X_i + ε_j` with `ε_j ~ N(0, variance_j)`."""

    names: tuple[str, ...]
    adjacency: np.ndarray  # bool [d, d], acyclic, rows are sources
    weights: np.ndarray  # float64 [d, d], zero where there is no edge
    intercepts: np.ndarray  # float64 [d]
    variances: np.ndarray  # float64 [d]

    @property
    def graph(self) -> pd.DataFrame:
        """The adjacency matrix with names, bool [source, target]."""
        return graph_frame(self.adjacency, self.names)

    def sample(
        self, num_rows: int, rng: np.random.Generator, *, intervened: np.ndarray | None = None
    ) -> pd.DataFrame:
        """Independent observations by ancestral sampling.

        Args:
            num_rows: number of observations n.
            rng: source of randomness.
            intervened: bool [n, d]; there the value is drawn from N(0, 1), whatever its parents are.

        Returns:
            One float column for each variable.
        """
        values = np.zeros((num_rows, len(self.names)))
        for node in topological_order(self.adjacency):
            noise = rng.normal(0.0, np.sqrt(self.variances[node]), num_rows)
            values[:, node] = self.intercepts[node] + values @ self.weights[:, node] + noise
            if intervened is not None:
                rows = intervened[:, node]
                values[rows, node] = rng.standard_normal(rows.sum())
        return pd.DataFrame(values).set_axis(list(self.names), axis=1)


@dataclass(frozen=True, eq=False)
class DiscreteNetwork:
    """A conditional probability table for each variable given its parents."""

    names: tuple[str, ...]
    levels: tuple[tuple[Hashable, ...], ...]
    parents: tuple[tuple[int, ...], ...]
    tables: tuple[
        np.ndarray, ...
    ]  # float64 [levels of parent 1, …, levels of parent k, levels of the variable]

    @property
    def adjacency(self) -> np.ndarray:
        """bool [d, d], rows are sources."""
        adjacency = np.zeros((len(self.names), len(self.names)), dtype=bool)
        for node, parents in enumerate(self.parents):
            adjacency[list(parents), node] = True
        return adjacency

    @property
    def graph(self) -> pd.DataFrame:
        """The adjacency matrix with names, bool [source, target]."""
        return graph_frame(self.adjacency, self.names)

    def sample(
        self, num_rows: int, rng: np.random.Generator, *, intervened: np.ndarray | None = None
    ) -> pd.DataFrame:
        """Independent observations by ancestral sampling.

        Args:
            num_rows: number of observations n.
            rng: source of randomness.
            intervened: bool [n, d]; there the level is drawn uniformly, whatever its parents are.

        Returns:
            One categorical column for each variable, with all levels declared.
        """
        codes = np.zeros((num_rows, len(self.names)), dtype=np.int64)
        for node in topological_order(self.adjacency):
            table = self.tables[node]
            given = tuple(codes[:, parent] for parent in self.parents[node])
            steps = np.cumsum(np.broadcast_to(table[given], (num_rows, table.shape[-1])), axis=1)
            drawn = (rng.random((num_rows, 1)) * steps[:, -1:] >= steps[:, :-1]).sum(axis=1)
            if intervened is not None:
                uniform = rng.integers(table.shape[-1], size=num_rows)
                drawn = np.where(intervened[:, node], uniform, drawn)
            codes[:, node] = drawn
        return pd.DataFrame(
            {
                name: pd.Categorical.from_codes(column, categories=list(levels))
                for name, levels, column in zip(self.names, self.levels, codes.T, strict=True)
            }
        )
