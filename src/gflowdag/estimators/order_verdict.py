"""What a restriction to candidate parents does to a verdict."""

from __future__ import annotations

from gflowdag.orders.problem import OrderProblem

_NOTABLE_LOSS = 0.01  # share of a node's parent sets that a restriction may leave out without a word


def restricted_verdict(verdict: dict[str, str], problem: OrderProblem) -> dict[str, str]:
    """`verdict` and `explanation`, less sure where the candidate parents leave out too much."""
    loss = problem.table.lost_mass
    answer = {name: verdict[name] for name in ("verdict", "explanation")}
    if loss.max() <= _NOTABLE_LOSS:
        return answer
    restriction = (
        f" Only {problem.table.num_candidates} candidate parents of each node were considered, and single "
        f"others; without acyclicity that leaves out an estimated {loss.mean():.0%} of a node's parent sets "
        f"(at most {loss.max():.0%})."
    )
    if answer["verdict"] == "trusted":
        answer["verdict"] = "unverified"
    return {**answer, "explanation": answer["explanation"] + restriction}
