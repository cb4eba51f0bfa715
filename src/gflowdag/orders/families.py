"""Families of parent sets that are summed in full: any of a node's likely parents, and some of the others.

The family of node `j` are all sets `B ∪ R` with `B` any subset of its *core* (its most likely parents) and
`R` at most `r_j` of the others. With an empty core these are all sets up to a number of parents; a node that
takes ten parents needs a core. Which of the families of about equal size a node gets is decided by graphs
from the posterior: the one that leaves fewest of them out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.errors import ScoreError
from gflowdag.orders.lists import MOST_SETS, all_sets
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.threads import map_threads
from gflowdag.score.base import Score

_LARGEST_CORE = 16
_SLOW_SHARE = 10  # of the sets, where a local score is no matter of a few determinants
_LARGER = 10  # times as many sets, for nodes of which a smaller family leaves out too much
_TOO_MUCH = 0.002  # share of graphs left out, from which on a node gets the larger family
_CHUNK = 1 << 16  # parent sets that are scored at a time


class Families(NamedTuple):
    """Which parent sets of every node are summed."""

    ranked: NDArray[np.int64]  # [d, d], possible parents of each node: its core first; d after the last
    core_sizes: NDArray[np.int64]  # [d]
    num_others: NDArray[np.int64]  # [d], possible parents that are not in the core
    most_others: NDArray[np.int64]  # [d], r_j, how many of these come together
    limit: int  # parents that knowledge allows

    def has_all(self) -> bool:
        """Whether every allowed parent set is in its family."""
        return bool((self.most_others >= np.minimum(self.num_others, self.limit)).all())

    def is_possible(self) -> NDArray[np.bool_]:
        """Which parents (columns) each node (rows) may have, bool [d, d]."""
        d = len(self.ranked)
        found = np.zeros((d, d + 1), bool)
        np.put_along_axis(found, self.ranked, True, axis=1)
        return found[:, :d]

    def left_out(self, graphs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Of which nodes of graphs, bool [n, d, d], the parents are not in the family, bool [n, d]."""
        found = np.zeros((len(graphs), len(self.ranked)), bool)
        for node, size in enumerate(self.core_sizes):
            others = self.ranked[node, size : size + self.num_others[node]]
            found[:, node] = graphs[:, others, node].sum(axis=1) > self.most_others[node]
        return found


def all_up_to(score: Score, max_parents: int) -> Families:
    """The families of all sets of at most so many parents."""
    d = score.num_variables
    required, forbidden, limit = score.constraints
    nobody = np.zeros((0, d, d), bool)
    ranked, number, least = _ranked(required, forbidden, nobody)
    most = np.minimum(number - least, np.maximum(max_parents - least, 0))
    return Families(ranked, least, number - least, most, d if limit is None else limit)


def likely_families(score: Score, graphs: NDArray[np.bool_], *, most_sets: int | None = None) -> Families:
    """The families that leave out fewest of some graphs.

    Args:
        score: of the graphs.
        graphs: from the posterior, bool [n, d, d], n ≥ 1.
        most_sets: of a node; by default as many as are quickly scored.
    """
    d = score.num_variables
    required, forbidden, limit = score.constraints
    is_fast = score.likelihood.normal_wishart is not None
    if most_sets is None:
        most_sets = MOST_SETS if is_fast else MOST_SETS // _SLOW_SHARE
    sizes = (most_sets, _LARGER * most_sets) if is_fast else (most_sets,)
    ranked, number, least = _ranked(required, forbidden, graphs)
    cores, others = np.zeros(d, np.int64), np.zeros(d, np.int64)
    for node in range(d):
        likely = graphs[:, np.minimum(ranked[node], d - 1), node]
        likely[:, number[node] :] = False
        for most in sizes:
            share = 2.0
            for core in range(least[node], min(number[node], _LARGEST_CORE) + 1):
                together = most_together(number[node] - core, most >> core)
                if together < 0:
                    break
                left_out = (likely[:, core:].sum(axis=1) > together).mean()
                if left_out < share:
                    share, cores[node], others[node] = left_out, core, together
            if share > 1:
                raise ScoreError(
                    f"a node has {least[node]} required parents, too many to sum over the others"
                )
            if share <= _TOO_MUCH:
                break
    allowed = d if limit is None else limit
    return Families(ranked, cores, number - cores, np.minimum(others, allowed), allowed)


def most_together(number: int, most_sets: int) -> int:
    """How many of a number of parents may come together in so many sets; −1 where even none is too many."""
    sets = 0
    for size in range(number + 1):
        sets += math.comb(number, size)
        if sets > most_sets:
            return size - 1
    return number


def family_scores(score: Score, families: Families, progress: Progress = silent) -> list[NDArray[np.float64]]:
    """The local scores of every family, float64 [sets of others, 2^core] for each node.

    Sets of others are in the places of `all_sets`; bit `k` of the second index stands for `ranked[j, k]`.
    """
    d = score.num_variables
    _, _, limit = score.constraints
    found: list[NDArray[np.float64]] = [np.zeros((0, 0))] * d

    def fill(node: int) -> None:
        size, number = families.core_sizes[node], families.num_others[node]
        core = families.ranked[node, :size]
        columns = np.append(families.ranked[node, size : size + number], d)
        sets = all_sets(int(number), int(families.most_others[node]))
        scores = np.full((len(sets), 1 << size), -np.inf)
        step = max(_CHUNK >> size, 1)
        for start in range(0, len(sets), step):
            part = slice(start, start + step)
            beside = np.zeros((len(sets[part]), d + 1), bool)
            np.put_along_axis(beside, columns[sets[part]], True, axis=1)
            beside = beside[:, :-1]
            fits = beside.sum(axis=1) <= (d if limit is None else limit)
            if size:
                scores[part][fits] = score.local_blocks(node, core, beside[fits])
            else:
                scores[part][:, 0] = score.local(node, beside)
        found[node] = scores

    map_threads(fill, range(d), progress)
    return found


def _ranked(
    required: NDArray[np.bool_], forbidden: NDArray[np.bool_], graphs: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Possible parents of each node by how often they are one, required ones first, and how many."""
    d = len(required)
    often = graphs.mean(axis=0) if len(graphs) else np.zeros((d, d))
    ranked, number = np.full((d, d), d, np.int64), np.zeros(d, np.int64)
    for node in range(d):
        possible = np.flatnonzero(~forbidden[:, node] & (np.arange(d) != node))
        by_use = possible[np.lexsort((-often[possible, node], ~required[possible, node]))]
        ranked[node, : len(by_use)], number[node] = by_use, len(by_use)
    return ranked, number, required.sum(axis=0)
