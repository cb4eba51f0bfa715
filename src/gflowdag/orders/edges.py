"""Exact edge marginals given canonical orders: which parents the DAGs that share an order have.

Node `j` may have the parent sets that are placed before it and reach into its *window* (`order_windows`). Of
these, the ones with parent `i` weigh `A_j(i, U)` where `i` is in the window itself, else
`A_j(i, U) − A_j(i, U outside of the window)`. Where nearly all sets with `i` lie outside, that cancels; there
the allowed sets *without* `i` are summed instead, `d` terms for one edge, which is rarely needed.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.graph.bits import compress
from gflowdag.orders.weights import OrderWeights
from gflowdag.runtime.threads import map_threads

_CHUNK = 128  # orders for one thread at a time
_CANCELS = -1e-6  # log share outside of the window from which on a difference has lost its digits
_compress = njit(cache=True, nogil=True, inline="always")(compress)


def edge_probabilities(weights: OrderWeights, orders: NDArray, labels: NDArray) -> NDArray[np.float64]:
    """Edge marginals over the DAGs whose canonical order each of `orders` is.

    Args:
        weights: of the problem.
        orders: int [n, d], each of positive weight.
        labels: int [d].

    Returns:
        float64 [n, d, d], rows are sources.
    """
    empty, table, singles, position = map(np.asarray, weights)
    orders, labels = np.asarray(orders, np.int32), np.asarray(labels, np.int32)
    found = np.zeros((*orders.shape, orders.shape[1]))

    def fill(start: int) -> None:
        part = slice(start, start + _CHUNK)
        _edge_probabilities(empty, table, singles, position, orders[part], labels, found[part])

    map_threads(fill, range(0, len(orders), _CHUNK))
    return found


@njit(cache=True, nogil=True)
def _edge_probabilities(empty, table, singles, position, orders, labels, found):
    d = orders.shape[1]
    placed = np.empty(d + 1, np.int64)  # local index of the candidates placed before each time
    terms = np.empty(d + 1)
    for n in range(orders.shape[0]):
        order = orders[n]
        for time in range(d):
            node = order[time]
            opening = -1  # time of the last larger label; the window begins with it
            placed[0] = 0
            for t in range(time):
                bit = position[node, order[t]]
                placed[t + 1] = placed[t] | (1 << bit if bit < table.shape[1] else 0)
                if labels[order[t]] > labels[node]:
                    opening = t
            whole = _log_weight(
                empty, table, singles, position, node, order, time, opening, placed, -1, terms
            )
            for t in range(time):
                parent = order[t]
                inside = _containing(table, singles, position, node, parent, placed[time])
                if t >= opening:
                    found[n, parent, node] = math.exp(inside - whole)
                    continue
                if inside == -np.inf or position[node, parent] == table.shape[1]:
                    continue  # an outsider is the only parent, which has to be in the window
                outside = _containing(table, singles, position, node, parent, placed[opening])
                if outside - inside < _CANCELS:
                    found[n, parent, node] = -math.exp(inside - whole) * math.expm1(outside - inside)
                    continue
                without = _log_weight(
                    empty, table, singles, position, node, order, time, opening, placed, parent, terms
                )
                found[n, parent, node] = -math.expm1(min(without - whole, 0.0))


@njit(cache=True, nogil=True)
def _log_weight(empty, table, singles, position, node, order, time, opening, placed, left_out, terms):
    """Log total of the allowed parent sets of `node`, sorted by their latest member, without `left_out`."""
    bit = position[node, left_out] if left_out >= 0 else table.shape[1]
    kept = ~(1 << bit) if bit < table.shape[1] else -1
    count = 0
    if opening < 0:
        terms[0] = empty[node]
        count = 1
    for t in range(max(opening, 0), time):
        if order[t] != left_out:
            terms[count] = _containing(table, singles, position, node, order[t], placed[t] & kept)
            count += 1
    top = -np.inf
    for k in range(count):
        top = max(top, terms[k])
    if top == -np.inf:
        return top
    total = 0.0
    for k in range(count):
        total += math.exp(terms[k] - top)
    return top + math.log(total)


@njit(cache=True, nogil=True, inline="always")
def _containing(table, singles, position, node, parent, placed):
    """Log total of the parent sets of `node` that contain `parent` and else only members of `placed`."""
    bit = position[node, parent]
    if bit == table.shape[1]:
        return singles[node, parent]
    return table[node, bit, _compress(placed, bit)]
