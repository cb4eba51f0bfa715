"""Orders that a policy drew, with their weights: over the parent sets that it knows, or over all.

Beyond a dense table a policy learns on a few candidate parents of each node. What it draws are canonical
orders, and these can be weighed over *all* parent sets up to a number of parents (`orders.all_sums`). The
policy is then a proposal, and what it does not know shows in the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.gflownet.sampling import Samples
from gflowdag.orders.all_sums import AllSets, draw_from_orders, score_all_sets, weigh_orders
from gflowdag.orders.draws import draw_graphs
from gflowdag.orders.problem import OrderProblem, edge_probabilities_of_orders
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.runtime.messages import counted
from gflowdag.runtime.progress import Progress, begin_phase
from gflowdag.score import Score

_MOST_WEIGHED = 4096  # orders that are weighed over all parent sets: some milliseconds each
_MOST_EDGES = 1 << 25  # probabilities of edges given these orders that are kept
_AT_THE_LIMIT = 0.05  # expected share of a node's sets of the largest size, from which on larger ones matter


class WeighedOrders(NamedTuple):
    """Importance-weighted orders, and where their edges and graphs come from."""

    log_ratio: NDArray[np.float64]  # [n], log-weight of each order over its probability; −inf in dead ends
    held_out: NDArray[np.float64]  # [m], of orders that the policy did not draw; may be empty
    edges_of: Callable[[NDArray[np.int64]], NDArray[np.float64]]  # of the orders at some places
    graphs_of: Callable[[NDArray[np.int64], np.random.Generator], NDArray[np.bool_]]  # likewise
    judge: Callable[[Diagnostics, NDArray[np.bool_]], Diagnostics]  # what was left out, from the graphs


def weigh_orders_of_policy(
    score: Score,
    problem: OrderProblem,
    drawn: Samples,
    held_out: NDArray[np.int32],
    held_out_drawn: Samples | None,
    progress: Progress,
) -> WeighedOrders:
    """The weights of the orders that a policy drew.

    Args:
        score: of the graphs.
        problem: that the policy knows.
        drawn: by the policy.
        held_out: orders that it did not draw, int32 [m, d].
        held_out_drawn: the same with its probabilities; None where there are none.
        progress: told how far it is.
    """
    orders = np.asarray(drawn.built)
    if problem.is_dense:
        return WeighedOrders(
            np.asarray(drawn.log_weights),
            np.zeros(0),
            lambda places: edge_probabilities_of_orders(problem, orders[places]),
            lambda places, rng: draw_graphs(
                problem.weights, problem.table, orders[places], problem.labels, rng
            ),
            lambda diagnostics, _: diagnostics,
        )
    begin_phase(progress, "all parent sets")
    table, labels = score_all_sets(score), problem.labels
    orders = orders[: min(_MOST_WEIGHED, max(_MOST_EDGES // score.num_variables**2, 1))]
    weighed = weigh_orders(table, orders, labels, progress)
    others = np.zeros(0)
    if held_out_drawn is not None:
        others = weigh_orders(table, held_out, labels).log_weights + np.asarray(held_out_drawn.log_ratio)
    return WeighedOrders(
        weighed.log_weights + np.asarray(drawn.log_ratio)[: len(orders)],
        others,
        lambda places: weighed.edges[places],
        lambda places, rng: draw_from_orders(table, orders[places], labels, rng),
        lambda diagnostics, graphs: _limited(diagnostics, table, score, graphs),
    )


def _limited(
    diagnostics: Diagnostics, table: AllSets, score: Score, graphs: NDArray[np.bool_]
) -> Diagnostics:
    """The diagnostics with the limit on the parents that was not asked for, where it is felt."""
    asked = score.constraints.max_parents
    if table.max_parents >= score.num_variables - 1 or (asked is not None and asked <= table.max_parents):
        return diagnostics
    said = f" All parent sets of up to {counted(table.max_parents, 'parent')} are summed, and no larger ones."
    full = float((graphs.sum(axis=1) == table.max_parents).mean(axis=0).max())
    if full > _AT_THE_LIMIT:
        said += f" Some variable has that many in {full:.0%} of the graphs, so larger sets may matter."
    return replace(
        diagnostics,
        verdict="unverified"
        if full > _AT_THE_LIMIT and diagnostics.verdict == "trusted"
        else diagnostics.verdict,
        explanation=diagnostics.explanation + said,
    )
