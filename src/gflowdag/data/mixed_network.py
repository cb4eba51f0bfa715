"""Networks of continuous and discrete variables with edges in both directions between the kinds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gflowdag.data.networks import graph_frame
from gflowdag.graph.order import topological_order


@dataclass(frozen=True, eq=False)
class MixedNetwork:
    """Linear predictors in every cell of the discrete parents, for variables of both kinds.

    In a cell a variable has a predictor `intercept + Σ_i coefficient_i x_i` over its continuous parents. A
    continuous variable is its predictor plus Gaussian noise: a conditional Gaussian. A discrete one has a
    predictor for each level, and their softmax are its probabilities: a multinomial logistic regression.
    """

    names: tuple[str, ...]
    adjacency: np.ndarray  # bool [d, d], acyclic, rows are sources
    num_levels: np.ndarray  # int [d], 0 for a continuous variable
    coefficients: tuple[
        np.ndarray, ...
    ]  # of each variable, float64 [cells, predictors, 1 + continuous parents]
    deviations: np.ndarray  # float64 [d], of the noise; discrete variables have none

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
            A float column for each continuous variable, a categorical one for each discrete variable.
        """
        values = np.zeros((num_rows, len(self.names)))
        for node in topological_order(self.adjacency):
            predictors = self._predictors(node, values)
            levels = self.num_levels[node]
            if levels:  # the largest of predictors plus Gumbel noise follows their softmax
                drawn = (predictors + rng.gumbel(size=predictors.shape)).argmax(axis=1)
                outside = rng.integers(levels, size=num_rows)
            else:
                drawn = predictors[:, 0] + rng.normal(0.0, self.deviations[node], num_rows)
                outside = rng.standard_normal(num_rows)
            values[:, node] = drawn if intervened is None else np.where(intervened[:, node], outside, drawn)
        columns = {}
        for name, levels, column in zip(self.names, self.num_levels, values.T, strict=True):
            codes = (
                pd.Categorical.from_codes(column.astype(np.int64), categories=range(levels))
                if levels
                else None
            )
            columns[name] = column if codes is None else codes
        return pd.DataFrame(columns)

    def _predictors(self, node: int, values: np.ndarray) -> np.ndarray:
        """The predictors of one variable in each row, float64 [n, predictors]."""
        parents = np.flatnonzero(self.adjacency[:, node])
        cell = np.zeros(len(values), np.int64)
        for parent in parents[self.num_levels[parents] > 0]:
            cell = cell * self.num_levels[parent] + values[:, parent].astype(np.int64)
        numbers = values[:, parents[self.num_levels[parents] == 0]]
        design = np.column_stack([np.ones(len(values)), numbers])
        return np.einsum("npk,nk->np", self.coefficients[node][cell], design)


def random_mixed_network(
    names: tuple[str, ...],
    adjacency: np.ndarray,
    num_levels: np.ndarray,
    weight_scale: float,
    noise_variance: float,
    rng: np.random.Generator,
) -> MixedNetwork:
    """Intercepts from N(0, 1); coefficients from N(0, `weight_scale`²), in every cell and for every level."""
    coefficients = []
    for node, levels in enumerate(num_levels.tolist()):
        parents = np.flatnonzero(adjacency[:, node])
        of_parents = num_levels[parents]
        shape = (int(np.prod(of_parents[of_parents > 0])), max(levels, 1), 1 + int((of_parents == 0).sum()))
        drawn = rng.normal(size=shape)
        drawn[..., 1:] *= weight_scale
        coefficients.append(drawn)
    deviations = np.where(num_levels > 0, 0.0, np.sqrt(noise_variance))
    return MixedNetwork(names, adjacency, num_levels, tuple(coefficients), deviations)
