"""One chain over all DAGs: refresh the tables, move the graph inside them, and again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.mcmc.bit_graphs import of_parents
from gflowdag.mcmc.unrestricted.candidate_sets import CandidateSets, Pools, draw_candidates, empty_sets
from gflowdag.mcmc.unrestricted.joint import JointScratch, make_joint_scratch, redraw_together
from gflowdag.mcmc.unrestricted.moves import (
    Scratch,
    Weights,
    edge_probabilities,
    make_scratch,
    prepare,
    redraw,
    reverse,
)
from gflowdag.mcmc.unrestricted.singles import draw_bases, redraw_singles
from gflowdag.mcmc.unrestricted.tables import LocalTables
from gflowdag.mcmc.unrestricted.xoshiro import integer, uniform


class Settings(NamedTuple):
    """How a chain moves."""

    moves_per_node: int = 4  # moves between two refreshes, for each node
    reversal_share: float = 0.4  # how many of them are reversals
    joint_share: float = 0.2  # how many draw the parent sets of several nodes together


DEFAULTS = Settings()


class Chain(NamedTuple):
    """The whole state: what is needed to go on bit for bit."""

    parents: NDArray[np.uint64]  # [d, W]
    random: NDArray[np.uint64]  # [4]


class Sums(NamedTuple):
    """What a chain has seen, added up over its sweeps."""

    edges: NDArray[np.float64]  # [d, d], edge probabilities given all other parent sets; rows are sources
    log_score: NDArray[np.float64]  # []
    reversals: NDArray[np.int64]  # [2], proposed and accepted


class Workspace(NamedTuple):
    """Room for the tables of one chain; nothing in it outlives a sweep."""

    sets: CandidateSets
    scores: NDArray[np.float64]  # [d, 2^K]
    weights: Weights
    scratch: Scratch
    joint: JointScratch
    bases: NDArray[np.uint64]  # [d, W]
    beside_base: NDArray[np.float64]  # [d, d], scores with one more parent


def make_workspace(pools: Pools) -> Workspace:
    """Room for a chain over these pools."""
    sets = empty_sets(pools)
    d, num_candidates = sets.candidates.shape
    shape = (d, 1 << num_candidates)
    weights = Weights(np.zeros(shape), np.zeros(shape))
    return Workspace(
        sets,
        np.zeros(shape),
        weights,
        make_scratch(pools.focus.pairs),
        make_joint_scratch(d, shape[1]),
        np.zeros_like(pools.required),
        np.zeros((d, d)),
    )


def make_sums(d: int) -> Sums:
    """Nothing seen yet."""
    return Sums(np.zeros((d, d)), np.zeros(()), np.zeros(2, np.int64))


def sweep(
    chain: Chain,
    pools: Pools,
    tables: LocalTables,
    work: Workspace,
    *,
    sums: Sums | None = None,
    beta: float = 1.0,
    settings: Settings = DEFAULTS,
) -> float:
    """One refresh and the moves in it; `chain` changes in place.

    Args:
        chain: where it is.
        pools: of candidates.
        tables: fills the tables.
        work: scratch.
        sums: what to add to, if anything.
        beta: inverse temperature; the posterior to this power is left as it is.
        settings: how to move.

    Returns:
        The log score of the graph now.
    """
    draw_candidates(chain.parents, pools, chain.random, work.sets)
    tables.fill(work.sets, work.scores)
    weigh(work.scores, work.sets, pools.core_sizes, beta, work.weights)
    edges = np.empty((0, 0)) if sums is None else sums.edges
    is_cold = beta == 1.0
    counted, certain = (pools.core_sizes, pools.required) if is_cold else (work.sets.sizes, work.sets.base)
    log_score, proposed, accepted = _move(chain, pools.focus, work, settings, counted, certain, edges)
    if is_cold:  # at other temperatures sets are seen once, and their scores would be computed for nothing
        draw_bases(chain.parents, pools, chain.random, work.bases)
        tables.extend(work.bases, work.beside_base)
        log_score = redraw_singles(chain.parents, work.bases, work.beside_base, pools, chain.random, edges)
    if sums is not None:
        sums.log_score[...] += log_score
        sums.reversals[:] += proposed, accepted
    return log_score


@njit(cache=True, nogil=True)
def weigh(scores, sets, core_sizes, beta, weights):
    """Tempered scores with the correction for the draw of the sets, the largest of each node at 0."""
    for node in range(len(sets.sizes)):
        log, linear = weights.log[node], weights.linear[node]
        largest = -np.inf
        for subset in range(1 << sets.sizes[node]):
            log[subset] = beta * scores[node, subset] + sets.correction[node, subset >> core_sizes[node]]
            largest = max(largest, log[subset])
        for subset in range(1 << sets.sizes[node]):
            log[subset] -= largest
            linear[subset] = np.exp(log[subset])


@njit(cache=True, nogil=True)
def _move(chain, focus, work, settings, counted, certain, edges):
    """Move the graph, look at it where `edges` has room; its log score, reversals proposed and accepted."""
    parents = chain.parents
    d = parents.shape[0]
    graph = of_parents(parents)
    sets, weights, scratch, random = work.sets, work.weights, work.scratch, chain.random
    prepare(graph, sets, scratch)
    proposed = accepted = 0
    for _ in range(settings.moves_per_node * d):
        kind = uniform(random)
        if kind < settings.reversal_share:
            proposed += 1
            accepted += reverse(graph, sets, weights, scratch, random)
        elif kind < settings.reversal_share + settings.joint_share:
            redraw_together(graph, sets, weights, focus, scratch, work.joint, random)
        else:
            redraw(graph, sets, weights, scratch, integer(random, d), random)
    if edges.size > 0:
        edge_probabilities(graph, sets, weights, scratch, counted, certain, edges)
    log_score = 0.0
    for node in range(d):
        log_score += work.scores[node, scratch.index[node]]
    return log_score, proposed, accepted
