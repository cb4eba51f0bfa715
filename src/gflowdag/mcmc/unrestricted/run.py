"""Chains from scattered starts until they agree, or until the end of the budget.

Each chain is recorded in segments of equal length: mean edge probabilities, mean log score, and the graph at
the end. When there are too many, neighbours are joined and segments are twice as long from then on. The
verdict rests on all but the first quarter. Chains that all keep one score are one sample each: they are only
believed if many further scattered starts come to that score too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.graph.bits import bools_of
from gflowdag.mcmc.unrestricted.candidate_sets import Pools
from gflowdag.mcmc.unrestricted.chains import (
    DEFAULTS,
    Chain,
    Settings,
    Workspace,
    make_sums,
    make_workspace,
    sweep,
)
from gflowdag.mcmc.unrestricted.start import settled_scores, start
from gflowdag.mcmc.unrestricted.tables import LocalTables, local_tables
from gflowdag.runtime.convergence import (
    FEWEST_SCATTERED_CHAINS,
    MAXIMAL_ERROR,
    MAXIMAL_R_HAT,
    MINIMAL_EFFECTIVE_SAMPLES,
    MOVING,
    bulk_ess,
    rank_r_hat,
    stated_error,
    tail_ess,
    varies,
)
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.threads import map_threads
from gflowdag.score import Score

_FIRST_LENGTH = 4  # sweeps in a segment
_MOST_SEGMENTS = 256  # then neighbours are joined; half as many where they would take more than
_MOST_BYTES = 2**30
_BETWEEN_VERDICTS = 32  # segments
_FEWEST_SEGMENTS = 16  # that are judged at all
_FEWEST_IN_TIME = 12  # where the time is over: the halves of what counts have four each, as ESS needs
FEWEST_SWEEPS = _FEWEST_SEGMENTS * _FIRST_LENGTH  # of a chain that is judged
_SHARE_OF_STARTS = 0.5  # of the time, at most, until chains count
_LEFT_OUT = 4  # one part in so many, at the beginning


class Records(NamedTuple):
    """What every chain has seen, in segments; room for `S` of them."""

    edges: NDArray[np.float32]  # [chains, S, d, d], rows are sources
    log_scores: NDArray[np.float64]  # [chains, S], means
    parents: NDArray[np.uint64]  # [chains, S, d, W], graph at the end of each segment
    last_log_scores: NDArray[np.float64]  # [chains, S], of these graphs
    number: int  # of segments so far
    length: int  # sweeps in a segment


class State(NamedTuple):
    """All that a run needs to go on bit for bit."""

    pools: Pools
    parents: NDArray[np.uint64]  # [chains, d, W]
    random: NDArray[np.uint64]  # [chains, 4]
    records: Records
    num_sweeps: int  # of each chain, without those that led to the posterior
    reversals: NDArray[np.int64]  # [2], proposed and accepted


class Verdict(NamedTuple):
    """Whether the chains agree."""

    trusted: bool
    r_hat: float  # rank-normalised, the largest of any edge and of the score
    bulk_ess: float  # the smallest
    tail_ess: float  # of the score
    error: float  # the largest Monte Carlo error of an edge probability
    is_frozen: bool = False  # whether all chains keep one score: then each is one sample
    slowest: tuple[int, int] | None = None  # source and target of the edge with the fewest effective samples


class Result(NamedTuple):
    """What the chains found, and where they stand."""

    edge_probabilities: NDArray[np.float64]  # [d, d]
    edge_errors: NDArray[np.float64]  # [d, d], Monte Carlo errors
    graphs: NDArray[np.bool_]  # [chains, draws, d, d]
    log_scores: NDArray[np.float64]  # [chains, draws]
    verdict: Verdict
    state: State


def run(
    score: Score,
    *,
    seed: int = 0,
    state: State | None = None,
    num_chains: int = 8,
    core_size: int = 5,
    num_outsiders: int = 2,
    deadline: Deadline = Deadline(),  # noqa: B008 (immutable)
    max_sweeps: int | None = None,
    stop_when: Callable[[Verdict], bool] = lambda verdict: verdict.trusted,
    settings: Settings = DEFAULTS,
    after_segment: Callable[[State], None] = lambda state: None,
    progress: Progress = silent,
) -> Result:
    """Sample DAGs in proportion to a score.

    Args:
        score: any score.
        seed: of the chains; without meaning where `state` is given.
        state: of an earlier run of the same score, to go on from.
        num_chains: chains from scattered starts.
        core_size: likely parents of each node that are tabulated in every sweep; up to three more where more
            are likely.
        num_outsiders: others that are tabulated beside them, drawn anew for every sweep.
        deadline: the end of the time there is; the run ends soon after it.
        max_sweeps: sweeps of each chain after which it ends, earlier ones of `state` included; at least
            `FEWEST_SWEEPS`.
        stop_when: whether a verdict is good enough.
        settings: how chains move.
        after_segment: given the state from time to time, to be kept; later segments are written into its
            arrays.
        progress: told about the time used, with the verdict of the moment.
    """
    whole = deadline.seconds_left
    if state is None:
        pools, chains = start(
            score,
            num_chains=num_chains,
            core_size=core_size,
            num_outsiders=num_outsiders,
            seed=seed,
            deadline=deadline.share(_SHARE_OF_STARTS),
            report=lambda: progress(whole - deadline.seconds_left, whole) if deadline.is_set else None,
        )
        state = _first_state(pools, chains)
    else:
        state = _copied(state)
    tables = local_tables(score, state.pools)
    works = [make_workspace(state.pools) for _ in state.parents]
    possible = ~(score.constraints.required | score.constraints.forbidden)
    summary, others = None, None
    while True:
        number = state.records.number
        due = number % _BETWEEN_VERDICTS == 0 and number > 0
        over = (max_sweeps is not None and state.num_sweeps >= max_sweeps) or (
            deadline.has_passed and number >= _FEWEST_IN_TIME
        )
        if due or over:
            summary = summarise(state.records, possible)
            if summary[2].is_frozen:
                if others is None:
                    others = _other_starts(score, state, tables, deadline)
                summary = (*summary[:2], _beside_others(summary[2], state, others))
            if over or stop_when(summary[2]):
                break
        state = _next_segment(state, tables, works, settings, deadline)
        after_segment(state)
        verdict = {} if summary is None else {"r_hat": summary[2].r_hat, "error": summary[2].error}
        if max_sweeps is not None:
            progress(min(state.num_sweeps, max_sweeps), max_sweeps, **verdict)
        elif deadline.is_set:
            progress(whole - deadline.seconds_left, whole, **verdict)
    probabilities, errors, verdict = summary
    kept = slice(state.records.number // _LEFT_OUT, state.records.number)
    graphs = bools_of(state.records.parents[:, kept], score.num_variables).swapaxes(-1, -2)
    return Result(probabilities, errors, graphs, state.records.last_log_scores[:, kept], verdict, state)


def _first_state(pools: Pools, chains: list[Chain]) -> State:
    """Chains of which nothing is recorded yet."""
    d, num_words = pools.required.shape
    num_chains = len(chains)
    is_large = num_chains * _MOST_SEGMENTS * d * d * np.float32().nbytes > _MOST_BYTES
    room = (num_chains, _MOST_SEGMENTS // 2 if is_large else _MOST_SEGMENTS)
    records = Records(
        np.zeros((*room, d, d), np.float32),
        np.zeros(room),
        np.zeros((*room, d, num_words), np.uint64),
        np.zeros(room),
        0,
        _FIRST_LENGTH,
    )
    parents = np.stack([chain.parents for chain in chains])
    random = np.stack([chain.random for chain in chains])
    return State(pools, parents, random, records, 0, np.zeros(2, np.int64))


def _copied(state: State) -> State:
    """The state with arrays of its own where a run writes."""
    records = state.records
    return state._replace(
        parents=state.parents.copy(),
        random=state.random.copy(),
        records=records._replace(
            edges=records.edges.copy(),
            log_scores=records.log_scores.copy(),
            parents=records.parents.copy(),
            last_log_scores=records.last_log_scores.copy(),
        ),
    )


def _next_segment(
    state: State, tables: LocalTables, works: list[Workspace], settings: Settings, deadline: Deadline
) -> State:
    """Every chain by one segment, or one sweep where the time is over; writes into the state."""
    records = state.records
    seen = [make_sums(state.parents.shape[1]) for _ in works]

    def advance(number: int) -> None:
        chain, sums, segment = (
            Chain(state.parents[number], state.random[number]),
            seen[number],
            records.number,
        )
        log_score, done = 0.0, 0
        while done < records.length and (done == 0 or not deadline.has_passed):
            log_score = sweep(chain, state.pools, tables, works[number], sums=sums, settings=settings)
            done += 1
        records.edges[number, segment] = sums.edges / done
        records.log_scores[number, segment] = sums.log_score / done
        records.parents[number, segment] = chain.parents
        records.last_log_scores[number, segment] = log_score

    map_threads(advance, range(len(works)))
    records = records._replace(number=records.number + 1)
    return state._replace(
        records=_joined(records) if records.number == records.log_scores.shape[1] else records,
        num_sweeps=state.num_sweeps + records.length,
        reversals=state.reversals + np.sum([sums.reversals for sums in seen], axis=0),
    )


def _joined(records: Records) -> Records:
    """Neighbouring segments as one, in place."""
    half = records.number // 2
    for means in (records.edges, records.log_scores):
        means[:, :half] = 0.5 * (means[:, ::2] + means[:, 1::2])
    for last in (records.parents, records.last_log_scores):
        last[:, :half] = last[:, 1::2].copy()
    return records._replace(number=half, length=2 * records.length)


def _other_starts(score: Score, state: State, tables: LocalTables, deadline: Deadline) -> NDArray[np.float64]:
    """Where many further scattered starts settle, by their log scores."""
    seed = int(np.random.SeedSequence(state.random[0].tolist()).generate_state(1)[0])
    return settled_scores(score, state.pools, tables, FEWEST_SCATTERED_CHAINS, seed, deadline)


def _beside_others(verdict: Verdict, state: State, others: NDArray[np.float64]) -> Verdict:
    """The verdict on frozen chains: they are right if other starts all come to the same score."""
    here = float(state.records.log_scores[0, state.records.number - 1])
    agree = not varies(np.append(others, [here] * FEWEST_SCATTERED_CHAINS).reshape(2, -1))
    fewest = float(len(others)) if agree else 1.0
    return verdict._replace(trusted=agree, bulk_ess=fewest, tail_ess=fewest)


def summarise(
    records: Records, possible: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], Verdict]:
    """Edge probabilities, their errors, and whether the chains agree."""
    kept = slice(records.number // _LEFT_OUT, records.number)
    return agreement(records.edges[:, kept], records.log_scores[:, kept], possible=possible)


def agreement(
    edges: NDArray[np.float32],
    log_scores: NDArray[np.float64],
    *,
    possible: NDArray[np.bool_] | None = None,
    frozen_is_one_sample: bool = True,
) -> tuple[NDArray[np.float64], NDArray[np.float64], Verdict]:
    """Edge probabilities, their errors, and whether chains agree.

    Args:
        edges: along the chains, [chains, draws, d, d].
        log_scores: [chains, draws].
        possible: bool [d, d], edges that graphs which no chain has visited may have or not have. What was
            not seen in `n` independent looks has a weight of exponential law with standard deviation `1 / n`.
        frozen_is_one_sample: whether chains that all keep one score are never trusted.
    """
    # One source at a time: all of them at once would be gigabytes in double precision.
    probabilities = np.stack([sources.mean(axis=(0, 1), dtype=np.float64) for sources in _by_source(edges)])
    spread = np.stack([sources.std(axis=(0, 1), dtype=np.float64) for sources in _by_source(edges)])
    moving = spread > MOVING
    traces = np.concatenate([edges[:, :, moving], log_scores[:, :, None]], axis=2, dtype=np.float64)
    effective = bulk_ess(traces)
    fewest = float(effective.min())
    errors, slowest = spread / np.sqrt(max(fewest, 1.0)), None
    if moving.any():
        errors[moving] = stated_error(edges[:, :, moving])
        source, target = np.argwhere(moving)[np.argmin(effective[:-1])]
        slowest = int(source), int(target)
    if possible is not None:
        errors[possible] = np.hypot(errors[possible], 1 / max(fewest, 1.0))
    worst, tail = float(rank_r_hat(traces).max()), float(tail_ess(log_scores))
    largest = float(errors.max())
    is_enough = min(fewest, tail) >= MINIMAL_EFFECTIVE_SAMPLES and largest <= MAXIMAL_ERROR
    is_frozen = frozen_is_one_sample and not varies(log_scores)
    trusted = worst <= MAXIMAL_R_HAT and is_enough and not is_frozen
    verdict = Verdict(bool(trusted), worst, fewest, tail, largest, bool(is_frozen), slowest)
    return probabilities, errors, verdict


def _by_source(edges: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
    """The edges of each node, [chains, segments, d]."""
    return (edges[:, :, source] for source in range(edges.shape[2]))
