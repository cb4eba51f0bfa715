"""Orders of chains on candidate parents, weighed over parent sets that the chains do not know.

Beyond dense tables order MCMC works on a few candidate parents of each node. Every recorded order can be
weighed over whole families of parent sets (`orders.all_sums`); divided by what it weighs for the chains, that
is an importance weight towards the posterior over all DAGs. The effective sample size and the Pareto k of
these weights say what the restriction costs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from gflowdag.estimators.unseen import TOLERATED_UNSEEN, unseen_share
from gflowdag.estimators.weighed_orders import within_families
from gflowdag.mcmc import order_chains
from gflowdag.mcmc.recorded_graphs import recorded_graphs
from gflowdag.mcmc.unrestricted.run import FEWEST_SWEEPS
from gflowdag.orders.all_sums import draw_from_orders, score_all_sets, weigh_orders
from gflowdag.orders.families import Families, likely_families
from gflowdag.orders.labels import canonical_orders
from gflowdag.orders.problem import OrderProblem
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.importance import importance_summary, weights_vouch
from gflowdag.runtime.deadline import Deadline
from gflowdag.score import Score

_SHARE_OF_TEST = 0.3  # of the time that is left, at most, for chains over all DAGs
_FEWEST = 64  # orders that are weighed whatever the time
_TEST_CHAINS, _TEST_GRAPHS = 4, 256  # over all DAGs


class ReweighedOrders(NamedTuple):
    """What the orders of chains say about all DAGs."""

    importance: NDArray[np.float64]  # [n], normalised
    edge_probabilities: NDArray[np.float64]  # [d, d], weighted
    errors: NDArray[np.float64]  # [d, d], of these, were the orders independent
    samples: NDArray[np.bool_]  # [num_samples, d, d]
    ess: float
    pareto_k: float
    unseen: float  # share of graphs of chains over all DAGs whose orders the chains all but never come to
    families: Families  # of the parent sets that are summed
    outside: float  # share of graphs of chains over all DAGs with a set that is not

    @property
    def vouches(self) -> bool:
        """Whether the weights confirm the weighted answer."""
        return weights_vouch(self.ess, self.pareto_k) and self.unseen <= TOLERATED_UNSEEN


def reweighed(
    score: Score,
    problem: OrderProblem,
    orders: NDArray[np.int16],
    log_weights: NDArray[np.float64],
    num_samples: int,
    seed: int,
    deadline: Deadline,
) -> ReweighedOrders:
    """Weigh the orders of chains over families of parent sets.

    Args:
        score: of the graphs.
        problem: that the chains know.
        orders: int [C, T, d].
        log_weights: of these orders for the chains, [C, T].
        num_samples: graphs to draw.
        seed: of chains over all DAGs and of the samples.
        deadline: by when no further orders are weighed.
    """
    d = score.num_variables
    turns, restricted = orders.swapaxes(0, 1).reshape(-1, d), log_weights.T.reshape(-1)  # chains in turn
    test = recorded_graphs(
        score,
        seed=seed,
        num_chains=_TEST_CHAINS,
        num_graphs=_TEST_GRAPHS,
        max_sweeps=FEWEST_SWEEPS,
        deadline=deadline.share(_SHARE_OF_TEST),
    ).graphs.reshape(-1, d, d)
    families = likely_families(score, test)
    table, labels = score_all_sets(score, families), problem.labels
    elsewhere = canonical_orders(test, labels)
    held_out = weigh_orders(table, elsewhere, labels, deadline=deadline.share(_SHARE_OF_TEST), fewest=_FEWEST)
    elsewhere = elsewhere[: len(held_out.log_weights)]
    held_out_ratio = held_out.log_weights - order_chains.log_weights(problem, elsewhere[None])[0]
    weighed = weigh_orders(table, turns, labels, deadline=deadline, fewest=_FEWEST)
    number = len(weighed.log_weights)
    log_ratio = weighed.log_weights - restricted[:number]
    summary, importance = importance_summary(log_ratio), softmax(log_ratio)
    edges = np.tensordot(importance, weighed.edges, axes=1)
    errors = np.sqrt(np.tensordot(importance**2, (weighed.edges - edges) ** 2, axes=1))
    rng = np.random.default_rng(seed)
    chosen = rng.choice(number, num_samples, p=importance)
    return ReweighedOrders(
        importance,
        edges,
        errors,
        draw_from_orders(table, turns[chosen], labels, rng, weighed.totals[chosen]),
        summary.ess,
        summary.pareto_k,
        unseen_share(log_ratio, held_out_ratio),
        families,
        float(families.left_out(test).any(axis=1).mean()),
    )


def judged(diagnostics: Diagnostics, found: ReweighedOrders, raw: NDArray[np.float64]) -> Diagnostics:
    """The verdict on chains, with what their candidate parents leave out.

    Args:
        diagnostics: of the chains, for the posterior that they know.
        found: what their orders say about all DAGs.
        raw: edge probabilities that the chains know, [d, d].
    """
    said = (
        f" The chains know some candidate parents of each variable. Weights of {len(found.importance):,} of "
        f"their orders towards all DAGs (effective sample size {found.ess:.1%}, Pareto k "
        f"{found.pareto_k:.2f}; {found.unseen:.0%} of the graphs of chains over all DAGs are all but unknown "
        "to them) "
    )
    if found.vouches:
        said += "correct for the others."
    else:
        said += "do not confirm the answer: use parent-set-mcmc, which leaves no parent out."
    fewest = diagnostics.effective_samples
    diagnostics = replace(
        diagnostics,
        verdict=diagnostics.verdict if found.vouches else "not converged",
        explanation=diagnostics.explanation + said,
        pareto_k=found.pareto_k,
        unseen_share=found.unseen,
        ess=None if diagnostics.ess is None else diagnostics.ess * found.ess,
        effective_samples=None if fewest is None else fewest * found.ess,
        raw_edge_probabilities=raw,
        weighted_edge_probabilities=found.edge_probabilities,
        extra={**diagnostics.extra, "weighted_orders": len(found.importance), "ess_of_weights": found.ess},
    )
    return within_families(diagnostics, found.families, found.outside)
