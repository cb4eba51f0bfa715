"""Where chains begin: scattered graphs cooled down to the posterior, and a ranking of likely parents.

The ranking is learnt from chains on their way: whatever it is, from then on chains have the posterior over
all DAGs as their law, only sooner where it is good.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gflowdag.graph.bits import words_of
from gflowdag.mcmc.scattered import scattered_graphs
from gflowdag.mcmc.unrestricted.candidate_sets import Pools, make_pools
from gflowdag.mcmc.unrestricted.chains import Chain, Sums, make_sums, make_workspace, sweep
from gflowdag.mcmc.unrestricted.tables import LocalTables, local_tables
from gflowdag.mcmc.unrestricted.xoshiro import random_states
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.threads import map_threads
from gflowdag.score import Score

_HOTTEST = 0.4  # inverse temperature at which cooling begins; hotter, nothing is settled yet
_COOLING = 200  # sweeps from a scattered start to the posterior
_WEIGHED = 20  # sweeps there, whose mean log score says how good a start has become
_LEARNING = 100  # sweeps there, of all chains, from which the ranking is learnt that counts
_ROUNDS = 2  # of short chains before, each with the ranking that the one before has learnt
_SHORT_CHAINS = 4
_SHORT_SWEEPS = 60  # of cooling, and as many to learn from
_WARM = 0.6  # inverse temperature from which on cooling chains are learnt from: other modes show there
_SHARE_OF_WARM = 0.3  # of what is seen there, beside what is seen at the posterior
_LIKELY = 0.05  # probability from which on a parent deserves a place in a larger core
_LARGER = 3  # at most, than the others
_CHILD = 0.5  # of a parent: an edge can only be reversed while its ends are candidates of each other


def start(
    score: Score,
    *,
    num_chains: int,
    core_size: int,
    num_outsiders: int,
    seed: int,
    deadline: Deadline,
    report: Callable[[], None] = lambda: None,
) -> tuple[Pools, list[Chain]]:
    """Chains at the posterior from as many scattered graphs, and pools in which likely parents come first.

    Cooling is cut short at the deadline; `report` is called after each chain.
    """
    required, forbidden, _ = score.constraints
    interest, doubt = _interest_alone(score), None
    plan = [(_SHORT_CHAINS, _SHORT_SWEEPS, _SHORT_SWEEPS)] * _ROUNDS + [(num_chains, _COOLING, _LEARNING)]
    core_sizes, chains = np.full(len(interest), core_size), []
    for (number, cooling, learning), part in zip(
        plan, np.random.SeedSequence(seed).spawn(len(plan)), strict=True
    ):
        pools = make_pools(
            interest, required, forbidden, core_size=core_sizes, num_outsiders=num_outsiders, doubt=doubt
        )
        tables = local_tables(score, pools)
        chains = scattered_chains(score, number, int(part.generate_state(1)[0]))
        edges = _learn(chains, pools, tables, cooling, learning, deadline, report)
        interest = edges + _CHILD * edges.T
        doubt = edges * (1 - edges)
        core_sizes = np.clip((interest > _LIKELY).sum(axis=0), core_size, core_size + _LARGER)
    pools = make_pools(
        interest, required, forbidden, core_size=core_sizes, num_outsiders=num_outsiders, doubt=doubt
    )
    return pools, chains


def _interest_alone(score: Score) -> NDArray[np.float64]:
    """Interest in edges by the rank of a parent, alone beside the required ones, [d, d], rows are sources."""
    required = score.constraints.required
    alone = [score.extended_local(node, required[:, node][None])[0] for node in range(len(required))]
    best_first = np.argsort(-np.nan_to_num(np.stack(alone, axis=1), nan=-np.inf), axis=0, kind="stable")
    ranks = np.argsort(best_first, axis=0).astype(np.float64)
    return 1 / (1.0 + ranks)


def _learn(
    chains: list[Chain],
    pools: Pools,
    tables: LocalTables,
    cooling: int,
    learning: int,
    deadline: Deadline,
    report: Callable[[], None],
) -> NDArray[np.float64]:
    """Cool the chains, in place; the edge probabilities that they see, mostly from then on, [d, d]."""
    d = len(pools.required)
    seen = np.zeros((len(chains), d, d))

    def learn(number: int) -> None:
        work, warm, settled = make_workspace(pools), make_sums(d), make_sums(d)
        num_warm = cool(chains[number], pools, tables, cooling, sums=warm, deadline=deadline)
        done = 0
        while done == 0 or (done < learning and not deadline.has_passed):
            sweep(chains[number], pools, tables, work, sums=settled)
            done += 1
        in_all = settled.edges / done + _SHARE_OF_WARM * warm.edges / max(num_warm, 1)
        seen[number] = in_all / (1 + _SHARE_OF_WARM * (num_warm > 0))

    map_threads(learn, range(len(chains)), lambda *_, **__: report())
    return seen.mean(axis=0)


def scattered_chains(score: Score, num_chains: int, seed: int) -> list[Chain]:
    """Chains at random graphs of about one edge a node, along random orders that knowledge allows."""
    graphs = scattered_graphs(score, num_chains, seed)
    randoms = random_states(seed, num_chains)
    return [Chain(words_of(graph.T), random) for graph, random in zip(graphs, randoms, strict=True)]


def settled_scores(
    score: Score, pools: Pools, tables: LocalTables, num_starts: int, seed: int, deadline: Deadline
) -> NDArray[np.float64]:
    """Mean log scores to which so many scattered starts cool down until the deadline, [num_starts]."""
    chains = scattered_chains(score, num_starts, seed)
    reached = np.zeros(len(chains))

    def settle(number: int) -> None:
        cool(chains[number], pools, tables, _COOLING, deadline=deadline)
        work, seen = make_workspace(pools), list[float]()
        while not seen or (len(seen) < _WEIGHED and not deadline.has_passed):
            seen.append(sweep(chains[number], pools, tables, work))
        reached[number] = np.mean(seen)

    map_threads(settle, range(len(chains)))
    return reached


def cool(
    chain: Chain,
    pools: Pools,
    tables: LocalTables,
    num_sweeps: int,
    *,
    sums: Sums | None = None,
    deadline: Deadline = Deadline(),  # noqa: B008 (immutable)
) -> int:
    """Move a chain from the hottest temperature to its own, in place, or stop at the deadline.

    Returns:
        How many sweeps, the warm ones, are added to `sums`.
    """
    work = make_workspace(pools)
    num_warm = 0
    for beta in np.geomspace(_HOTTEST, 1.0, num_sweeps):
        if deadline.has_passed:
            break
        is_warm = sums is not None and beta > _WARM
        sweep(chain, pools, tables, work, sums=sums if is_warm else None, beta=float(beta))
        num_warm += is_warm
    return num_warm
