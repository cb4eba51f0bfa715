"""Order MCMC on canonical orders: Friedman & Koller's chain without its bias.

The state is an order, its weight the total score of the DAGs whose *canonical* order it is. Each DAG has one,
so none is counted once for each of its linear extensions. A step relocates a block of consecutive nodes to a
place drawn from the exact conditional over many places (one node: an insertion or an adjacent swap), then
proposes to swap two nodes anywhere. Parent sets are summed out in the weights and drawn exactly afterwards.
All chains step together.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from gflowdag.orders.weights import OrderWeights
from gflowdag.orders.windows import node_log_weights

MAX_BLOCK = 4  # nodes that move together at most
MAX_PLACES = 16  # places that a block chooses from


class ChainState(NamedTuple):
    """Where a chain is."""

    order: Array  # int32 [d]
    log_weight: Array  # float64 []


class StepInfo(NamedTuple):
    """What one step did."""

    relocated: Array  # bool [], the block left its place
    swapped: Array  # bool [], the swap was accepted


def init(weights: OrderWeights, labels: Array, order: Array) -> ChainState:
    """A chain that starts at `order`, int [d]."""
    return ChainState(order, log_weight(weights, labels, order))


def log_weight(weights: OrderWeights, labels: Array, order: Array) -> Array:
    """Log total score of the DAGs whose canonical order is `order`, float64 []."""
    return node_log_weights(weights, order, labels).sum()


def relocate(key: Array, state: ChainState, weights: OrderWeights, labels: Array) -> tuple[ChainState, Array]:
    """Move a random block to a place drawn from its conditional; also says whether it left its place.

    The places are every `stride`-th one, the present one among them at a random rank. The same choice of
    stride and block finds the same places from each of them, so that drawing by weight leaves the posterior
    as it is.
    """
    length_key, start_key, stride_key, rank_key, place_key = jax.random.split(key, 5)
    d = state.order.shape[0]
    num_places = min(d, MAX_PLACES)
    length = jax.random.randint(length_key, (), 1, min(MAX_BLOCK, max(d - 1, 1)) + 1, jnp.int32)
    start = jax.random.randint(start_key, (), 0, d - length + 1, jnp.int32)
    stride = jax.random.randint(stride_key, (), 1, max(d // num_places, 1) + 1, jnp.int32)
    rank = jax.random.randint(rank_key, (), 0, num_places, jnp.int32)
    places = (start + stride * (jnp.arange(num_places, dtype=jnp.int32) - rank)) % (d - length + 1)
    orders = jax.vmap(lambda place: move_block(state.order, start, length, place))(places)
    log_weights = jax.vmap(partial(log_weight, weights, labels))(orders)
    noise = jax.random.gumbel(place_key, (num_places,), jnp.float32)
    chosen = jnp.argmax(log_weights - state.log_weight + noise)
    return ChainState(orders[chosen], log_weights[chosen]), places[chosen] != start


def move_block(order: Array, start: Array, length: Array, place: Array) -> Array:
    """The order with `length` nodes from `start` on put back before the `place`-th of the others."""
    index = jnp.arange(order.shape[0], dtype=jnp.int32)
    in_block = (index >= place) & (index < place + length)
    rank = jnp.where(index < place, index, index - length)  # among the nodes that stay
    source = jnp.where(in_block, start + index - place, jnp.where(rank < start, rank, rank + length))
    return order[jnp.clip(source, 0, order.shape[0] - 1)]


def swap(key: Array, state: ChainState, weights: OrderWeights, labels: Array) -> tuple[ChainState, Array]:
    """Metropolis step that exchanges two random nodes; also says whether it was accepted."""
    pair_key, coin_key = jax.random.split(key)
    d = state.order.shape[0]
    i = jax.random.randint(pair_key, (2,), 0, jnp.array([d, max(d - 1, 1)]), jnp.int32)
    first, second = i[0], (i[0] + 1 + i[1]) % d
    order = state.order.at[first].set(state.order[second]).at[second].set(state.order[first])
    proposal = init(weights, labels, order)
    coin = jnp.log(jax.random.uniform(coin_key, (), jnp.float64))
    accepted = coin < proposal.log_weight - state.log_weight
    return jax.tree.map(lambda new, old: jnp.where(accepted, new, old), proposal, state), accepted


def step(key: Array, state: ChainState, weights: OrderWeights, labels: Array) -> tuple[ChainState, StepInfo]:
    """One relocation and one swap."""
    relocate_key, swap_key = jax.random.split(key)
    state, relocated = relocate(relocate_key, state, weights, labels)
    state, swapped = swap(swap_key, state, weights, labels)
    return state, StepInfo(relocated, swapped)


@partial(jax.jit, static_argnames="num_chains")
def start(key: Array, weights: OrderWeights, labels: Array, num_chains: int) -> ChainState:
    """Chains at random orders, at the ascending one where a random one is impossible; leaves [C, ...]."""
    ascending = jnp.argsort(labels).astype(jnp.int32)

    def one(key: Array) -> ChainState:
        random = init(weights, labels, jax.random.permutation(key, ascending))
        possible = jnp.isfinite(random.log_weight)
        return jax.tree.map(
            lambda new, old: jnp.where(possible, new, old), random, init(weights, labels, ascending)
        )

    return jax.vmap(one)(jax.random.split(key, num_chains))
