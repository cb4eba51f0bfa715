"""Chains that go on while the score under them changes, as it does where missing cells are drawn in between.

The pools of candidates stay as they were learnt at first: whatever they are, every sweep leaves the posterior
of the present score as it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.graph.bits import bools_of
from gflowdag.mcmc.unrestricted.candidate_sets import Pools
from gflowdag.mcmc.unrestricted.chains import Chain, make_sums, make_workspace, sweep
from gflowdag.mcmc.unrestricted.start import cool, scattered_chains, start
from gflowdag.mcmc.unrestricted.tables import local_tables
from gflowdag.runtime.deadline import Deadline
from gflowdag.score import Score

_COOLING = 60  # sweeps from a scattered start


class Walkers(NamedTuple):
    """Chains with the pools that they share; a chain changes in place."""

    pools: Pools
    chains: list[Chain]


class Walked(NamedTuple):
    """What a chain has seen on its way."""

    graphs: NDArray[np.bool_]  # [k, d, d], after each sweep; rows are sources
    edges: NDArray[np.float64]  # [d, d], edge probabilities given all other parent sets
    log_score: float  # of the last graph


def start_walkers(
    scores: list[Score], *, core_size: int, num_outsiders: int, seed: int, deadline: Deadline
) -> Walkers:
    """Chains from scattered graphs, each cooled to the posterior of its own score, until the deadline."""
    pool_seed, chain_seed = (int(number) for number in np.random.SeedSequence(seed).generate_state(2))
    pools, _ = start(
        scores[0],
        num_chains=len(scores),
        core_size=core_size,
        num_outsiders=num_outsiders,
        seed=pool_seed,
        deadline=deadline,
    )
    chains = scattered_chains(scores[0], len(scores), chain_seed)
    for chain, score in zip(chains, scores, strict=True):
        cool(chain, pools, local_tables(score, pools), _COOLING, deadline=deadline)
    return Walkers(pools, chains)


def walk(walkers: Walkers, number: int, score: Score, num_sweeps: int) -> Walked:
    """Move one chain by so many sweeps under a score."""
    chain, d = walkers.chains[number], score.num_variables
    tables, work, sums = local_tables(score, walkers.pools), make_workspace(walkers.pools), make_sums(d)
    parents, log_score = [], 0.0
    for _ in range(num_sweeps):
        log_score = sweep(chain, walkers.pools, tables, work, sums=sums)
        parents.append(chain.parents.copy())
    return Walked(bools_of(np.array(parents), d).swapaxes(-1, -2), sums.edges / num_sweeps, log_score)
