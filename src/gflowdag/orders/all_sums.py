"""Weights, edges and graphs of finished canonical orders over whole families of parent sets.

A policy or a chain may know only some parent sets of each node; what an order weighs does not have to. For a
finished order the sets of a node's family (`orders.families`) that it leaves to the node are walked one by
one: those of the nodes placed before it with a member in its window (`orders.windows`). All terms are
positive. An order of 50 nodes has two million of them, or more where nodes have many parents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gflowdag.orders.families import Families, family_scores
from gflowdag.orders.lists import ranks
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.progress import Progress, silent
from gflowdag.runtime.threads import map_threads
from gflowdag.score.base import Score

_CHUNK = 16  # orders for one thread at a time
_UNDERFLOW = 1e-250  # a sum below it is taken in a smaller unit
_STEP = 500.0  # nats from one unit to the next


class AllSets(NamedTuple):
    """The scores of the families of all nodes, one node after the other."""

    families: Families
    scores: NDArray[np.float64]  # [n], −inf is not allowed
    weights: NDArray[np.float64]  # [n], their exponentials, the best set of each node at 1
    best: NDArray[np.float64]  # [d], the score of this one
    starts: NDArray[np.int64]  # [d + 1], where each node begins
    binomials: NDArray[np.int64]  # [d, r + 1], see `lists.ranks`
    first: NDArray[np.int64]  # [d, r + 2], likewise, of the sets of each node's others
    place: NDArray[np.int64]  # [d (node), d (parent)], of the core: its bit; of the others: −1 − number


class Weighed(NamedTuple):
    """What orders weigh, and what their graphs have in common."""

    log_weights: NDArray[np.float64]  # [n], log of the summed weight of all graphs with this canonical order
    edges: NDArray[np.float64]  # [n, d, d], probability of each edge given the order, rows are sources
    totals: NDArray[np.float64]  # [n, d], of the weights of each node's sets; 0 where all of them underflow


def score_all_sets(score: Score, families: Families, progress: Progress = silent) -> AllSets:
    """Score all sets of the families."""
    d = score.num_variables
    found = family_scores(score, families, progress)
    starts = np.cumsum([0, *(each.size for each in found)])
    best = np.array([each.max() for each in found])
    scores = np.concatenate([each.reshape(-1) for each in found])
    weights = np.exp(scores - np.repeat(best, np.diff(starts)))
    most = int(families.most_others.max())
    first = np.zeros((d, most + 2), np.int64)
    place = np.zeros((d, d), np.int64)
    for node in range(d):
        size, number = families.core_sizes[node], families.num_others[node]
        own = ranks(int(number), int(families.most_others[node]))[1]
        first[node, : len(own)] = own
        place[node, families.ranked[node, :size]] = np.arange(size)
        place[node, families.ranked[node, size : size + number]] = -1 - np.arange(number)
    binomials, _ = ranks(d, most)
    return AllSets(families, scores, weights, best, starts, binomials, first, place)


def weigh_orders(
    table: AllSets,
    orders: NDArray,
    labels: NDArray,
    progress: Progress = silent,
    *,
    deadline: Deadline = Deadline(),  # noqa: B008 (immutable)
    fewest: int = 0,
) -> Weighed:
    """The weights and the edges of finished orders: of all, or of the first of them until the deadline.

    Args:
        table: of all parent sets.
        orders: int [n, d].
        labels: int [d].
        progress: told about the parts done.
        deadline: when no further part of the orders is begun.
        fewest: orders that are weighed whatever the time.
    """
    n, d = np.shape(orders)
    arrays = np.empty(n), np.zeros((n, d, d)), np.zeros((n, d))
    done = _in_parts(_weigh, table, orders, labels, arrays, progress, deadline, fewest)
    return Weighed(*(array[:done] for array in arrays))


def draw_from_orders(
    table: AllSets,
    orders: NDArray,
    labels: NDArray,
    rng: np.random.Generator,
    totals: NDArray[np.float64] | None = None,
) -> NDArray[np.bool_]:
    """One graph for each order of positive weight, ∝ its score among those with this canonical order.

    Args:
        table: of all parent sets.
        orders: int [n, d].
        labels: int [d].
        rng: source of randomness.
        totals: those of `Weighed` for these orders, which save a walk over their sets.
    """
    n, d = np.shape(orders)
    graphs, uniform = np.zeros((n, d, d), bool), rng.random((n, d))
    known = np.zeros((n, d)) if totals is None else totals
    _in_parts(_draw, table, orders, labels, (known, uniform, graphs), silent, Deadline(), n)
    return graphs


def _in_parts(
    kernel, table: AllSets, orders, labels, arrays, progress: Progress, deadline: Deadline, fewest: int
) -> int:
    """Call a kernel on parts of the orders, and of the arrays that go with them; how many orders it saw."""
    orders, labels = np.asarray(orders, np.int64), np.asarray(labels, np.int64)
    families = table.families
    known = _Known(
        *table[1:], families.core_sizes, families.num_others, families.most_others, families.is_possible()
    )
    starts = range(0, len(orders), _CHUNK)
    is_done = np.zeros(len(starts), bool)

    def run(number: int) -> None:
        if starts[number] >= fewest and deadline.has_passed:
            return  # parts are begun in turn, so that none after this one is
        part = slice(starts[number], starts[number] + _CHUNK)
        kernel(known, orders[part], labels, *(array[part] for array in arrays))
        is_done[number] = True

    map_threads(run, range(len(starts)), progress)
    return len(orders) if is_done.all() else starts[int(np.argmin(is_done))]


class _Known(NamedTuple):
    """What the kernels read."""

    scores: NDArray[np.float64]
    weights: NDArray[np.float64]
    best: NDArray[np.float64]
    starts: NDArray[np.int64]
    binomials: NDArray[np.int64]
    first: NDArray[np.int64]
    place: NDArray[np.int64]
    core_sizes: NDArray[np.int64]
    num_others: NDArray[np.int64]
    most_others: NDArray[np.int64]
    is_possible: NDArray[np.bool_]  # [d (node), d (parent)]


class _Left(NamedTuple):
    """What an order leaves to a node."""

    others: NDArray[np.int64]  # [d], numbers of those placed before it, ascending
    is_window: NDArray[np.bool_]  # [d], which of them are in the window
    parents: NDArray[np.int64]  # [d], the same as nodes
    counts: NDArray[np.int64]  # [4]: how many; core placed; core in the window, as bits; whether free


class _Found(NamedTuple):
    """What a walk adds up, and where it ended."""

    masses: NDArray[np.float64]  # [d], of the sets with each of the others
    by_core: NDArray[np.float64]  # [2^c], of the sets with each subset of the core
    chosen: NDArray[np.int64]  # [r + 1], places in `others`, −1 after the last; then the subset of the core


@njit(cache=True, nogil=True)
def _room(known):
    """Arrays for one thread."""
    d = known.place.shape[0]
    left = _Left(np.empty(d, np.int64), np.empty(d, np.bool_), np.empty(d, np.int64), np.empty(4, np.int64))
    largest = known.core_sizes.max()
    found = _Found(np.empty(d), np.empty(1 << largest), np.empty(known.first.shape[1], np.int64))
    return left, found


@njit(cache=True, nogil=True)
def _weigh(known, orders, labels, log_weights, edges, totals):
    d = orders.shape[1]
    left, found = _room(known)
    for n in range(orders.shape[0]):
        log_weights[n] = 0.0
        for time in range(d):
            node = orders[n, time]
            _look(known, orders[n], time, labels, left)
            _, unit, total = _total(known, node, left, found)
            if total == 0.0:
                log_weights[n] = -np.inf
                break
            log_weights[n] += unit + np.log(total)
            if unit == known.best[node]:
                totals[n, node] = total
            for i in range(left.counts[0]):
                edges[n, left.parents[i], node] = found.masses[i] / total
            for parent in range(d):
                bit = known.place[node, parent]
                if bit >= 0 and known.is_possible[node, parent] and left.counts[1] >> bit & 1:
                    mass = 0.0
                    for subset in range(1 << known.core_sizes[node]):
                        if subset >> bit & 1:
                            mass += found.by_core[subset]
                    edges[n, parent, node] = mass / total


@njit(cache=True, nogil=True)
def _draw(known, orders, labels, totals, uniform, graphs):
    d = orders.shape[1]
    left, found = _room(known)
    for n in range(orders.shape[0]):
        for time in range(d):
            node = orders[n, time]
            _look(known, orders[n], time, labels, left)
            row, total = known.weights[known.starts[node] : known.starts[node + 1]], totals[n, node]
            if total == 0.0:
                row, _, total = _total(known, node, left, found)
            _walk(row, known, node, left, found, uniform[n, time] * total)
            for k in range(found.chosen.size - 1):
                if found.chosen[k] < 0:
                    break
                graphs[n, left.parents[found.chosen[k]], node] = True
            for parent in range(d):
                bit = known.place[node, parent]
                if bit >= 0 and known.is_possible[node, parent] and found.chosen[-1] >> bit & 1:
                    graphs[n, parent, node] = True


@njit(cache=True, nogil=True)
def _total(known, node, left, found):
    """Weights of all sets, the log of the unit that they are in, and their sum; the masses of the parents.

    Where all sets that are left underflow beside the best one, a smaller unit is tried.
    """
    part = slice(known.starts[node], known.starts[node + 1])
    unit, row, scores = known.best[node], known.weights[part], known.scores[part]
    total = _walk(row, known, node, left, found, np.inf)
    while total < _UNDERFLOW:
        lowest, unit = 0.0, unit - _STEP
        row = np.empty(scores.size)
        for n in range(scores.size):
            if scores[n] > -np.inf:
                lowest = min(lowest, scores[n] - unit)
            row[n] = np.exp(min(scores[n] - unit, _STEP))
        total = _walk(row, known, node, left, found, np.inf)
        if lowest == 0.0:
            break  # there is no smaller score: no set is left
    return row, unit, total


@njit(cache=True, nogil=True)
def _walk(weights, known, node, left, found, until):
    """The summed weight of the sets that are left, and in `found` that of the sets with each parent.

    Sets of others are walked depth first, and beside each of them all subsets of the core. `chosen` is the
    one at which the running sum passes `until`.
    """
    count, free = left.counts[0], left.counts[3] == 1
    size, most = known.core_sizes[node], known.most_others[node]
    masses, chosen = found.masses, found.chosen
    masses[:count] = 0.0
    found.by_core[: 1 << size] = 0.0
    chosen[:] = -1
    reached = _beside(weights, 0, left, free, found.by_core, 0.0, until, chosen)
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
        here = rank[level] + known.binomials[left.others[i], level + 1]
        fits = inside[level] or left.is_window[i]
        before_it = reached
        start = (known.first[node, level + 1] + here) << size
        reached = _beside(weights, start, left, fits, found.by_core, reached, until, chosen)
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


@njit(cache=True, nogil=True, inline="always")
def _beside(weights, start, left, fits, by_core, reached, until, chosen):
    """The running sum after all subsets of the core beside one set of others, which begin at `start`."""
    placed, window = left.counts[1], left.counts[2]
    if not fits and window == 0:
        return reached
    subset = placed
    while True:
        if fits or subset & window:
            weight = weights[start + subset]
            by_core[subset] += weight
            reached += weight
            if reached > until:
                chosen[-1] = subset
                return reached
        if subset == 0:
            return reached
        subset = (subset - 1) & placed


@njit(cache=True, nogil=True)
def _look(known, order, time, labels, left):
    """What was placed before a node, and which of it is in the node's window."""
    node, opening = order[time], -1
    for t in range(time):
        if labels[order[t]] > labels[node]:
            opening = t
    count, placed, window = 0, 0, 0
    for t in range(time):
        parent = order[t]
        if not known.is_possible[node, parent]:
            continue
        place, inside = known.place[node, parent], t >= opening
        if place >= 0:
            placed |= 1 << place
            window |= inside << place
            continue
        number, i = -1 - place, count
        while i > 0 and left.others[i - 1] > number:
            left.others[i], left.is_window[i] = left.others[i - 1], left.is_window[i - 1]
            left.parents[i] = left.parents[i - 1]
            i -= 1
        left.others[i], left.is_window[i], left.parents[i] = number, inside, parent
        count += 1
    left.counts[0], left.counts[1], left.counts[2], left.counts[3] = count, placed, window, opening < 0
