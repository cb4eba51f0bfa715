"""What a restriction to candidate parents does to a verdict."""

from __future__ import annotations

from dataclasses import replace

from gflowdag.orders.problem import OrderProblem
from gflowdag.posterior.diagnostics import Diagnostics

_NOTABLE_LOSS = 0.01  # share of a node's parent sets that a restriction may leave out without a word


def restricted_verdict(diagnostics: Diagnostics, problem: OrderProblem) -> Diagnostics:
    """The diagnostics with the lost mass, and less sure where the candidate parents leave out too much."""
    loss = problem.table.lost_mass
    diagnostics = replace(diagnostics, lost_mass=loss)
    if loss.max() <= _NOTABLE_LOSS:
        return diagnostics
    restriction = (
        f" Only {problem.table.num_candidates} candidate parents of each node were considered, and single "
        f"others. By an estimate that ignores cycles, {loss.mean():.0%} of the probability of a node's "
        f"parent sets is left out (at most {loss.max():.0%})."
    )
    return replace(
        diagnostics,
        verdict="unverified" if diagnostics.verdict == "trusted" else diagnostics.verdict,
        explanation=diagnostics.explanation + restriction,
    )
