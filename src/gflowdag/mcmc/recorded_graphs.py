"""Many graphs of chains over all DAGs, for a policy over orders to learn from and to be tested on.

First the chains go on until they agree (`unrestricted.run`), then until there are as many graphs as are
wanted, a graph with every sweep. Neighbours in time are alike, which a network that learns from all of them
does not mind.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.graph.bits import bools_of
from gflowdag.mcmc.unrestricted.chains import Chain, make_workspace, sweep
from gflowdag.mcmc.unrestricted.run import FEWEST_SWEEPS, State, Verdict, run
from gflowdag.mcmc.unrestricted.tables import local_tables
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.threads import map_threads
from gflowdag.score import Score

_IN_TURN = 16  # sweeps of one chain before it is the next one's turn
_SHARE_OF_AGREEING = 0.7  # of the time there is, at most; the rest is for recording


class RecordedGraphs(NamedTuple):
    """What the chains left behind."""

    graphs: NDArray[np.bool_]  # [chains, draws, d, d], rows are sources
    verdict: Verdict  # whether the chains agreed
    is_settled: bool  # whether they went on long enough to be judged


def recorded_graphs(
    score: Score,
    *,
    seed: int,
    num_chains: int,
    num_graphs: int,
    max_sweeps: int,
    deadline: Deadline = Deadline(),  # noqa: B008 (immutable)
    progress: Progress = silent,
) -> RecordedGraphs:
    """Graphs of chains from scattered starts, in proportion to a score.

    Args:
        score: any score.
        seed: of the chains.
        num_chains: chains side by side.
        num_graphs: of all chains together, at most; fewer where the time is over.
        max_sweeps: of each chain, until they agree.
        deadline: the end of the time there is.
        progress: told about the time or the sweeps used.
    """
    result = run(
        score,
        seed=seed,
        num_chains=num_chains,
        deadline=deadline.share(_SHARE_OF_AGREEING),
        max_sweeps=max_sweeps,
        progress=progress,
    )
    graphs = result.graphs[:, :: -(-result.graphs.shape[1] * num_chains // num_graphs)]
    further = max(num_graphs // num_chains - graphs.shape[1], 0)
    more = _record(score, result.state, further, deadline)
    d = score.num_variables
    words = bools_of(more, d).swapaxes(-1, -2)
    is_settled = result.state.num_sweeps >= FEWEST_SWEEPS
    return RecordedGraphs(np.concatenate([graphs, words], axis=1), result.verdict, is_settled)


def _record(score: Score, state: State, number: int, deadline: Deadline) -> NDArray[np.uint64]:
    """Parents after each of so many further sweeps of every chain, [chains, ≤ number, d, W]."""
    tables = local_tables(score, state.pools)
    found = np.zeros((len(state.parents), number, *state.parents.shape[1:]), np.uint64)
    moving = [Chain(*each) for each in zip(state.parents.copy(), state.random.copy(), strict=True)]
    works = [make_workspace(state.pools) for _ in moving]
    done = 0
    while done < number and not deadline.has_passed:
        part = range(done, min(done + _IN_TURN, number))

        def advance(chain: int, part: range = part) -> None:
            for place in part:
                sweep(moving[chain], state.pools, tables, works[chain])
                found[chain, place] = moving[chain].parents

        map_threads(advance, range(len(moving)))
        done = part.stop
    return found[:, :done]
