"""Networks of continuous and discrete variables with edges in both directions between the kinds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gflowdag.data.networks import Network


@dataclass(frozen=True, eq=False)
class MixedNetwork(Network):
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
    deviations: tuple[np.ndarray, ...]  # of the noise of each variable, float64 [cells]; zero if discrete

    def _draw(
        self, node: int, values: np.ndarray, outside: np.ndarray | None, rng: np.random.Generator
    ) -> np.ndarray:
        levels = int(self.num_levels[node])
        parents, parameters = self.adjacency[:, node], (self.coefficients[node], self.deviations[node])
        drawn = draw_column(values, parents, self.num_levels, levels, *parameters, rng)
        if outside is None:
            return drawn
        size = len(values)
        return np.where(
            outside, rng.integers(levels, size=size) if levels else rng.standard_normal(size), drawn
        )

    def _table(self, values: np.ndarray) -> pd.DataFrame:
        return table_of(self.names, self.num_levels, values)


def draw_column(
    values: np.ndarray,
    parents: np.ndarray,
    num_levels: np.ndarray,
    levels: int,
    coefficients: np.ndarray,
    deviations: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """One column given the columns of its parents, float64 [n].

    Args:
        values: float64 [n, d], discrete columns hold codes.
        parents: bool [d].
        num_levels: of all columns, int [d], 0 for a continuous one.
        levels: of this column, 0 if it is continuous.
        coefficients: float64 [cells, predictors, 1 + continuous parents].
        deviations: of its noise, float64 [cells].
        rng: source of randomness.
    """
    cell = cells(values, parents, num_levels)
    numbers = values[:, parents & (num_levels == 0)]
    design = np.column_stack([np.ones(len(values)), numbers])
    predictors = np.einsum("npk,nk->np", coefficients[cell], design)
    if levels:  # the largest of predictors plus Gumbel noise follows their softmax
        return (predictors + rng.gumbel(size=predictors.shape)).argmax(axis=1).astype(float)
    return predictors[:, 0] + rng.normal(0.0, deviations[cell])


def cells(values: np.ndarray, parents: np.ndarray, num_levels: np.ndarray) -> np.ndarray:
    """The cell of the discrete parents that each row is in, int [n]."""
    cell = np.zeros(len(values), np.int64)
    for parent in np.flatnonzero(parents & (num_levels > 0)):
        cell = cell * num_levels[parent] + values[:, parent].astype(np.int64)
    return cell


def table_of(names: tuple[str, ...], num_levels: np.ndarray, values: np.ndarray) -> pd.DataFrame:
    """Values [n, d] as a float column for each continuous variable, a categorical one for each other."""
    columns = {}
    for name, levels, column in zip(names, num_levels, values.T, strict=True):
        if levels:
            columns[name] = pd.Categorical.from_codes(column.astype(np.int64), categories=range(levels))
        else:
            columns[name] = column
    return pd.DataFrame(columns)


def random_mixed_network(
    names: tuple[str, ...],
    adjacency: np.ndarray,
    num_levels: np.ndarray,
    weight_scale: float,
    noise_variance: float,
    rng: np.random.Generator,
) -> MixedNetwork:
    """Intercepts from N(0, 1); coefficients from N(0, `weight_scale`²), in every cell and for every level."""
    coefficients, deviations = [], []
    for node, levels in enumerate(num_levels.tolist()):
        parents = np.flatnonzero(adjacency[:, node])
        of_parents = num_levels[parents]
        shape = (int(np.prod(of_parents[of_parents > 0])), max(levels, 1), 1 + int((of_parents == 0).sum()))
        drawn = rng.normal(size=shape)
        drawn[..., 1:] *= weight_scale
        coefficients.append(drawn)
        deviations.append(np.full(shape[0], 0.0 if levels else np.sqrt(noise_variance)))
    return MixedNetwork(names, adjacency, num_levels, tuple(coefficients), tuple(deviations))
