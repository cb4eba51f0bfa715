"""What an exact computation costs, and tables that it can take."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.errors import KnowledgeError, ScoreError, TooLargeError
from gflowdag.runtime.memory import total_memory
from gflowdag.runtime.messages import counted, duration, memory
from gflowdag.runtime.place import typed

MAX_VARIABLES = 20  # where nobody says otherwise: the last that takes less than a minute


def checked_table(table: ArrayLike) -> NDArray[np.float64]:
    """The table as float64 [d, 2^(d−1)], or an error that says what is wrong with it."""
    table = np.asarray(table, dtype=np.float64)
    if table.ndim != 2 or len(table) == 0 or table.shape[1] != 1 << (len(table) - 1):
        raise ScoreError(f"a score table is [d, 2^(d−1)], got {table.shape}")
    if np.isnan(table).any() or np.isposinf(table).any():
        node = int(np.argmax((np.isnan(table) | np.isposinf(table)).any(axis=1)))
        raise ScoreError(f"the score table of variable {node} has entries that are NaN or +inf")
    return table


def estimated_bytes(d: int) -> int:
    """Peak memory of `posterior` in bytes, the table itself included; a whole number, however large."""
    return 8 * (6 * d * 2 ** (d - 1) + 6 * 2**d)


def estimated_seconds(d: int) -> float:
    """Rough time of `posterior` on two cores; infinite where it is beyond the range of a number."""
    return 0.65e-9 * 3.0**d + 4e-9 * d * d * 2.0**d if d < 600 else math.inf


def check_size(d: int, max_variables: int | None = None) -> None:
    """Refuse what is beyond the limit, with what it would cost; None is the memory of this machine."""
    cost = (
        f"the exact posterior over {d} variables sums over 3^{d} pairs of sets: about "
        f"{duration(estimated_seconds(d))} on two cores and {memory(estimated_bytes(d))}, "
    )
    if max_variables is None and estimated_bytes(d) > total_memory():
        raise TooLargeError(
            f"{cost}more memory than this machine has ({memory(total_memory())}). Use auto or parent-set-mcmc"
        )
    if max_variables is not None and d > max_variables:
        raise TooLargeError(
            f"{cost}beyond the limit of {counted(max_variables, 'variable')}. Use auto or parent-set-mcmc"
            + typed(python=f"; ExactPosterior(max_variables={d}) computes it anyway", command_line="")
        )


def no_dag() -> KnowledgeError:
    """The error for a table under which every DAG has score −inf."""
    return KnowledgeError(
        "no DAG is allowed: in each of them some node has a parent set of score −inf. Relax the required or "
        "forbidden edges, the tiers or the maximum number of parents"
    )
