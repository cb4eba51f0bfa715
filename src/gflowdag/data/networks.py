"""Bayesian networks with known parameters, to sample data from."""

from __future__ import annotations

from abc import ABC, abstractmethod
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


class Network(ABC):
    """A DAG with a distribution of each variable given its parents."""

    names: tuple[str, ...]
    adjacency: np.ndarray  # bool [d, d], acyclic, rows are sources

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
            intervened: bool [n, d]; there a number is drawn from N(0, 1) and a level uniformly, whatever the
                parents are.

        Returns:
            A float column for each continuous variable, a categorical one with all levels for each other.
        """
        values = np.zeros((num_rows, len(self.names)))
        for node in topological_order(self.adjacency):
            outside = None if intervened is None else intervened[:, node]
            values[:, node] = self._draw(node, values, outside, rng)
        return self._table(values)

    @abstractmethod
    def _draw(
        self, node: int, values: np.ndarray, outside: np.ndarray | None, rng: np.random.Generator
    ) -> np.ndarray:
        """A column given those of its parents, [n]; set from `outside` in some rows, bool [n]."""

    @abstractmethod
    def _table(self, values: np.ndarray) -> pd.DataFrame:
        """Values [n, d], codes of discrete variables, as users see them."""


@dataclass(frozen=True, eq=False)
class LinearGaussianNetwork(Network):
    """`X_j = intercept_j + Σ_i weight_ij X_i + ε_j` with `ε_j ~ N(0, variance_j)`."""

    names: tuple[str, ...]
    adjacency: np.ndarray  # bool [d, d], acyclic, rows are sources
    weights: np.ndarray  # float64 [d, d], zero where there is no edge
    intercepts: np.ndarray  # float64 [d]
    variances: np.ndarray  # float64 [d]

    def _draw(
        self, node: int, values: np.ndarray, outside: np.ndarray | None, rng: np.random.Generator
    ) -> np.ndarray:
        noise = rng.normal(0.0, np.sqrt(self.variances[node]), len(values))
        drawn = self.intercepts[node] + values @ self.weights[:, node] + noise
        if outside is not None:
            drawn[outside] = rng.standard_normal(outside.sum())
        return drawn

    def _table(self, values: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame(values).set_axis(list(self.names), axis=1)


@dataclass(frozen=True, eq=False)
class DiscreteNetwork(Network):
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

    def _draw(
        self, node: int, values: np.ndarray, outside: np.ndarray | None, rng: np.random.Generator
    ) -> np.ndarray:
        table = self.tables[node]
        given = tuple(values[:, parent].astype(np.int64) for parent in self.parents[node])
        shape = (len(values), table.shape[-1])
        steps = np.cumsum(np.broadcast_to(table[given], shape), axis=1)
        drawn = (rng.random((len(values), 1)) * steps[:, -1:] >= steps[:, :-1]).sum(axis=1)
        if outside is None:
            return drawn
        return np.where(outside, rng.integers(table.shape[-1], size=len(values)), drawn)

    def _table(self, values: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame(
            {
                name: pd.Categorical.from_codes(column.astype(np.int64), categories=list(levels))
                for name, levels, column in zip(self.names, self.levels, values.T, strict=True)
            }
        )
