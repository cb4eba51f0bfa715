"""The distribution of an edge-wise policy over all DAGs (d ≤ 5), by dynamic programming, not from samples."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from gflowdag.gflownet import NEVER, EdgeSpace, Policy

_BATCH = 2048


def policy_distribution(space: EdgeSpace, policy: Policy, graphs: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Probability with which the policy ends in each graph.

    Args:
        space: the problem.
        policy: what chooses edges.
        graphs: all DAGs on d nodes, bool [n, d, d] (`graph.enumeration.all_dags`).

    Returns:
        float64 [n]; sums to 1 up to the rounding of the policy's float32.
    """
    n, d = len(graphs), space.num_variables
    log_stop, log_edges = _decisions(space, policy, graphs)
    codes = graphs.reshape(n, -1) @ (1 << np.arange(d * d, dtype=np.int64))
    order = np.argsort(codes)
    num_edges = graphs.sum(axis=(1, 2))

    reached = np.zeros(n)
    reached[(graphs == np.asarray(space.required)).all(axis=(1, 2))] = 1.0
    for size in range(num_edges.max()):
        rows = np.flatnonzero((num_edges == size) & (reached > 0))
        for edge in range(d * d):
            parents = rows[log_edges[rows, edge] > NEVER / 2]
            children = order[np.searchsorted(codes, codes[parents] | (1 << edge), sorter=order)]
            np.add.at(reached, children, reached[parents] * np.exp(log_edges[parents, edge]))
    return reached * np.exp(log_stop)


def _decisions(space: EdgeSpace, policy: Policy, graphs: NDArray[np.bool_]) -> tuple[NDArray, NDArray]:
    """Log probabilities of stopping, [n], and of each edge, [n, d²], in every graph."""

    @eqx.filter_jit
    def decide(space: EdgeSpace, policy: Policy, batch):
        def one(adjacency):
            log_forward = policy(space.observe(space.state_of(adjacency))).log_forward
            return log_forward[-1], log_forward[:-1]

        return jax.vmap(one)(batch)

    padded = np.concatenate([graphs, np.zeros((-len(graphs) % _BATCH, *graphs.shape[1:]), bool)])
    parts = [decide(space, policy, jnp.asarray(part)) for part in np.split(padded, len(padded) // _BATCH)]
    log_stop = np.concatenate([np.asarray(part[0], np.float64) for part in parts])[: len(graphs)]
    log_edges = np.concatenate([np.asarray(part[1], np.float64) for part in parts])[: len(graphs)]
    return log_stop, log_edges
