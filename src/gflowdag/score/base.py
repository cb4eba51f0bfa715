"""The log score of a DAG: marginal likelihood, structure prior and knowledge, as a sum over the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.errors import TooLargeError
from gflowdag.graph.bits import distinct_parent_sets, popcount
from gflowdag.runtime.progress import Progress, silent
from gflowdag.score.cell_limit import CellLimit
from gflowdag.score.local_score import LocalScore, local_values
from gflowdag.score.priors import Prior
from gflowdag.score.structure_prior import StructurePrior

if TYPE_CHECKING:
    from gflowdag.data import Constraints
    from gflowdag.score.deltas import Deltas

MEMORY_LIMIT = 4 * 2**30  # bytes, for one dense table and what is needed to fill it
# Up to this many variables methods that need not have a dense table (80 MB, copied to the device) take one.
MAX_TABLE_VARIABLES = 20


def table_memory(d: int) -> int:
    """Bytes that filling a dense table of `d` variables takes at its peak."""
    return 8 * d * 2 ** (d - 1) + 3 * 8 * 2**d


@dataclass(frozen=True)
class Score:
    """What every method consumes: `log R(G) = Σ_j local(j, Pa_j)`, up to the evidence the log posterior.

    Attributes:
        names: the variables, in the order of every array.
        likelihood: log marginal likelihood of the data, or what a score of one's own has in its place.
        prior: structure prior.
        constraints: required and forbidden edges, limit on the parents.
    """

    names: tuple[str, ...]
    likelihood: LocalScore
    prior: Prior
    constraints: Constraints

    def __post_init__(self) -> None:
        _ = self.structure_prior  # refuse bad parameters before any computing

    @property
    def num_variables(self) -> int:
        """Number of variables, `d`."""
        return len(self.names)

    @property
    def has_small_table(self) -> bool:
        """Whether a method that could do without a dense table should take one."""
        return self.num_variables <= MAX_TABLE_VARIABLES

    @property
    def score_equivalent(self) -> bool:
        """Whether Markov-equivalent DAGs have the same likelihood (never under interventions)."""
        return self.likelihood.score_equivalent

    @cached_property
    def cell_limit(self) -> CellLimit | None:
        """The limit on the cells of a family, a part of the structure prior of discrete tables."""
        return self.likelihood.cell_limit(self.constraints.required)

    @cached_property
    def structure_prior(self) -> StructurePrior:
        """The prior on numbers of parents, with the score's factor for each edge."""
        return StructurePrior.of(self.prior, self.likelihood.edge_factor, self.num_variables)

    @property
    def prior_log_weights(self) -> NDArray[np.float64]:
        """Log prior weight of each number of parents, float64 [d]: the prior where all edges weigh alike."""
        assert self.structure_prior.edges is None, "edges have factors of their own"
        return self.structure_prior.counts

    def allows(self, node: int, parents: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether knowledge and the limit on cells allow each parent set of `node`, bool [m, d] -> [m]."""
        required, forbidden, _ = self.constraints
        complete = (parents | ~required[:, node]).all(axis=1)
        clean = ~(parents & forbidden[:, node]).any(axis=1)
        return np.asarray(complete & clean & self.has_room(node, parents))

    def has_room(self, node: int, parents: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether each parent set of `node` is within the limits on size and cells, bool [m, d] -> [m]."""
        most = self.constraints.max_parents
        within = parents.sum(axis=1) <= (self.num_variables if most is None else most)
        return within if self.cell_limit is None else within & self.cell_limit.allows(node, parents)

    def local(self, node: int, parents: ArrayLike) -> NDArray[np.float64]:
        """Log marginal likelihood plus log prior of `node` given each parent set.

        Args:
            node: index of the child.
            parents: bool [m, d].

        Returns:
            float64 [m], −inf where the set is not allowed.
        """
        parents = np.asarray(parents, bool)
        value = local_values(self.likelihood, node, parents) + self.structure_prior.of_sets(node, parents)
        return np.where(self.allows(node, parents), value, -np.inf)

    def local_blocks(
        self, node: int, candidates: NDArray[np.integer[Any]], beside: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """`local` of every subset of `candidates` [k] beside other parents, bool [m, d] -> [m, 2^k].

        Knowledge must allow the parents `beside`, and required ones must be among them or the candidates.
        """
        out = self.likelihood.local_blocks(node, candidates, beside)
        for others, block in zip(beside, out, strict=True):
            block += self.structure_prior.of_subsets(node, candidates, others)
            self.forbid(node, candidates, block, beside=others)
        return out

    def extended_local(self, node: int, parents: ArrayLike) -> NDArray[np.float64]:
        """`local` of each set with one more parent, bool [m, d] -> [m, d].

        Faster than asking one by one. −inf where the larger set is not allowed, where the parent is in it
        already, and for the node itself.
        """
        parents = np.asarray(parents, bool)
        d = self.num_variables
        larger = (parents[:, None, :] | np.eye(d, dtype=bool)).reshape(-1, d)
        allowed = self.allows(node, larger).reshape(-1, d) & ~parents
        prior = self.structure_prior.with_one_more(node, parents)
        return np.where(allowed, self.likelihood.extended_local(node, parents) + prior, -np.inf)

    def log_likelihood(self, graphs: ArrayLike) -> NDArray[np.float64]:
        """Log marginal likelihood of the data under each graph, bool [n, d, d] -> [n]."""
        graphs = np.asarray(graphs, bool)
        total = np.zeros(len(graphs))
        for node in range(self.num_variables):
            parent_sets, inverse = distinct_parent_sets(graphs, node)
            total += local_values(self.likelihood, node, parent_sets)[inverse]
        return total

    def log_prior(self, graphs: ArrayLike) -> NDArray[np.float64]:
        """Unnormalised log prior of each graph, bool [n, d, d] -> [n]; −inf where a set is not allowed."""
        graphs = np.asarray(graphs, bool)
        total = self.structure_prior.of_graphs(graphs)
        for node in range(self.num_variables):
            total[~self.allows(node, graphs[:, :, node])] = -np.inf
        return total

    def log_score(self, graphs: ArrayLike) -> NDArray[np.float64]:
        """Log likelihood plus log prior of each graph, bool [n, d, d] -> [n]."""
        return self.log_likelihood(graphs) + self.log_prior(graphs)

    def unconstrained_table(
        self, progress: Progress = silent, *, memory_limit: int = MEMORY_LIMIT
    ) -> NDArray[np.float64]:
        """Like `dense_table`, but as if everything were allowed: all entries are finite."""
        d = self.num_variables
        _check_memory(d, memory_limit)
        table = self.likelihood.tables(progress)
        nodes = np.arange(d)
        for node in range(d):
            table[node] += self.structure_prior.of_subsets(node, np.delete(nodes, node))
        return table

    def dense_table(
        self, progress: Progress = silent, *, memory_limit: int = MEMORY_LIMIT
    ) -> NDArray[np.float64]:
        """The local score of every node with every parent set.

        Args:
            progress: told about the fraction done.
            memory_limit: bytes that may be used; more is refused with `TooLargeError`.

        Returns:
            float64 [d, 2^(d−1)] in compressed index (`graph.bits.compress`), −inf where the set is not
            allowed.
        """
        table = self.unconstrained_table(progress, memory_limit=memory_limit)
        nodes = np.arange(self.num_variables)
        for node in range(self.num_variables):
            self.forbid(node, np.delete(nodes, node), table[node])
        return table

    def forbid(
        self,
        node: int,
        candidates: Sequence[int] | NDArray[np.integer[Any]],
        scores: NDArray[np.float64],
        *,
        beside: NDArray[np.bool_] | None = None,
    ) -> None:
        """Write −inf where a parent set is not allowed.

        Args:
            node: index of the child.
            candidates: the possible parents, [k]; required parents outside of them are ignored.
            scores: float64 [2^k], bit `i` of the index stands for `candidates[i]`; changed in place.
            beside: bool [d], parents in all of these sets, none of them a candidate.
        """
        required, forbidden, limit = self.constraints
        beside = np.zeros(self.num_variables, bool) if beside is None else beside
        for bit, parent in enumerate(candidates):
            split = scores.reshape(-1, 2, 1 << bit)
            if forbidden[parent, node]:
                split[:, 1] = -np.inf
            if required[parent, node]:
                split[:, 0] = -np.inf
        size = popcount(np.arange(len(scores))) + beside.sum()
        if limit is not None:
            scores[size > limit] = -np.inf
        if self.cell_limit is not None:
            levels, most = self.cell_limit
            configurations = np.array([levels[beside].prod()])
            for parent in candidates:
                configurations = np.concatenate([configurations, configurations * levels[parent]])
            scores[(configurations > most[node]) & (size > 1)] = -np.inf

    def deltas(self) -> Deltas:
        """Changes of the log score by single edges, for use inside `jit`; see `score.deltas`."""
        from gflowdag.score.deltas import make_deltas

        return make_deltas(self)


def _check_memory(d: int, limit: int) -> None:
    if table_memory(d) > limit:
        raise TooLargeError(
            f"A dense table of {d} variables takes {table_memory(d) / 2**30:.1f} GiB, more than the allowed "
            f"{limit / 2**30:.1f} GiB: raise memory_limit, or use a method that works on candidate parents."
        )
