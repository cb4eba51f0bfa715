"""Steps over graphs by sweeps of chains, for tables with gaps of any size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gflowdag.estimators.augmentation import NUM_CHAINS, Augmentation, Step
from gflowdag.mcmc.unrestricted.walk import start_walkers, walk
from gflowdag.runtime.deadline import Deadline
from gflowdag.score import Score

SWEEPS = 8  # of the graph, between two draws of the missing cells
CORE_SIZE, NUM_OUTSIDERS = 5, 3
_SHARE_OF_START = 0.3  # of a budget


class Sweeps:
    """Some sweeps of a chain a round; `starts` are the completed tables that the chains begin with."""

    def __init__(
        self,
        augmentation: Augmentation,
        seed: int,
        *,
        core_size: int = CORE_SIZE,
        num_outsiders: int = NUM_OUTSIDERS,
        deadline: Deadline,
    ):
        start_seed, chain_seed = (int(x) for x in np.random.SeedSequence(seed).generate_state(2))
        self.starts: list[NDArray[np.float64]] = augmentation.starts(NUM_CHAINS, start_seed)
        scores = [augmentation.score(values) for values in self.starts]
        self._walkers = start_walkers(
            scores,
            core_size=core_size,
            num_outsiders=num_outsiders,
            seed=chain_seed,
            deadline=deadline.share(_SHARE_OF_START),
        )

    def __call__(self, score: Score, number: int, rng: np.random.Generator) -> Step:
        walked = walk(self._walkers, number, score, SWEEPS)
        return Step(walked.graphs, walked.edges, walked.log_score)
