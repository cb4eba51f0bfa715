"""What each method would do, take and cost on a table, before anything is computed.

The figures of the approximate methods were measured at a few sizes, with default settings, on 100 rows of
continuous data, compilation included, in seconds of one core (`gflowdag_lab/measurements/costs.py`; those of
`dag-gflownet` beyond 5 variables, and of `bcd-nets` at 20, on two). Between the sizes a power law is drawn,
beyond them one that grows at least as fast as the table. They say whether to wait for a coffee or for a
night, and no more.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gflowdag.exact.size import MAX_VARIABLES, duration, estimated_bytes, estimated_seconds, memory

_PROCESS = 500 << 20  # bytes of Python with JAX and numba loaded, which every fit needs
_DISCRETE, _INTERVENTIONS = "discrete data", "interventions"
_KNOWN_EDGES, _LIMITED_PARENTS = "required or forbidden edges", "max_parents"
NO = "no: "  # begins the answer of a method that refuses the table
_DISCRETE_SET_AND_ROW = 8e-9  # seconds for one row in the counts of one set of variables (BDeu)


class Measured(NamedTuple):
    """One method: what it promises, what it took, by the number of variables, and what it refuses."""

    answer: str
    seconds: dict[int, float]
    mebibytes: dict[int, float]
    extra: str = ""  # optional dependencies that it needs
    refuses: tuple[str, ...] = ()  # kinds of data and of knowledge
    least: int = 2  # variables
    most: float = math.inf
    most_discrete: float = math.inf  # where only BGe does without a table of all parent sets


_MEASURED = {
    "order-gflownet": Measured(
        "weighted, checks itself", {5: 44, 11: 54, 20: 178, 50: 700}, {5: 466, 11: 556, 20: 2078}
    ),
    "dag-gflownet": Measured(  # the trajectories of a batch fill the memory that they may take
        "weighted, checks itself",
        {5: 21, 10: 310, 20: 6900},
        {5: 558, 11: 645},
        most=64,
        most_discrete=20,
    ),
    "order-mcmc": Measured(
        "chains, checks itself",
        {5: 7.3, 11: 18, 20: 30, 21: 53, 30: 117, 50: 250},
        {5: 322, 11: 343, 20: 2106, 50: 1465},
    ),
    "mc3": Measured(  # beyond 20 variables without a table of all parent sets
        "chains, checks itself",
        {5: 8.4, 11: 15.7, 20: 16.1, 21: 250, 30: 340, 50: 1800},
        {5: 464, 11: 500, 20: 720},
        most_discrete=20,
    ),
    "gadget": Measured("chains, checks itself", {11: 17, 20: 19}, {11: 159, 20: 164}, "gadget", most=60),
    "bootstrap-ges": Measured(
        "no posterior",
        {11: 1.5, 20: 4.1},
        {11: 163, 20: 164},
        refuses=(_INTERVENTIONS, _KNOWN_EDGES),
        most=62,
    ),
    "bootstrap-pc": Measured(
        "no posterior", {11: 2.6, 20: 13.6}, {11: 208, 20: 209}, "baselines", (_INTERVENTIONS,)
    ),
    "dibs": Measured("unverified", {5: 16, 11: 65, 20: 136}, {5: 278, 11: 278, 20: 785}, most_discrete=20),
    "bcd-nets": Measured(
        "unverified",
        {11: 48, 20: 60},
        {5: 458, 11: 474},
        refuses=(_DISCRETE, _INTERVENTIONS, _KNOWN_EDGES, _LIMITED_PARENTS),
    ),
}


def estimate_costs(
    num_variables: int,
    num_rows: int,
    *,
    discrete: bool,
    intervened: bool = False,
    known_edges: bool = False,
    limited_parents: bool = False,
) -> list[dict[str, Any]]:
    """One row for each method: `method`, `answer`, `seconds`, `bytes`, and these in words: `time`, `memory`.

    The answer of a method that refuses the table begins with `NO`, and it has no figures; those of the exact
    posterior say why it refuses.

    Args:
        num_variables: of the table.
        num_rows: of the table; they matter where counts are taken of discrete data.
        discrete: whether the data are discrete.
        intervened: whether variables were set from outside.
        known_edges: whether knowledge requires or forbids edges.
        limited_parents: whether knowledge limits the number of parents.
    """
    d = num_variables
    within = d <= MAX_VARIABLES
    table = _DISCRETE_SET_AND_ROW * 2.0**d * num_rows if discrete and within else 0.0
    exact = _row(
        "exact",
        "exact" if within else f"{NO}{MAX_VARIABLES} variables at most",
        estimated_seconds(d) + table,
        _PROCESS + estimated_bytes(d),
    )
    rows = [exact]
    kinds = {
        _DISCRETE: discrete,
        _INTERVENTIONS: intervened,
        _KNOWN_EDGES: known_edges,
        _LIMITED_PARENTS: limited_parents,
    }
    present = [kind for kind, is_there in kinds.items() if is_there]
    for name, method in _MEASURED.items():
        if reason := _refusal(method, d, present):
            rows.append(_row(name, f"{NO}{reason}", None, None))
            continue
        promise = f"{method.answer}; extra [{method.extra}]" if method.extra else method.answer
        size = round(_power_law(d, method.mebibytes) * 2**20)
        rows.append(_row(name, promise, _power_law(d, method.seconds) + table, _PROCESS + size))
    return rows


def _refusal(method: Measured, d: int, present: list[str]) -> str | None:
    """Why a method does not take a table, in few words."""
    if d < method.least:
        return f"{method.least} variables at least"
    if d > method.most:
        return f"{method.most} variables at most"
    if d > method.most_discrete and _DISCRETE in present:
        return f"{method.most_discrete} discrete variables at most"
    refused = [kind for kind in present if kind in method.refuses]
    return f"not with {' or '.join(refused)}" if refused else None


def _row(method: str, answer: str, seconds: float | None, num_bytes: int | None) -> dict[str, Any]:
    return {
        "method": method,
        "answer": answer,
        "seconds": None if seconds is None or not np.isfinite(seconds) else float(f"{seconds:.3g}"),
        "bytes": num_bytes,
        "time": "–" if seconds is None else duration(seconds),
        "memory": "–" if num_bytes is None else memory(num_bytes),
    }


def _power_law(d: int, measured: dict[int, float]) -> float:
    """The figure at `d` variables, on the straight line through its neighbours in logarithms."""
    x, y = np.log(list(measured)), np.log(list(measured.values()))
    k = int(np.clip(np.searchsorted(x, np.log(d)), 1, len(x) - 1))
    slope = (y[k] - y[k - 1]) / (x[k] - x[k - 1])
    if np.log(d) > x[-1]:
        slope = max(slope, 1.0)  # order methods get cheaper once where they pass to candidate parents
    return float(np.exp(y[k] + slope * (np.log(d) - x[k])))
