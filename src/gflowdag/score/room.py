"""How much room the limits on parent sets leave, inside `jit`."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from gflowdag.score.base import Score
from gflowdag.score.cell_limit import CellLimit


class Room(NamedTuple):
    """Limits on parent sets; problems of equal `d` can be stacked."""

    max_parents: Array  # int32 []
    levels: Array  # float64 [d], of each variable
    most_configurations: Array  # float64 [d], of the parents of each node; infinite where nothing limits them

    def one_more(self, adjacency: Array) -> Array:
        """Whether each edge may be added to a graph, as far as these limits go, bool [d, d] -> [d, d]."""
        size = adjacency.sum(axis=0)
        configurations = jnp.where(adjacency, self.levels[:, None], 1.0).prod(axis=0)
        fits = self.levels[:, None] * configurations <= self.most_configurations
        return (size < self.max_parents) & (fits | (size == 0))


def make_room(score: Score) -> Room:
    """The limits of a score: those of knowledge, and that on the cells of a family."""
    d, most = score.num_variables, score.constraints.max_parents
    limit = score.cell_limit or CellLimit(np.ones(d), np.full(d, np.inf))
    return Room(
        jnp.asarray(d if most is None else most, jnp.int32),
        jnp.asarray(limit.levels, jnp.float64),
        jnp.asarray(limit.most, jnp.float64),
    )
