"""Directions that a score assumes: what it forces, and what follows from that and not from the data.

A score without a likelihood for `j → i` has `i → j` wherever the two are connected. Such an edge can decide
others: in `arm → height → weight` the first direction, if it is assumed, rules out `weight → height`,
although data alone leave the whole chain open.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gflowdag.graph.equivalence import cpdag
from gflowdag.posterior.posterior import Posterior

_DECIDED = 0.9  # share of the graphs with an edge that have it in one direction


def assumed_directions(posterior: Posterior, forced: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """The edges whose direction is assumed, bool [d, d]; None where nothing is forced.

    Beside those that are `forced`, these are edges in nearly always one direction that could be turned round
    within the Markov equivalence class of most of their graphs.

    Args:
        posterior: what the score led to.
        forced: edges `i → j` whose reverse the score alone rules out, bool [d, d].
    """
    if not forced.any():
        return None
    d = posterior.num_variables
    graphs, which = np.unique(posterior.samples.reshape(-1, d * d), axis=0, return_inverse=True)
    mass = np.bincount(which.reshape(-1), weights=posterior.weights)
    graphs = graphs.reshape(-1, d, d)
    present = np.tensordot(mass, graphs, axes=1)
    reversible = np.tensordot(mass, graphs & cpdag(graphs).transpose(0, 2, 1), axes=1)
    decided = (present > 0) & (present >= _DECIDED * (present + present.T))
    return forced | decided & (reversible > present / 2)
