"""The score of any directed graph inside `jit`; the sum over nodes is defined for cyclic ones too.

A graph score is a named tuple of arrays (it can be stacked and vmapped over data sets) that is called with
graphs, bool [n, d, d], and gives float64 [n]. It is finite everywhere: a method that starts from random
graphs needs to be told that a graph is worse, also where every one of them breaks a rule.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gflowdag.score import Score
from gflowdag.score.normal_wishart import NormalWishart
from gflowdag.score.on_demand import OnDemandGraphScore

# What one parent costs in a set that is forbidden: more than any sensible difference of scores.
FORBIDDEN_PARENT = 1e4


class GraphScore(Protocol):
    """A callable pytree: bool [n, d, d] to float64 [n]."""

    def __call__(self, graphs: Array, /) -> Array: ...


class TableScore(NamedTuple):
    """Look-ups in a dense table of local scores: one gather per node, for any score with d ≤ 20 or so."""

    table: Array | np.ndarray  # float64 [d, 2^(d−1)], compressed index

    def __call__(self, graphs: Array, /) -> Array:
        d = graphs.shape[-1]
        source, node = np.arange(d)[:, None], np.arange(d)
        bit = np.where(source == node, 0, 1 << (source - (source > node)))  # bit `node` is squeezed out
        index = jnp.sum(jnp.where(graphs, bit.astype(np.int32), 0), axis=-2, dtype=jnp.int32)
        return self.table[node, index].sum(axis=-1)


class NormalWishartScore(NamedTuple):
    """One factorisation per node and graph: for BGe where a dense table does not fit, O(d^4) for a graph."""

    scatter: Array | np.ndarray  # float64 [d, d, d], scale matrix of each node's rows, the node moved last
    degrees: Array | np.ndarray  # float64 [d], ν' of each node
    constants: Array | np.ndarray  # float64 [d, d], what depends on node and number of parents alone

    def __call__(self, graphs: Array, /) -> Array:
        # One graph at a time: under `vmap` over particles the matrices of all of them would fill the memory.
        return jax.lax.map(self._of_one, graphs)

    def _of_one(self, graph: Array) -> Array:
        d = len(graph)
        node = np.arange(d)
        parents = graph[_others(d), node[:, None]]
        family = jnp.concatenate([parents, jnp.ones((d, 1), bool)], axis=1)
        minor = jnp.where(family[:, :, None] & family[:, None, :], self.scatter, jnp.eye(d))
        pivots = 2 * jnp.log(jnp.diagonal(jnp.linalg.cholesky(minor), axis1=1, axis2=2))
        count = parents.sum(axis=1)
        # ½(ν'+l) log|R_P| − ½(ν'+l+1) log|R_{P∪j}|, where the node's own pivot is the ratio of the two.
        determinants = -0.5 * pivots.sum(axis=1) - 0.5 * (self.degrees + count) * pivots[:, -1]
        return jnp.sum(self.constants[node, count] + determinants)


def graph_score(score: Score) -> GraphScore:
    """The fastest graph score: a table up to 20 variables; beyond, factorisations for BGe, else on demand.

    Leaves are NumPy arrays, to be stacked over data sets; a score on demand has none.
    """
    if score.has_small_table:
        return table_score(score.dense_table())
    if (posterior := score.likelihood.normal_wishart) is not None:
        return normal_wishart_score(score, posterior)
    return OnDemandGraphScore(score, FORBIDDEN_PARENT)


def table_score(table: np.ndarray) -> TableScore:
    """A finite `TableScore` from a dense table with −inf at forbidden sets, float64 [d, 2^(d−1)]."""
    parents = np.bitwise_count(np.arange(table.shape[1], dtype=np.uint64)).astype(np.float64)
    allowed = np.isfinite(table)
    lowest = table.min(axis=1, keepdims=True, where=allowed, initial=np.inf)
    return TableScore(np.where(allowed, table, lowest - FORBIDDEN_PARENT * parents))


def normal_wishart_score(score: Score, posterior: NormalWishart) -> NormalWishartScore:
    """Required and forbidden edges are left to the method; too many parents are penalised."""
    d = score.num_variables
    group = posterior.group_of_node
    order = np.concatenate([_others(d), np.arange(d)[:, None]], axis=1)
    scatter = posterior.scatter[group[:, None, None], order[:, :, None], order[:, None, :]]
    constants = posterior.constants[group] + score.prior_log_weights
    if score.constraints.max_parents is not None:
        count = np.arange(d)
        constants = constants - np.where(count > score.constraints.max_parents, FORBIDDEN_PARENT * count, 0)
    return NormalWishartScore(scatter, posterior.degrees[group], constants)


def _others(d: int) -> np.ndarray:
    """All nodes but `j` in row `j`, int [d, d − 1]."""
    index = np.arange(d - 1)
    return index + (index >= np.arange(d)[:, None])
