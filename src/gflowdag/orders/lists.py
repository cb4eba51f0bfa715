"""Lists of the parent sets that matter, with a proved bound on what the others would change.

All parent sets up to a number of parents are scored. A set `S` of a node is left out iff, with `π = exp LS`,

    π(S) < ε Σ_{R: j ∈ R ⊆ S} w(R, S) π(R),    w(R, S) = (1 + 1/K)^(|R| − K) K^(|R| − |S|),

for *every* `j ∈ S` (Viinikka, Koivisto and others). `K` is the number of possible parents, not the largest
number of them: then the weights `w(R, S)` of all `S ⊇ R` sum to one, and whatever nodes are placed and
whatever window a canonical order asks a parent from, the sum over a node's sets loses at most a share ε. A
set left out holds a member `j` of the window, and it is charged to sets that hold `j` too and are placed
where it is, none of which is charged more than its own weight. An order loses at most the factor `(1 − ε)^d`,
and so does the sum over all DAGs: the posterior over the listed DAGs is within `1 − (1 − ε)^d` of that over
all DAGs, in total variation.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.errors import KnowledgeError, TooLargeError
from gflowdag.runtime.messages import counted
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.threads import map_threads
from gflowdag.score.base import Score

EPSILON = 2.0**-15  # 0.15 % of the posterior at 50 variables
MOST_SETS = 300_000  # of a node that are scored where nobody limits the number of parents
_CHUNK = 1 << 16  # parent sets that are scored at a time


class ParentLists(NamedTuple):
    """The parent sets of every node that are kept, the best first."""

    members: NDArray[np.int32]  # [d, L, m], the parents in each set; d where there are fewer than m
    scores: NDArray[np.float64]  # [d, L], −inf after the end of a list
    epsilon: float  # share of a node's sums that is lost at most
    max_parents: int  # m, the most parents of any scored set
    num_scored: int  # sets of all nodes

    @property
    def num_variables(self) -> int:
        """Number of variables, `d`."""
        return len(self.scores)

    @property
    def total_variation(self) -> float:
        """Largest distance of the posterior over listed DAGs from that over all DAGs within the limit."""
        return -math.expm1(self.num_variables * math.log1p(-self.epsilon))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of sets that each node keeps, [d]."""
        return np.isfinite(self.scores).sum(axis=1)


def most_parents(num_variables: int, most_sets: int = MOST_SETS) -> int:
    """The largest number of parents of which all sets can be scored."""
    others, sets = num_variables - 1, 1
    for size in range(1, others + 1):
        sets += math.comb(others, size)
        if sets > most_sets:
            return size - 1
    return others


def parent_lists(
    score: Score,
    *,
    max_parents: int | None = None,
    epsilon: float = EPSILON,
    progress: Progress = silent,
) -> ParentLists:
    """Score all parent sets up to a number of parents, and keep those that matter.

    Args:
        score: any score.
        max_parents: the largest number; by default that of the knowledge, or as many as are quickly scored.
        epsilon: share of a node's sums that may be lost, in [0, 1); 0 keeps every set that is allowed.
        progress: told about the nodes done.

    Raises:
        TooLargeError: there are too many sets.
        KnowledgeError: some node has no allowed set.
    """
    d = score.num_variables
    limit = score.constraints.max_parents
    largest = most_parents(d) if max_parents is None else max_parents
    largest = min(largest, d - 1 if limit is None else limit)
    if largest > most_parents(d, 100 * MOST_SETS):
        raise TooLargeError(
            f"all sets of up to {largest} of {d - 1} parents are too many to be scored: allow fewer parents"
        )
    found: dict[int, tuple[NDArray[np.int32], NDArray[np.float64]]] = {}
    scored = np.zeros(d, np.int64)

    def fill(node: int) -> None:
        possible = np.flatnonzero(~score.constraints.forbidden[:, node] & (np.arange(d) != node))
        sets = all_sets(len(possible), min(largest, len(possible)))
        values = local_of_sets(score, node, possible, sets)
        kept = kept_sets(values, len(possible), sets.shape[1], epsilon)
        kept = kept[np.argsort(-values[kept], kind="stable")]
        members = np.full((len(kept), largest), d, np.int32)
        members[:, : sets.shape[1]] = np.append(possible, d)[sets[kept]]
        found[node] = members, values[kept]
        scored[node] = len(sets)

    map_threads(fill, range(d), progress)
    lengths = [len(found[node][1]) for node in range(d)]
    if min(lengths) == 0:
        raise KnowledgeError(
            f"variable {score.names[int(np.argmin(lengths))]} has no allowed set of at most "
            f"{counted(largest, 'parent')}: relax the required or forbidden edges or the limit on parents"
        )
    members = np.full((d, max(lengths), largest), d, np.int32)
    scores = np.full((d, max(lengths)), -np.inf)
    for node, (own, values) in found.items():
        members[node, : len(own)], scores[node, : len(own)] = own, values
    return ParentLists(members, scores, epsilon, largest, int(scored.sum()))


@lru_cache(maxsize=4)
def all_sets(num_possible: int, largest: int) -> NDArray[np.int64]:
    """All sets of up to `largest` numbers below `num_possible`, [n, largest], filled up with `num_possible`.

    Smaller sets first, then by their largest members: the set c₁ < … < c_s is Σ_i binom(c_i, i) places behind
    the first of its size.
    """
    parts = []
    for size in range(largest + 1):
        number = math.comb(num_possible, size)
        reversed_sets = itertools.chain.from_iterable(
            itertools.combinations(range(num_possible - 1, -1, -1), size)
        )
        flat = np.fromiter(reversed_sets, np.int64, number * size).reshape(number, size)
        filled = np.full((number, largest), num_possible, np.int64)
        filled[:, :size] = flat[::-1, ::-1]
        parts.append(filled)
    return np.concatenate(parts)


def ranks(num_possible: int, largest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What the places in `all_sets` are made of: binom(n, k), [K + 1, m + 1], and where each size begins."""
    binomials = [[math.comb(n, k) for k in range(largest + 1)] for n in range(num_possible + 1)]
    first = np.cumsum([0] + [math.comb(num_possible, size) for size in range(largest + 1)])
    return np.array(binomials, np.int64), first


def kept_sets(
    scores: NDArray[np.float64], num_possible: int, largest: int, epsilon: float
) -> NDArray[np.int64]:
    """Indices of the sets that are not left out.

    Args:
        scores: of the sets of `all_sets`, float64 [n].
        num_possible: K, the number of possible parents.
        largest: number of parents of any set.
        epsilon: share that may be lost.
    """
    binomials, first = ranks(num_possible, largest)
    size = np.arange(largest + 1.0)
    k = float(max(num_possible, 1))
    weights = np.exp(
        (size[:, None] - k) * np.log1p(1 / k) + (size[:, None] - size) * np.log(k)
    )  # w(R, S) by their sizes
    keep = np.isfinite(scores)
    sets = all_sets(num_possible, largest)
    _leave_out(sets, scores, first, binomials, weights, epsilon, keep)
    return np.flatnonzero(keep)


def local_of_sets(score: Score, node: int, possible: NDArray, sets: NDArray[np.int64]) -> NDArray[np.float64]:
    """The local score of the sets of `all_sets`, whose numbers stand for `possible` parents, [n]."""
    values = np.empty(len(sets))
    columns = np.append(possible, score.num_variables)
    for start in range(0, len(sets), _CHUNK):
        part = slice(start, start + _CHUNK)
        parents = np.zeros((len(sets[part]), score.num_variables + 1), bool)
        np.put_along_axis(parents, columns[sets[part]], True, axis=1)
        values[part] = score.local(node, parents[:, :-1])
    return values


@njit(cache=True, nogil=True)
def _leave_out(sets, scores, first, binomials, weights, epsilon, keep):
    """Clear `keep` for the sets that are left out."""
    charged = np.empty(sets.shape[1])  # Σ_R w(R, S) π(R) / π(S) over the subsets with each member
    for n in range(1, sets.shape[0]):
        if not keep[n]:
            continue
        size = 0
        while first[size + 1] <= n:
            size += 1
        charged[:] = 0.0
        for subset in range(1, 1 << size):
            position, number = 0, 0
            for i in range(size):
                if subset >> i & 1:
                    number += 1
                    position += binomials[sets[n, i], number]
            share = weights[number, size] * np.exp(scores[first[number] + position] - scores[n])
            for i in range(size):
                if subset >> i & 1:
                    charged[i] += share
        smallest = np.inf
        for i in range(size):
            smallest = min(smallest, charged[i])
        if epsilon * smallest > 1.0:
            keep[n] = False
