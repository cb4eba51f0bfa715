"""Orders that a policy drew, with their weights: over the parent sets that it knows, or over all.

Beyond a dense table a policy learns from graphs of chains. What it draws are canonical orders, and these can
be weighed over whole families of parent sets (`orders.all_sums`). The policy is then a proposal, and what it
does not know shows in the weights.

These sums take milliseconds for each order. They are therefore timed before training, on orders that have to
be weighed anyway, and what they will take is kept free of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.estimators.chain_lessons import Lessons
from gflowdag.gflownet.sampling import Samples
from gflowdag.orders.all_sums import AllSets, Weighed, draw_from_orders, score_all_sets, weigh_orders
from gflowdag.orders.draws import draw_graphs
from gflowdag.orders.families import Families
from gflowdag.orders.problem import OrderProblem, edge_probabilities_of_orders
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.runtime.deadline import Deadline
from gflowdag.runtime.progress import Progress, begin_phase, silent
from gflowdag.score import Score

_MOST_WEIGHED = 4096  # orders that are weighed over all parent sets: some milliseconds each
_FEWEST_WEIGHED = 256  # with fewer the weights say little of themselves
_SHARE_OF_KNOWN = 0.1  # of the time that is left, for those that the policy did not draw
_FEWEST_KNOWN = 64
_MOST_EDGES = 1 << 25  # probabilities of edges given these orders that are kept
_SHARE_OF_SUMS = 0.3  # of the time that is left before training, at most, for the sums and the graphs
_DRAWING = 0.6  # of the time that weighing an order takes, for drawing a graph from it
_TOLERATED_OUTSIDE = 0.05  # share of the posterior that may be left out without lowering the verdict


class WeighedOrders(NamedTuple):
    """Importance-weighted orders, and where their edges and graphs come from."""

    log_ratio: NDArray[np.float64]  # [n], log-weight of each order over its probability; −inf in dead ends
    held_out: NDArray[np.float64]  # [m], of orders that the policy did not draw; may be empty
    edges_of: Callable[[NDArray[np.int64]], NDArray[np.float64]]  # of the orders at some places
    graphs_of: Callable[[NDArray[np.int64], np.random.Generator], NDArray[np.bool_]]  # likewise
    judge: Callable[[Diagnostics], Diagnostics]  # with what was left out


class AllSums(NamedTuple):
    """All parent sets, the weights of some orders over them, and what weighing one more will take."""

    table: AllSets
    labels: NDArray[np.int32]  # [d]
    known: Weighed  # orders that the policy does not draw
    share_outside: float  # of the graphs of chains that these sets leave out
    seconds_per_order: float

    def num_affordable(self, num_graphs: int, deadline: Deadline, d: int) -> int:
        """How many orders there is time for, beside drawing so many graphs."""
        most = min(_MOST_WEIGHED, max(_MOST_EDGES // d**2, 1))
        if not deadline.is_set:
            return most
        seconds = _SHARE_OF_SUMS * deadline.seconds_left
        number = seconds / self.seconds_per_order - _DRAWING * num_graphs
        return int(np.clip(number, min(_FEWEST_WEIGHED, most), most))

    def seconds(self, num_orders: int, num_graphs: int) -> float:
        """What weighing so many orders and drawing so many graphs will take."""
        return self.seconds_per_order * (num_orders + _DRAWING * num_graphs)


def timed_sums(
    score: Score,
    lessons: Lessons,
    deadline: Deadline = Deadline(),  # noqa: B008 (immutable)
    progress: Progress = silent,
) -> AllSums:
    """Score whole families of parent sets, and weigh the orders held out, to see how long that takes.

    Some of these alone, where the deadline is near.
    """
    begin_phase(progress, "all parent sets")
    table = score_all_sets(score, lessons.families, progress)
    orders, labels = lessons.nodes[lessons.held_out], lessons.labels
    weigh_orders(table, orders[:1], labels)  # what has to be compiled is compiled here
    started = time.monotonic()
    ends = deadline.share(_SHARE_OF_KNOWN)
    known = weigh_orders(table, orders, labels, deadline=ends, fewest=_FEWEST_KNOWN)
    seconds = (time.monotonic() - started) / len(known.log_weights)
    return AllSums(table, labels, known, float(lessons.outside.any(axis=1).mean()), seconds)


def weighed_by_policy(problem: OrderProblem, drawn: Samples) -> WeighedOrders:
    """Orders over a dense table: the policy that drew them has weighed them too."""
    orders = np.asarray(drawn.built)
    return WeighedOrders(
        np.asarray(drawn.log_weights),
        np.zeros(0),
        lambda places: edge_probabilities_of_orders(problem, orders[places]),
        lambda places, rng: draw_graphs(problem.weights, problem.table, orders[places], problem.labels, rng),
        lambda diagnostics: diagnostics,
    )


def weighed_by_sums(
    score: Score,
    sums: AllSums,
    drawn: Samples,
    held_out: Samples,
    deadline: Deadline,
    progress: Progress,
) -> WeighedOrders:
    """The weights over all parent sets of the orders that a policy drew, or of the first until the deadline.

    Args:
        score: of the graphs.
        sums: over all parent sets.
        drawn: by the policy.
        held_out: orders, those that `sums` knows first, with the probabilities that the policy gives them.
        deadline: by when no more orders are weighed, if there are enough to say anything.
        progress: told how far it is.
    """
    begin_phase(progress, "weights")
    table, labels, orders = sums.table, sums.labels, np.asarray(drawn.built)
    weighed = weigh_orders(table, orders, labels, progress, deadline=deadline, fewest=_FEWEST_WEIGHED)
    return WeighedOrders(
        weighed.log_weights + np.asarray(drawn.log_ratio)[: len(weighed.log_weights)],
        sums.known.log_weights + np.asarray(held_out.log_ratio)[: len(sums.known.log_weights)],
        lambda places: weighed.edges[places],
        lambda places, rng: draw_from_orders(table, orders[places], labels, rng, weighed.totals[places]),
        lambda diagnostics: within_families(diagnostics, table.families, sums.share_outside),
    )


def within_families(diagnostics: Diagnostics, families: Families, outside: float) -> Diagnostics:
    """The diagnostics with what the families of parent sets leave out, by the draws of chains."""
    if families.has_all():
        return diagnostics
    said = f" Of the graphs that Markov chains drew, {outside:.1%} have a parent set that is not summed."
    is_felt = outside > _TOLERATED_OUTSIDE and diagnostics.verdict == "trusted"
    return replace(
        diagnostics,
        verdict="unverified" if is_felt else diagnostics.verdict,
        explanation=diagnostics.explanation + said,
        extra={**diagnostics.extra, "share_outside": outside},
    )
