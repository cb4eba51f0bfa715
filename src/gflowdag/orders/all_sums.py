"""Weights, edges and graphs of finished canonical orders over *all* parent sets up to a number of parents.

A policy or a chain may know only some parent sets of each node; what an order weighs does not have to. For a
finished order the sets that it leaves to a node are walked one by one: those of the nodes placed before it
with a member in its window (`orders.windows`). All terms are positive. An order of 50 nodes with at most 4
parents has two million of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.orders.lists import MOST_SETS, all_sets, local_of_sets, most_parents, ranks
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.threads import map_threads
from gflowdag.score.base import Score

_CHUNK = 16  # orders for one thread at a time
_SLOW_SHARE = 10  # of the sets, where a local score is no matter of a few determinants
_UNDERFLOW = 1e-250  # a sum below it is taken in a smaller unit
_STEP = 500.0  # nats from one unit to the next


class AllSets(NamedTuple):
    """The scores of all parent sets of every node up to a number of parents."""

    scores: NDArray[np.float64]  # [d, n], in the places of `all_sets(d − 1, m)`; −inf is not allowed
    weights: NDArray[np.float64]  # [d, n], their exponentials, the best set of each node at 1
    max_parents: int  # m


class Weighed(NamedTuple):
    """What orders weigh, and what their graphs have in common."""

    log_weights: NDArray[np.float64]  # [n], log of the summed weight of all graphs with this canonical order
    edges: NDArray[np.float64]  # [n, d, d], probability of each edge given the order, rows are sources


def score_all_sets(score: Score, progress: Progress = silent, *, max_parents: int | None = None) -> AllSets:
    """Score all parent sets up to the limit of the knowledge, or as many parents as are quickly scored."""
    d = score.num_variables
    limit = score.constraints.max_parents
    if max_parents is None:
        is_fast = score.likelihood.normal_wishart is not None
        max_parents = most_parents(d) if is_fast else most_parents(d, MOST_SETS // _SLOW_SHARE)
    largest = min(max_parents, d - 1 if limit is None else limit)
    sets = all_sets(d - 1, largest)
    scores = np.empty((d, len(sets)))

    def fill(node: int) -> None:
        scores[node] = local_of_sets(score, node, np.delete(np.arange(d), node), sets)

    map_threads(fill, range(d), progress)
    return AllSets(scores, np.exp(scores - scores.max(axis=1, keepdims=True)), largest)


def weigh_orders(table: AllSets, orders: NDArray, labels: NDArray, progress: Progress = silent) -> Weighed:
    """The weights and the edges of finished orders.

    Args:
        table: of all parent sets.
        orders: int [n, d].
        labels: int [d].
        progress: told about the parts done.
    """
    n, d = np.shape(orders)
    log_weights, edges = np.empty(n), np.zeros((n, d, d))
    _in_parts(_weigh, table, orders, labels, (log_weights, edges), progress)
    return Weighed(log_weights, edges)


def draw_from_orders(
    table: AllSets, orders: NDArray, labels: NDArray, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """One graph for each order of positive weight, ∝ its score among those with this canonical order."""
    n, d = np.shape(orders)
    graphs, uniform = np.zeros((n, d, d), bool), rng.random((n, d))
    _in_parts(_draw, table, orders, labels, (uniform, graphs), silent)
    return graphs


def _in_parts(kernel, table: AllSets, orders, labels, arrays, progress: Progress) -> None:
    """Call a kernel on parts of the orders, and of the arrays that go with them."""
    orders, labels = np.asarray(orders, np.int64), np.asarray(labels, np.int64)
    binomials, first = ranks(orders.shape[1] - 1, table.max_parents)
    best = table.scores.max(axis=1)

    def run(number: int) -> None:
        part = slice(number * _CHUNK, (number + 1) * _CHUNK)
        given = orders[part], labels, *(array[part] for array in arrays)
        kernel(table.scores, table.weights, best, binomials, first, *given)

    map_threads(run, range(-(-len(orders) // _CHUNK)), progress)


@njit(cache=True, nogil=True)
def _weigh(scores, weights, best, binomials, first, orders, labels, log_weights, edges):
    d = orders.shape[1]
    before, is_window = np.empty(d, np.int64), np.empty(d, np.bool_)
    masses, chosen = np.empty(d), np.empty(first.size, np.int64)
    for n in range(orders.shape[0]):
        log_weights[n] = 0.0
        for time in range(d):
            node = orders[n, time]
            free = _placed_before(orders[n], time, labels, before, is_window)
            given = binomials, first, before, is_window, time, free, masses
            _, unit, total = _total(scores[node], weights[node], best[node], given, chosen)
            if total == 0.0:
                log_weights[n] = -np.inf
                break
            log_weights[n] += unit + np.log(total)
            for i in range(time):
                edges[n, before[i] + (before[i] >= node), node] = masses[i] / total


@njit(cache=True, nogil=True)
def _draw(scores, weights, best, binomials, first, orders, labels, uniform, graphs):
    d = orders.shape[1]
    before, is_window = np.empty(d, np.int64), np.empty(d, np.bool_)
    masses, chosen = np.empty(d), np.empty(first.size, np.int64)
    for n in range(orders.shape[0]):
        for time in range(d):
            node = orders[n, time]
            free = _placed_before(orders[n], time, labels, before, is_window)
            given = binomials, first, before, is_window, time, free, masses
            row, _, total = _total(scores[node], weights[node], best[node], given, chosen)
            _walk(row, *given, uniform[n, time] * total, chosen)
            for place in chosen:
                if place >= 0:
                    parent = before[place]
                    graphs[n, parent + (parent >= node), node] = True


@njit(cache=True, nogil=True)
def _total(scores, weights, best, given, chosen):
    """Weights of all sets, the log of the unit that they are in, and their sum; the masses of the parents.

    Where all sets that are left underflow beside the best one, a smaller unit is tried.
    """
    binomials, first, before, is_window, count, free, masses = given
    total = _walk(weights, binomials, first, before, is_window, count, free, masses, np.inf, chosen)
    unit, row = best, weights
    while total < _UNDERFLOW:
        lowest, unit = 0.0, unit - _STEP
        row = np.empty(scores.size)
        for n in range(scores.size):
            if scores[n] > -np.inf:
                lowest = min(lowest, scores[n] - unit)
            row[n] = np.exp(min(scores[n] - unit, _STEP))
        total = _walk(row, binomials, first, before, is_window, count, free, masses, np.inf, chosen)
        if lowest == 0.0:
            break  # there is no smaller score: no set is left
    return row, unit, total


@njit(cache=True, nogil=True)
def _walk(weights, binomials, first, before, is_window, count, free, masses, until, chosen):
    """The summed weight of the sets that are left, and in `masses` that of the sets with each parent.

    Sets are walked depth first, and `chosen` is the one at which the running sum passes `until`, with −1
    after its end.

    Args:
        weights: of all sets, [n].
        binomials: see `ranks`.
        first: see `ranks`.
        before: the parents to choose from, ascending, [count].
        is_window: which of them are in the window; a set needs one of these, if not `free`.
        count: their number.
        free: whether every set is left, the empty one included.
        masses: float64 [count], filled.
        until: where to end.
        chosen: int64 [m], filled with places in `before`.
    """
    most = first.size - 2
    masses[:count] = 0.0
    chosen[:] = -1
    reached = weights[0] if free else 0.0
    if reached > until or most == 0:
        return reached
    following, place = np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int64)
    inside, rank = np.zeros(most + 1, np.bool_), np.zeros(most + 1, np.int64)
    began = np.zeros(most + 1)
    inside[0], level = free, 0
    while level >= 0:
        i = following[level]
        if i == count:
            level -= 1
            if level >= 0:
                masses[place[level]] += reached - began[level]
            continue
        following[level] = i + 1
        here = rank[level] + binomials[before[i], level + 1]
        fits = inside[level] or is_window[i]
        before_it = reached
        if fits:
            reached += weights[first[level + 1] + here]
            if reached > until:
                for k in range(level):
                    chosen[k] = place[k]
                chosen[level] = i
                return reached
        if level + 1 < most:
            place[level], began[level] = i, before_it
            level += 1
            following[level], rank[level], inside[level] = i + 1, here, fits
        else:
            masses[i] += reached - before_it
    return reached


@njit(cache=True, nogil=True)
def _placed_before(order, time, labels, before, is_window):
    """The nodes placed before, ascending as the node's possible parents, and which of them are in its window.

    Returns whether there is no condition: no larger label was placed before.
    """
    node, opening = order[time], -1
    for t in range(time):
        if labels[order[t]] > labels[node]:
            opening = t
    for t in range(time):
        own, inside = order[t] - (order[t] > node), t >= opening
        i = t
        while i > 0 and before[i - 1] > own:
            before[i], is_window[i] = before[i - 1], is_window[i - 1]
            i -= 1
        before[i], is_window[i] = own, inside
    return opening < 0
