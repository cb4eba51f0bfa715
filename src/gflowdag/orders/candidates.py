"""Parent sets restricted to a few good candidates for each node, where a dense table does not fit.

The support of node `j` is all subsets of its `K` candidates and, for every other node (an *outsider*), the
set of that outsider alone: so a node can always be given a parent among any placed nodes, and no order is a
dead end. A dense table is the special case in which every other node is a candidate.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.errors import ScoreError
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.threads import map_threads
from gflowdag.score.base import Score
from gflowdag.search.hill_climbing import iterated_climb

_BEAM = 32  # parent sets that stand for the posterior of a node while its candidates are chosen
_TIMED = 10  # candidates whose subsets are scored to see how long more would take


class CandidateTable(NamedTuple):
    """The scores of a restricted family of parent sets."""

    candidates: NDArray[np.int32]  # [d, K], possible parents of each node, ascending
    scores: NDArray[np.float64]  # [d, 2^K]; bit k of the index stands for candidates[j, k]
    singles: NDArray[np.float64]  # [d (node), d (outsider)], score of the set {outsider}; −inf for candidates

    @property
    def num_variables(self) -> int:
        """Number of variables, `d`."""
        return self.candidates.shape[0]

    @property
    def num_candidates(self) -> int:
        """Candidates of each node, `K`."""
        return self.candidates.shape[1]


def dense_candidates(table: NDArray[np.float64]) -> CandidateTable:
    """A dense table [d, 2^(d−1)] as candidate table: all others are candidates, nothing is lost."""
    d = len(table)
    others = np.array([np.delete(np.arange(d), node) for node in range(d)], np.int32).reshape(d, d - 1)
    return CandidateTable(others, table, np.full((d, d), -np.inf))


def candidate_table(
    score: Score,
    num_candidates: int,
    progress: Progress = silent,
    *,
    seed: int = 0,
    deadline: Deadline = Deadline(),  # noqa: B008 (immutable)
) -> CandidateTable:
    """Choose candidate parents greedily and score their subsets.

    The parents in one good DAG come first: left to itself, a node takes its children for parents, and has no
    room left for the parents that it needs where the children come after it.

    Args:
        score: any score.
        num_candidates: `K`; the table holds `d 2^K` numbers. At least the number of required parents of any
            node.
        progress: told about the nodes done.
        seed: of the search for a good DAG.
        deadline: by when the table should be there. Where scores take long it has fewer candidates then, but
            not fewer than ten.
    """
    d = score.num_variables
    size = min(num_candidates, d - 1)
    most_required = int(score.constraints.required.sum(axis=0).max(initial=0))
    if size < most_required:
        raise ScoreError(
            f"num_candidates = {num_candidates} is less than the {most_required} required parents."
        )
    ranked = np.empty((d, size), np.int64)
    good = iterated_climb(score, np.random.default_rng(seed))

    def choose(node: int) -> None:
        ranked[node] = _choose(score, node, size, good)

    map_threads(choose, range(d))
    size = _affordable(score, ranked, max(most_required, 1), deadline)
    candidates = np.sort(ranked[:, :size], axis=1).astype(np.int32)
    scores = np.empty((d, 1 << size))
    singles = np.full((d, d), -np.inf)

    def fill(node: int) -> None:
        chosen = candidates[node].astype(np.int64)
        scores[node] = score.likelihood.local_subsets(node, chosen)
        scores[node] += score.structure_prior.of_subsets(node, chosen)
        score.forbid(node, chosen, scores[node])
        outsiders = np.setdiff1d(np.arange(d), [*chosen, node])
        singles[node, outsiders] = score.local(node, np.eye(d, dtype=bool)[outsiders])

    map_threads(fill, range(d), progress)
    return CandidateTable(candidates, scores, singles)


def table_log_scores(table: CandidateTable, graphs: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Log score of DAGs whose parents are candidates or a single outsider, bool [n, d, d] -> float64 [n]."""
    d, num_candidates = table.candidates.shape
    nodes = np.arange(d)[:, None]
    listed = graphs[:, table.candidates, nodes]  # [n, d, K]
    index = listed @ (1 << np.arange(num_candidates))
    alone = np.where(graphs.transpose(0, 2, 1), table.singles, -np.inf).max(axis=2)  # [n, d]
    return np.where(np.isfinite(alone), alone, table.scores[nodes[:, 0], index]).sum(axis=1)


def _choose(score: Score, node: int, size: int, good: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Parents in a good DAG, then one by one the nodes that take most mass beside the best sets, [size].

    Pairs of new parents count too, so that two causes which only help together are found.
    """
    d = score.num_variables
    required = score.constraints.required[:, node]
    parents = good[:, node]
    chosen = np.concatenate([np.flatnonzero(required), np.flatnonzero(parents & ~required)])[:size]
    free = ~np.isin(np.arange(d), [*chosen, node])
    beam = np.unique(np.stack([required, parents]), axis=0)
    values = score.local(node, beam)
    extended = score.extended_local(node, beam)
    pairs = score.extended_local(node, required | np.eye(d, dtype=bool)[free])
    while len(chosen) < size:
        mass = np.logaddexp.reduce(np.concatenate([extended, pairs]), axis=0)
        options = np.flatnonzero(free)
        best = options[np.argmax(mass[options])]  # a forbidden parent (−inf) only where nothing else is left
        chosen = np.append(chosen, best)
        free[best] = False
        larger = beam.copy()
        larger[:, best] = True
        beam = np.concatenate([beam, larger])
        values = np.concatenate([values, extended[:, best]])
        extended = np.concatenate([extended, np.full_like(extended, np.nan)])
        keep = np.argsort(-values, kind="stable")[:_BEAM]
        beam, values, extended = beam[keep], values[keep], extended[keep]
        fresh = np.isnan(extended).all(axis=1)
        extended[fresh] = score.extended_local(node, beam[fresh])
    return chosen


def _affordable(score: Score, ranked: NDArray[np.int64], fewest: int, deadline: Deadline) -> int:
    """Of how many of each node's `ranked` candidates [d, K] all subsets can be scored until the deadline."""
    d, most = ranked.shape
    if not deadline.is_set or most <= max(_TIMED, fewest):
        return most
    started = time.monotonic()
    map_threads(lambda node: _time_subsets(score, node, ranked[node, :_TIMED]), range(d))
    doublings = math.log2(max(deadline.seconds_left, 1e-9) / (time.monotonic() - started))
    return int(np.clip(_TIMED + math.floor(doublings), max(_TIMED, fewest), most))


def _time_subsets(score: Score, node: int, candidates: NDArray[np.int64]) -> None:
    score.likelihood.local_subsets(node, candidates)
