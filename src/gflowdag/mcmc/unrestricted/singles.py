"""One outsider of every node drawn anew, out of all that there are.

The tables hold a few outsiders of each node at a time, so that an unlikely parent waits for its turn, the
longer the more variables there are. Here a random one of the present outsiders leaves every node. What is
left, `B`, is an auxiliary variable: it comes with the same probability from each of the sets `B ∪ {o}`, and
from `B` itself where no outsider is in it. One of these is drawn in proportion to the posterior, node after
node.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gflowdag.mcmc.bit_graphs import add, holds, of_parents, pop, set_parents, size
from gflowdag.mcmc.unrestricted.moves import reach
from gflowdag.mcmc.unrestricted.xoshiro import integer, uniform


@njit(cache=True, nogil=True)
def draw_bases(parents, pools, random, bases):
    """Write the parents of every node without one of its outsiders, [d, W]."""
    for node in range(parents.shape[0]):
        bases[node] = parents[node]
        outside = parents[node] & pools.outsider_words[node]
        number = size(outside)
        if number == 0:
            continue
        for _ in range(integer(random, number)):
            pop(outside)
        leaving = pop(outside)
        bases[node, leaving >> 6] &= ~(np.uint64(1) << np.uint64(leaving & 63))


@njit(cache=True, nogil=True)
def redraw_singles(parents, bases, scores, pools, random, edges):
    """Draw one outsider, or none, for every node, given all others, in place.

    Args:
        parents: [d, W].
        bases: [d, W], what every node keeps.
        scores: [d, d], `[j, o]` with the parent `o` beside the base of `j`, `[j, j]` with none.
        pools: of candidates.
        random: state.
        edges: add the probabilities of edges from outsiders, given all other parents, if there is room.

    Returns:
        The log score of the graph.
    """
    d, num_words = parents.shape
    graph = of_parents(parents)
    reached, pending = np.empty(num_words, np.uint64), np.empty(num_words, np.uint64)
    words, log_score = np.empty(num_words, np.uint64), 0.0
    weights = np.empty(d)
    for node in range(d):
        reach(graph.children, node, reached, pending)
        kept = bases[node] & pools.outsider_words[node]
        none = size(kept) == 0
        largest = scores[node, node] if none else -np.inf
        outside = pools.outsiders[node, : pools.num_outsiders[node]]
        for k in range(len(outside)):
            other = outside[k]
            is_open = not holds(reached, other) and not holds(bases[node], other)
            weights[k] = scores[node, other] if is_open else -np.inf
            largest = max(largest, weights[k])
        alone = np.exp(scores[node, node] - largest) if none else 0.0
        total = alone
        for k in range(len(outside)):
            weights[k] = np.exp(weights[k] - largest)
            total += weights[k]
        chosen, left = node, uniform(random) * total - alone
        if left >= 0 or not none:
            for k in range(len(outside)):
                if weights[k] > 0:
                    chosen = outside[k]
                    left -= weights[k]
                    if left < 0:
                        break
        words[:] = bases[node]
        if chosen != node:
            add(words, chosen)
        set_parents(graph, node, words)
        log_score += scores[node, chosen]
        if edges.size > 0:
            for k in range(len(outside)):
                edges[outside[k], node] += weights[k] / total
            other = pop(kept)
            while other >= 0:
                edges[other, node] += 1.0
                other = pop(kept)
    return log_score
