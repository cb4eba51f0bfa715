"""Where chains move more often: at edges of which they are in doubt.

Most edges of a sparse graph are certain, or nearly, and moves at them are lost. So what the chains have seen
on their way weighs the pairs of nodes. The weights are fixed before the chains count and are the same in both
directions, so that the moves leave the posterior as it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.mcmc.unrestricted.xoshiro import integer, uniform

_NEIGHBOURS = 8  # of each node, at most
_LEAST_PAIR = 0.05  # weight of an edge that nobody doubts, beside a doubt of a quarter at most
_LEAST_TIE = 0.01


class Focus(NamedTuple):
    """Weights of pairs of nodes."""

    pairs: NDArray[np.float64]  # [d, d], symmetric, by which an edge is drawn to be reversed
    neighbours: NDArray[np.int32]  # [d, m], those that may be drawn together with a node; or −1
    ties: NDArray[np.float64]  # [d, m], how often, cumulative
    starts: NDArray[np.float64]  # [d], cumulative


def make_focus(interest: NDArray[np.float64], doubt: NDArray[np.float64]) -> Focus:
    """Weights from the interest in edges and the doubt of them, both [d, d]."""
    d = len(interest)
    doubts = doubt + doubt.T
    ties = doubts + _LEAST_TIE * np.minimum(interest + interest.T, 1)
    np.fill_diagonal(ties, 0.0)
    m = min(_NEIGHBOURS, d - 1)
    neighbours = np.argsort(-ties, axis=1, kind="stable")[:, :m].astype(np.int32)
    near = np.take_along_axis(ties, neighbours, axis=1) + _LEAST_TIE / d
    return Focus(doubts + _LEAST_PAIR, neighbours, near.cumsum(axis=1), near.sum(axis=1).cumsum())


@njit(cache=True, nogil=True)
def choose_together(nodes, focus, random):
    """A node, and again and again a neighbour of one that was chosen, whatever the graph."""
    d = len(focus.starts)
    nodes[0] = _drawn(focus.starts, random)
    number = 1
    tries = 0
    while number < len(nodes):
        tries += 1
        if tries > 20 * len(nodes):  # all neighbours are there already
            other = integer(random, d)
        else:
            near = nodes[integer(random, number)]
            other = focus.neighbours[near, _drawn(focus.ties[near], random)]
        is_new = True
        for a in range(number):
            is_new &= nodes[a] != other
        if is_new:
            nodes[number] = other
            number += 1


@njit(cache=True, nogil=True)
def _drawn(cumulative, random):
    last = len(cumulative) - 1
    return min(np.searchsorted(cumulative, uniform(random) * cumulative[last], side="right"), last)
