"""Balanced draws: each one follows the policy, and together they spread evenly.

Independent trajectories leave to chance what could be shared out: of a hundred that come through one state,
the number that take a certain edge is binomial. Here a batch is sorted by state in every step, and neighbours
get the points of a low-discrepancy sequence as their random numbers (array-RQMC, L'Ecuyer, Lécot and Tuffin
2008). A random shift in every step makes each trajectory by itself one of the policy, whatever the order, so
that averages over a batch are unbiased; they only vary less.

This helps where many trajectories pass through a state. So a pool of several times the wanted number is
drawn and sorted by graph, and only every eighth, say, is kept, from a random start (systematic sampling).
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.gflownet.rollout import Chooser
from gflowdag.gflownet.sampling import Samples, draw_together
from gflowdag.gflownet.spaces import Decision, Policy
from gflowdag.gflownet.spaces.edges import DAGState, EdgeSpace, Observation
from gflowdag.graph.incremental import EdgeState, from_adjacency
from gflowdag.runtime.devices import gathered

_GOLDEN = (math.sqrt(5) - 1) / 2  # its multiples modulo 1 are spread evenly, however many there are
_LARGEST = 1 - 2.0**-40  # random numbers stay below 1 when they are multiplied by a sum near 1


@eqx.filter_jit
def balanced_dags(
    space: EdgeSpace, policy: Policy, key: Array, num_samples: int, *, pool: int = 8
) -> Samples:
    """DAGs each of which follows the policy, and which together match it better than independent draws.

    Args:
        space: the problem.
        policy: what chooses edges.
        key: PRNG key.
        num_samples: graphs to return, in random order.
        pool: trajectories drawn for each of them, all in one batch.
    """
    draw_key, first_key, order_key = jax.random.split(key, 3)
    drawn = gathered(draw_together(space, policy, _sharing_out(draw_key), pool * num_samples))
    order = similar_first(jax.vmap(from_adjacency)(drawn.built))
    kept = order[jax.random.randint(first_key, (), 0, pool, jnp.int32) + pool * jnp.arange(num_samples)]
    kept = jax.random.permutation(order_key, kept)
    return jax.tree.map(lambda leaf: leaf[kept], drawn)


def _sharing_out(key: Array) -> Chooser:
    """Random numbers of their own for every step."""

    def choose(
        t: Array, states: DAGState, observations: Observation, decisions: Decision, done: Array
    ) -> Array:
        del observations
        return balanced(jax.random.fold_in(key, t), decisions.log_forward, states.graph, done)

    return choose


def balanced(key: Array, log_probabilities: Array, graphs: EdgeState, done: Array) -> Array:
    """Actions shared out evenly among similar graphs, int32 [n].

    Args:
        key: PRNG key.
        log_probabilities: of the actions, [n, d² + 1].
        graphs: leaves [n, …].
        done: the trajectories that are over, bool [n].
    """
    order = similar_first(graphs)
    order = order[jnp.argsort(done[order], stable=True)]  # the finished ones need no random numbers
    shift = jax.random.uniform(key, (), jnp.float64)
    points = (shift + _GOLDEN * jnp.arange(len(done), dtype=jnp.float64)) % 1.0
    points = jnp.zeros_like(points).at[order].set(jnp.minimum(points, _LARGEST))
    cumulative = jnp.cumsum(jnp.exp(log_probabilities.astype(jnp.float64)), axis=1)
    return (cumulative <= points[:, None] * cumulative[:, -1:]).sum(axis=1, dtype=jnp.int32)


def similar_first(graphs: EdgeState) -> Array:
    """An order in which equal graphs are neighbours, and those with equal ancestors nearly so, int [n].

    Beyond seven variables others may come between them.
    """
    d = graphs.adjacency.shape[-1]
    bits = jnp.left_shift(1, jnp.arange(d * d, dtype=jnp.int64) % 62).reshape(d, d)
    codes = [jnp.where(matrix, bits, 0).sum(axis=(1, 2)) for matrix in (graphs.adjacency, graphs.ancestors)]
    return jnp.lexsort(codes)
