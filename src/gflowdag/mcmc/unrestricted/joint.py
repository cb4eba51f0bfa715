"""The parent sets of a few nodes drawn together, exactly, given those of all others.

Take the parents from the nodes `B`. A parent `p` of `j` leads an arc to `j` from each node of `B` that
reaches `p` (from `p` itself where it is in `B`), and the graph has no cycle iff these arcs have none. So the
parent sets of `j` are added up by the set `T` of nodes of `B` that their arcs come from, the sums `f_j(T)`
weigh the DAGs on `B`,

    Σ_{DAGs H on B} Π_j f_j(parents of j in H),

one `H` is drawn, then a parent set of every node among those of its `T`. Neighbours in the graph of likely
edges are drawn together: that graph is fixed, so the choice does not depend on the state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.graph import all_dags
from gflowdag.mcmc.bit_graphs import holds
from gflowdag.mcmc.unrestricted.focus import choose_together
from gflowdag.mcmc.unrestricted.moves import assign, clear, reach
from gflowdag.mcmc.unrestricted.xoshiro import uniform

TOGETHER = 4  # nodes; 543 DAGs
_TINY = 1e-280  # a sum of weights below this has lost digits, and is taken in logarithms
_NEGLIGIBLE = -40.0  # log weight beside the largest, below the rounding of a sum


class JointScratch(NamedTuple):
    """Room for a joint draw of `b` nodes."""

    dags: NDArray[np.uint8]  # [DAGs on b nodes, b], parents as bits
    nodes: NDArray[np.int64]  # [b]
    reached: NDArray[np.uint64]  # [b, W]
    pending: NDArray[np.uint64]  # [W]
    labels: NDArray[np.uint8]  # [b, 2^K], where the arcs of a parent set come from
    log_sums: NDArray[np.float64]  # [b, 2^b], by label
    largest: NDArray[np.float64]  # [b, 2^b]
    log_weights: NDArray[np.float64]  # [DAGs on b nodes]


def make_joint_scratch(d: int, num_subsets: int) -> JointScratch:
    """Room for the joint draws of a chain over `d` nodes."""
    b = min(TOGETHER, d)
    dags = (all_dags(b).astype(np.uint8) << np.arange(b, dtype=np.uint8)[:, None]).sum(axis=1, dtype=np.uint8)
    num_words = (d + 63) // 64
    return JointScratch(
        dags,
        np.zeros(b, np.int64),
        np.zeros((b, num_words), np.uint64),
        np.zeros(num_words, np.uint64),
        np.zeros((b, num_subsets), np.uint8),
        np.zeros((b, 1 << b)),
        np.zeros((b, 1 << b)),
        np.zeros(len(dags)),
    )


@njit(cache=True, nogil=True)
def redraw_together(graph, sets, weights, focus, scratch, joint, random):
    """Draw the parent sets of some nodes that lie together, in place."""
    nodes = joint.nodes
    b = len(nodes)
    choose_together(nodes, focus, random)
    for node in nodes:
        clear(graph, scratch, node)
    for a in range(b):
        reach(graph.children, nodes[a], joint.reached[a], joint.pending)
    for a in range(b):
        _add_up(sets, weights, nodes[a], a, joint)
    chosen = _draw_dag(joint, random)
    for a in range(b):
        index = _draw_set(weights, sets, nodes[a], a, joint.dags[chosen, a], joint, random)
        assign(graph, sets, scratch, nodes[a], index)


@njit(cache=True, nogil=True)
def _add_up(sets, weights, node, place, joint):
    """Labels of all parent sets of a node, and the log-sum of the weights of each label without itself."""
    b = len(joint.nodes)
    labels, log = joint.labels[place], weights.log[node]
    log_sums, largest = joint.log_sums[place], joint.largest[place]
    label = 0
    for a in range(b):
        for w in range(joint.reached.shape[1]):
            if joint.reached[a, w] & sets.base[node, w]:
                label |= 1 << a
    labels[0] = label
    for k in range(sets.sizes[node]):
        label = 0
        for a in range(b):
            label |= int(holds(joint.reached[a], sets.candidates[node, k])) << a
        for subset in range(1 << k):
            labels[(1 << k) | subset] = labels[subset] | label
    linear = weights.linear[node]
    log_sums[:] = 0.0
    largest[:] = 0.0
    lost = 0  # labels with weights too small to be added up as they are
    for subset in range(1 << sets.sizes[node]):
        log_sums[labels[subset]] += linear[subset]
    for label in range(1 << b):
        if label >> place & 1:
            log_sums[label] = -np.inf
        elif log_sums[label] > _TINY:
            log_sums[label] = np.log(log_sums[label])
        else:
            lost |= 1 << label
    if lost == 0:
        return
    for label in range(1 << b):
        if lost >> label & 1:
            largest[label] = -np.inf
    for subset in range(1 << sets.sizes[node]):
        label = labels[subset]
        if lost >> label & 1:
            largest[label] = max(largest[label], log[subset])
    for label in range(1 << b):
        if lost >> label & 1:
            log_sums[label] = 0.0
    for subset in range(1 << sets.sizes[node]):
        label = labels[subset]
        if lost >> label & 1 and log[subset] > -np.inf:
            log_sums[label] += np.exp(log[subset] - largest[label])
    for label in range(1 << b):
        if lost >> label & 1:
            log_sums[label] = largest[label] + np.log(log_sums[label]) if log_sums[label] > 0 else -np.inf


@njit(cache=True, nogil=True)
def _draw_dag(joint, random):
    """The number of a DAG on the chosen nodes, in proportion to its weight."""
    dags, log_weights = joint.dags, joint.log_weights
    largest = -np.inf
    for number in range(len(dags)):
        total = 0.0
        for a in range(dags.shape[1]):
            total += joint.log_sums[a, dags[number, a]]
        log_weights[number] = total
        largest = max(largest, total)
    total = 0.0
    for number in range(len(dags)):
        below = log_weights[number] - largest
        log_weights[number] = np.exp(below) if below > _NEGLIGIBLE else 0.0
        total += log_weights[number]
    left = uniform(random) * total
    chosen = 0
    for number in range(len(dags)):
        if log_weights[number] > 0:
            chosen = number
            left -= log_weights[number]
            if left < 0:
                break
    return chosen


@njit(cache=True, nogil=True)
def _draw_set(weights, sets, node, place, label, joint, random):
    """One of the parent sets of a label, in proportion to its weight."""
    log, labels = weights.log[node], joint.labels[place]
    largest = joint.largest[place, label]  # 0 where the weights were added up as they are
    left = uniform(random) * np.exp(joint.log_sums[place, label] - largest)
    chosen = -1
    for subset in range(1 << sets.sizes[node]):
        below = log[subset] - largest
        if labels[subset] == label and below > -np.inf:
            chosen = subset
            left -= weights.linear[node, subset] if largest == 0.0 else np.exp(below)
            if left < 0:
                break
    return chosen
