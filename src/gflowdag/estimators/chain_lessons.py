"""What a policy over orders learns from graphs of chains over all DAGs.

Every graph has one canonical order, so graphs from the posterior are exact examples. They also say which
labels keep orders simple, how likely edges are, and which parent sets of each node have to be summed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.gflownet.spaces.label_orders import LabelOrderSpace, label_order_space
from gflowdag.orders.families import Families, likely_families
from gflowdag.orders.labels import canonical_orders, labels_along, order_along_edges
from gflowdag.score import Score

_HELD_OUT = 4  # one chain in so many


class Lessons(NamedTuple):
    """Canonical orders, in which nodes are numbered by their labels."""

    space: LabelOrderSpace
    nodes: NDArray[np.int32]  # [d], the node of each label
    training: NDArray[np.int32]  # [n, d]
    held_out: NDArray[np.int32]  # [m, d], of other chains
    families: Families  # of parent sets
    outside: NDArray[np.bool_]  # [n + m', d], whose parents in the graphs are not in the family

    @property
    def labels(self) -> NDArray[np.int32]:
        """Of each node, [d]."""
        return labels_along(self.nodes)


def lessons_of(score: Score, graphs: NDArray[np.bool_], *, num_held_out: int, seed: int) -> Lessons:
    """What graphs of several chains teach.

    Args:
        score: of the graphs.
        graphs: bool [chains, draws, d, d].
        num_held_out: orders that are kept back, at most; they are of a quarter of the chains.
        seed: of the search for labels.
    """
    d = score.num_variables
    held_out, training = np.split(graphs, [max(len(graphs) // _HELD_OUT, 1)])
    held_out, training = held_out.reshape(-1, d, d), training.reshape(-1, d, d)
    edges = training.mean(axis=0)
    nodes = order_along_edges(edges, np.random.default_rng(seed))
    labels = labels_along(nodes)
    required, forbidden, _ = score.constraints
    by_label = np.ix_(nodes, nodes)
    families = likely_families(score, training)
    chosen = held_out[:: -(-len(held_out) // num_held_out)]
    return Lessons(
        label_order_space(edges[by_label], required[by_label], forbidden[by_label]),
        nodes,
        labels[canonical_orders(training, labels)],
        labels[canonical_orders(chosen, labels)],
        families,
        families.left_out(graphs.reshape(-1, d, d)),
    )
