"""What each method would do, take and cost on a table, before anything is computed.

The costs in the methods' records were measured at a few sizes, with default settings, on 100 rows of
continuous data, compilation included, in seconds of one core (`gflowdag_lab/measurements/costs.py`; those of
`dag-gflownet` beyond 5 variables, and of `bcd-nets` at 20, on two). They say whether to wait for a coffee or
for a night, and no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gflowdag.estimators.method import Method, Problem
from gflowdag.estimators.registry import estimator_class, estimator_classes
from gflowdag.runtime.messages import counted, duration, memory
from gflowdag.score.base import MAX_TABLE_VARIABLES

if TYPE_CHECKING:
    from gflowdag.data import Dataset

_PROCESS = 500 << 20  # bytes of Python with JAX and numba loaded, which every fit needs
AUTOMATIC_SECONDS = 120.0  # that the exact posterior may take without being asked for
EXPECTED_ROUNDS = 400  # completed tables that an exact answer computes where cells are missing
EXPECTED_FITS = 10  # completed tables that the other methods fit one by one, where nobody says how many
_TABLES_WITH_GAPS = {"exact": EXPECTED_ROUNDS, "parent-set-mcmc": 1}  # those chains draw cells on their way
NO = "no: "  # begins the answer of a method that refuses the table
_DISCRETE_SET_AND_ROW = 8e-9  # seconds for one row in the counts of one set of variables (BDeu)
_LOGISTIC_SET_AND_ROW = 1.5e-7  # for one row in the logistic regression of one variable on one set


def estimate_costs(
    num_variables: int,
    num_rows: int,
    *,
    discrete: bool,
    intervened: bool = False,
    known_edges: bool = False,
    limited_parents: bool = False,
    mixed: bool = False,
    gaps: bool = False,
) -> list[dict[str, Any]]:
    """One row for each method: `method`, `answer`, `seconds`, `bytes`, and these in words: `time`, `memory`.

    The answer of a method that refuses the table begins with `NO`, and it has no cost; those of the exact
    posterior say why it refuses.

    Args:
        num_variables: of the table.
        num_rows: of the table; they matter where counts are taken of discrete data.
        discrete: whether some columns are discrete.
        intervened: whether variables were set from outside.
        known_edges: whether knowledge requires or forbids edges.
        limited_parents: whether knowledge limits the number of parents.
        mixed: whether there are columns of both kinds.
        gaps: whether cells are missing, so that several completed tables are fitted.
    """
    problem = Problem(num_variables, discrete, intervened, known_edges, limited_parents, mixed)
    return [_row(kind.record, problem, num_rows, gaps=gaps) for kind in estimator_classes()]


def seconds_of(method: Method, problem: Problem, num_rows: int) -> float | None:
    """Rough time of a fit with default settings; None if nothing like it was measured."""
    if method.seconds is None or not method.cost_is_known(problem):
        return None
    d = problem.num_variables
    # Beyond, the other methods have no table of all parent sets.
    has_table = (method.name == "exact" or d <= MAX_TABLE_VARIABLES) and method.refusal(problem) is None
    counts = _DISCRETE_SET_AND_ROW * 2.0**d if problem.discrete and has_table else 0.0
    if problem.mixed and has_table:  # half of the variables discrete, as in the table that was measured
        counts += _LOGISTIC_SET_AND_ROW * d / 2 * 2.0 ** (d - 1)
    return method.seconds(d) + counts * num_rows


def expected_rounds(data: Dataset, completions: int | None = None) -> int:
    """How many tables an exact answer computes: one, or so many completed ones."""
    if data.missing is None:
        return 1
    return EXPECTED_ROUNDS if completions is None else completions


def automatic_choice(
    problem: Problem, num_rows: int, budget: float | None = None, *, rounds: int = 1
) -> tuple[str, str]:
    """The method that `auto` takes, and why, in a sentence; an exact answer computes `rounds` tables."""
    d = counted(problem.num_variables, "variable")
    exact, limit = estimator_class("exact").record, AUTOMATIC_SECONDS if budget is None else budget
    if exact.refusal(problem) is not None:
        return "parent-set-mcmc", f"{d} are too many for the exact posterior on this machine"
    seconds = seconds_of(exact, problem, num_rows)
    assert seconds is not None
    seconds *= rounds
    if seconds <= limit:
        return "exact", f"{d} are within reach of the exact posterior"
    return (
        "parent-set-mcmc",
        f"the exact posterior of {d} would take about {duration(seconds)}, more than {duration(limit)}",
    )


def _row(method: Method, problem: Problem, num_rows: int, *, gaps: bool) -> dict[str, Any]:
    reason = method.refusal(problem)
    seconds, num_bytes = None, None
    if reason is None or method.name == "exact":
        seconds = seconds_of(method, problem, num_rows)
        if gaps and seconds is not None:
            seconds *= _TABLES_WITH_GAPS.get(method.name, EXPECTED_FITS)
        if method.num_bytes is not None and method.cost_is_known(problem):
            num_bytes = _PROCESS + round(method.num_bytes(problem.num_variables))
    promise = f"{method.answer}; extra [{method.extra}]" if method.extra else method.answer
    return {
        "method": method.name,
        "answer": promise if reason is None else f"{NO}{reason}",
        "seconds": None if seconds is None or not np.isfinite(seconds) else float(f"{seconds:.3g}"),
        "bytes": num_bytes,
        "time": "–" if seconds is None else duration(seconds),
        "memory": "–" if num_bytes is None else memory(num_bytes),
    }
