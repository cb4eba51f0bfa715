"""What can be said about a graph: edges, paths, adjacency, d-separation, and their combinations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gflowdag.graph.separation import d_separated, reaches


class Statement(ABC):
    """True or false of every DAG; variables are positions."""

    @abstractmethod
    def holds(self, graphs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Of which graphs it is true, bool [n, d, d] -> [n]."""

    def parts(self) -> Iterator[Statement]:
        """The statement itself and all that it is made of."""
        yield self


@dataclass(frozen=True)
class Edge(Statement):
    """`source -> target`."""

    source: int
    target: int

    def holds(self, graphs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return graphs[:, self.source, self.target]


@dataclass(frozen=True)
class Path(Statement):
    """`source ~> target`: a directed path of one edge or more."""

    source: int
    target: int

    def holds(self, graphs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return reaches(graphs, (self.target,))[:, self.source]


@dataclass(frozen=True)
class Adjacent(Statement):
    """`first - second`: an edge in either direction."""

    first: int
    second: int

    def holds(self, graphs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return graphs[:, self.first, self.second] | graphs[:, self.second, self.first]


@dataclass(frozen=True)
class Separated(Statement):
    """`first _||_ second | given`: d-separation of sets of variables."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    given: tuple[int, ...] = ()

    def holds(self, graphs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return d_separated(graphs, self.first, self.second, self.given)


@dataclass(frozen=True)
class Not(Statement):
    """`not part`."""

    part: Statement

    def holds(self, graphs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return ~self.part.holds(graphs)

    def parts(self) -> Iterator[Statement]:
        yield self
        yield from self.part.parts()


@dataclass(frozen=True)
class _Combined(Statement):
    """A statement about several others."""

    members: tuple[Statement, ...]

    def parts(self) -> Iterator[Statement]:
        yield self
        for member in self.members:
            yield from member.parts()


@dataclass(frozen=True)
class All(_Combined):
    """`one and two and …`; also a chain of arrows."""

    def holds(self, graphs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.logical_and.reduce([member.holds(graphs) for member in self.members])


@dataclass(frozen=True)
class Any(_Combined):
    """`one or two or …`."""

    def holds(self, graphs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.logical_or.reduce([member.holds(graphs) for member in self.members])
