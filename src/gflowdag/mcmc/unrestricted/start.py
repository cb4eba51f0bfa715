"""Where chains begin: a ranking of likely parents, and scattered graphs cooled down to the posterior.

The ranking is learnt from short chains of its own, which are then forgotten: whatever it is, the chains that
count have the posterior over all DAGs as their law, only sooner where it is good.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gflowdag.mcmc.scattered import scattered_graphs
from gflowdag.mcmc.unrestricted.candidate_sets import Pools, make_pools, words_of
from gflowdag.mcmc.unrestricted.chains import Chain, make_sums, make_workspace, sweep
from gflowdag.mcmc.unrestricted.tables import LocalTables, local_tables
from gflowdag.mcmc.unrestricted.xoshiro import random_states
from gflowdag.runtime.threads import map_threads
from gflowdag.score import Score

_HOTTEST = 0.4  # inverse temperature at which cooling begins; hotter, nothing is settled yet
_COOLING = 300  # sweeps from a scattered start to the posterior
_WEIGHED = 20  # sweeps there, whose mean log score says how good a start has become
_STARTS_PER_CHAIN = 3  # of which the best are kept: many freeze a hundred nats below the others
_ROUNDS = 2  # of short chains, each with the ranking that the one before has learnt
_SHORT_CHAINS = 4
_SHORT_SWEEPS = 60  # of cooling, and as many to learn from


def learn_pools(score: Score, *, core_size: int, num_outsiders: int, seed: int) -> Pools:
    """Pools in which likely parents, and likely children, come first."""
    required, forbidden, _ = score.constraints
    ranking = _ranking_alone(score)
    sizes = {"core_size": core_size, "num_outsiders": num_outsiders}
    for round_seed in np.random.SeedSequence(seed).generate_state(_ROUNDS):
        pools = make_pools(ranking, required, forbidden, **sizes)
        tables = local_tables(score, pools)
        chains = scattered_chains(score, _SHORT_CHAINS, int(round_seed))
        seen = np.zeros((len(chains), *required.shape))

        def learn(number: int, pools=pools, tables=tables, chains=chains, seen=seen) -> None:
            work, sums = make_workspace(pools), make_sums(len(required))
            cool(chains[number], pools, tables, _SHORT_SWEEPS)
            for _ in range(_SHORT_SWEEPS):
                sweep(chains[number], pools, tables, work, sums=sums)
            seen[number] = sums.edges / _SHORT_SWEEPS

        map_threads(learn, range(len(chains)))
        edges = seen.mean(axis=0)
        # A child counts half: an edge can only be reversed while its ends are candidates of each other.
        ranking = np.argsort(-(edges + 0.5 * edges.T), axis=0, kind="stable").T
    return make_pools(ranking, required, forbidden, **sizes)


def _ranking_alone(score: Score) -> NDArray[np.int64]:
    """Every node's parents by the score of each alone beside the required ones, [d (node), d]."""
    required = score.constraints.required
    alone = [score.extended_local(node, required[:, node][None])[0] for node in range(len(required))]
    return np.argsort(-np.nan_to_num(alone, nan=-np.inf), axis=1, kind="stable")


def scattered_chains(score: Score, num_chains: int, seed: int) -> list[Chain]:
    """Chains at random graphs of about one edge a node, along random orders that knowledge allows."""
    graphs = scattered_graphs(score, num_chains, seed)
    randoms = random_states(seed, num_chains)
    return [Chain(words_of(graph.T), random) for graph, random in zip(graphs, randoms, strict=True)]


def cooled_chains(score: Score, pools: Pools, tables: LocalTables, num_chains: int, seed: int) -> list[Chain]:
    """The best of several times as many scattered starts, each cooled down to the posterior."""
    chains = scattered_chains(score, _STARTS_PER_CHAIN * num_chains, seed)
    reached = _settled(chains, pools, tables)
    best = np.sort(np.argsort(-reached, kind="stable")[:num_chains])
    return [chains[number] for number in best]


def settled_scores(
    score: Score, pools: Pools, tables: LocalTables, num_starts: int, seed: int
) -> NDArray[np.float64]:
    """Mean log scores to which so many scattered starts cool down, [num_starts]."""
    return _settled(scattered_chains(score, num_starts, seed), pools, tables)


def _settled(chains: list[Chain], pools: Pools, tables: LocalTables) -> NDArray[np.float64]:
    """Cool the chains down, in place; their mean log scores from then on."""
    reached = np.zeros(len(chains))

    def settle(number: int) -> None:
        cool(chains[number], pools, tables, _COOLING)
        work = make_workspace(pools)
        reached[number] = np.mean([sweep(chains[number], pools, tables, work) for _ in range(_WEIGHED)])

    map_threads(settle, range(len(chains)))
    return reached


def cool(chain: Chain, pools: Pools, tables: LocalTables, num_sweeps: int) -> None:
    """Move a chain from the hottest temperature to its own, in place."""
    work = make_workspace(pools)
    for beta in np.geomspace(_HOTTEST, 1.0, num_sweeps):
        sweep(chain, pools, tables, work, beta=float(beta))
