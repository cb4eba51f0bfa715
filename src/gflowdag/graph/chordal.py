"""Orientations of a chordal graph without cycles and without v-structures: count, draw, list.

The undirected edges of a CPDAG form chordal components, and the DAGs of the Markov equivalence class are the
combinations of such orientations. Counting is by clique picking, in polynomial time (Wienöbst, Bannach and
Liśkiewicz, 2021), so that a uniform draw needs no list of the class.

Sets of nodes are bit masks in Python integers, hence of any size.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, product
from typing import NamedTuple

import numpy as np


def bits(nodes: int) -> Iterator[int]:
    """The members of a set, in increasing order."""
    while nodes:
        lowest = nodes & -nodes
        yield lowest.bit_length() - 1
        nodes ^= lowest


class StartingClique(NamedTuple):
    """A maximal clique that orientations start with."""

    weight: int  # number of orientations booked on it
    nodes: int
    forbidden: list[int]  # sets that must not be a prefix of its order, each containing the one before


class ChordalOrientations:
    """Orientations of a chordal graph, each given as an order of the nodes along which the edges point.

    Args:
        neighbours: for each node the set of its neighbours.
    """

    def __init__(self, neighbours: Sequence[int]) -> None:
        self._neighbours = neighbours
        self._cliques: dict[int, list[StartingClique]] = {}  # by the nodes of the subgraph

    def components(self, nodes: int) -> list[int]:
        """Connected components of the subgraph on `nodes`."""
        found: list[int] = []
        while nodes:
            component, frontier = 0, nodes & -nodes
            while frontier:
                component |= frontier
                reached = 0
                for node in bits(frontier):
                    reached |= self._neighbours[node]
                frontier = reached & nodes & ~component
            found.append(component)
            nodes &= ~component
        return found

    def count(self, nodes: int) -> int:
        """Number of orientations of the connected subgraph on `nodes`."""
        return sum(clique.weight for clique in self._starting_cliques(nodes))

    def draw(self, nodes: int, rng: np.random.Generator) -> list[int]:
        """A uniformly random orientation of the connected subgraph on `nodes`."""
        cliques = self._starting_cliques(nodes)
        cumulative = list(accumulate(clique.weight for clique in cliques))
        start = cliques[bisect_right(cumulative, _draw_below(cumulative[-1], rng))]
        order = _draw_permutation(start, rng)
        for component in self._components_after(start.nodes, nodes):
            order += self.draw(component, rng)
        return order

    def listing(self, nodes: int) -> Iterator[list[int]]:
        """Every orientation of the connected subgraph on `nodes`, once: each has exactly one source."""
        for source in bits(nodes):
            rest = [list(self.listing(part)) for part in self._components_after(1 << source, nodes)]
            for orders in product(*rest):
                yield [source, *(node for order in orders for node in order)]

    def _starting_cliques(self, nodes: int) -> list[StartingClique]:
        """The maximal cliques of the subgraph, each with the orientations that are booked on it.

        An orientation may start with several cliques. It is booked on the one nearest to the root of the
        clique tree, for which no separator on the way to the root may be a prefix of its order.
        """
        if nodes not in self._cliques:
            cliques, parents = self._clique_tree(nodes)
            table: list[StartingClique] = []
            for index, clique in enumerate(cliques):
                separators: set[int] = set()
                while index:
                    separators.add(cliques[index] & cliques[parents[index]])
                    index = parents[index]
                forbidden = sorted((s for s in separators if not s & ~clique), key=int.bit_count)
                weight = _permutations_avoiding(clique.bit_count(), [s.bit_count() for s in forbidden])
                for component in self._components_after(clique, nodes):
                    weight *= self.count(component)
                table.append(StartingClique(weight, clique, forbidden))
            self._cliques[nodes] = table
        return self._cliques[nodes]

    def _components_after(self, clique: int, nodes: int) -> list[int]:
        """What is left undirected once `clique` comes first, in topological order.

        Lexicographic breadth-first search from the clique: nodes with one label at the moment when the first
        of them is visited have the same predecessors, and only the edges among them are still free.
        """
        found: list[int] = []
        cells, seen = [clique, nodes & ~clique], clique
        while cells:
            if cells[0] & ~seen:
                found += self.components(cells[0])
                seen |= cells[0]
            visited = cells[0] & -cells[0]
            near = self._neighbours[visited.bit_length() - 1]
            cells[0] ^= visited
            cells = [part for cell in cells for part in (cell & near, cell & ~near) if part]
        return found

    def _clique_tree(self, nodes: int) -> tuple[list[int], list[int]]:
        """Maximal cliques of a connected chordal subgraph and their parents in a clique tree, root first.

        Maximum cardinality search (Blair and Peyton, 1993): a clique grows while each next node has more
        placed neighbours than the one before it.
        """
        cliques, parents = [0], [0]
        clique_of: dict[int, int] = {}
        placed: list[int] = []
        placed_set, previous = 0, -1
        while nodes & ~placed_set:
            node = max(
                bits(nodes & ~placed_set), key=lambda v: (self._neighbours[v] & placed_set).bit_count()
            )
            earlier = self._neighbours[node] & placed_set
            inside = len(cliques) - 1
            if earlier.bit_count() <= previous:
                inside = clique_of[next(v for v in reversed(placed) if earlier >> v & 1)]
                cliques.append(earlier)
                parents.append(inside)
            if earlier & ~cliques[inside]:
                raise ValueError("the undirected edges of a CPDAG form chordal components; these do not")
            cliques[-1] |= 1 << node
            clique_of[node] = len(cliques) - 1
            placed.append(node)
            placed_set |= 1 << node
            previous = earlier.bit_count()
        return cliques, parents


def _permutations_avoiding(size: int, prefixes: Sequence[int]) -> int:
    """Permutations of a set none of whose prefixes is one of the nested sets of the given sizes."""
    sizes = [*prefixes, size]
    avoiding: list[int] = []  # for each set in turn, its permutations that avoid the smaller ones
    for whole in sizes:
        # Take off the permutations by their smallest forbidden prefix.
        hit = sum(math.factorial(whole - part) * count for part, count in zip(sizes, avoiding, strict=False))
        avoiding.append(math.factorial(whole) - hit)
    return avoiding[-1]


def _draw_permutation(clique: StartingClique, rng: np.random.Generator) -> list[int]:
    """A uniform permutation without a forbidden prefix; at least every other proposal is accepted."""
    members = list(bits(clique.nodes))
    while True:
        order = [members[int(k)] for k in rng.permutation(len(members))]
        prefix, prefixes = 0, set[int]()
        for node in order:
            prefix |= 1 << node
            prefixes.add(prefix)
        if prefixes.isdisjoint(clique.forbidden):
            return order


def _draw_below(total: int, rng: np.random.Generator) -> int:
    """A uniform integer in [0, total), exact for integers of any size."""
    length = (total.bit_length() + 7) // 8
    while True:
        value = int.from_bytes(rng.bytes(length)) >> (8 * length - total.bit_length())
        if value < total:
            return value
