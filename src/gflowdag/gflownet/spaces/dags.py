"""What the spaces of DAGs share: edges are added one at a time, and every state may stop."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
from jax import Array


class DAGSpace(eqx.Module):
    """Actions are the flat indices of edges, source · d + target, and d² to stop; see `spaces.StateSpace`."""

    @property
    @abstractmethod
    def num_variables(self) -> int:
        """Number of nodes, `d`."""

    @property
    def max_steps(self) -> int:
        """A complete DAG, then stop."""
        return self.num_variables * (self.num_variables - 1) // 2 + 1

    @property
    def stop(self) -> int:
        """The index after those of all edges."""
        return self.num_variables**2

    def log_reward(self, state: Any) -> Array:
        """The log score less that of the graph that the state began with."""
        return state.gain

    @abstractmethod
    def start(self) -> Any:
        """The state in which every path begins."""

    @abstractmethod
    def observe(self, state: Any) -> Any:
        """What a policy sees."""

    @abstractmethod
    def on_the_way(self, key: Array, built: Array) -> tuple[Any, Array, Array]:
        """A random state on a random path to a DAG; all numbers of edges are equally likely.

        Returns:
            The state; which actions lead on to the DAG, or stop where it is the DAG, bool [actions], all of
            them equally likely; and the number of edges that a path to the DAG adds, int32 [].
        """

    @abstractmethod
    def log_paths(self, num_added: Array) -> Array:
        """Log number of paths that add so many edges to reach a DAG; all are equally likely."""
