"""How many objects of another sampler lie beyond all that a sampler has seen in its own draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BEYOND = 1.0  # nats above the policy's largest weight from which on a graph counts as unseen
TOLERATED_UNSEEN = 0.05  # share; with a Pareto k of 0.7 a few per cent lie beyond 10,000 samples


def unseen_share(own: NDArray[np.float64], held_out: NDArray[np.float64]) -> float:
    """Share of held-out graphs that the policy draws far more rarely than anything in its own samples.

    Args:
        own: log importance weights of the policy's samples, [n].
        held_out: those of held-out graphs, [m].
    """
    return float((held_out > own.max() + _BEYOND).mean())
