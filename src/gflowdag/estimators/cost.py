"""What each method would do, take and cost on a table, before anything is computed.

The figures of the approximate methods were measured at a few sizes, with default settings, on 100 rows of
continuous data, compilation included, in seconds of one core (`benchmarks/costs.py`; those of `dag-gflownet`
beyond 5 variables, and of `bcd-nets` at 20, on two). Between the sizes a power law is drawn, beyond them one
that grows at least as fast as the table. They say whether to wait for a coffee or for a night, and no more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gflowdag.exact.size import MAX_VARIABLES, duration, estimated_bytes, estimated_seconds, memory

_PROCESS = 500 << 20  # bytes of Python with JAX and numba loaded, which every fit needs
_DISCRETE, _INTERVENTIONS = "discrete data", "interventions"
_DISCRETE_SET_AND_ROW = 8e-9  # seconds for one row in the counts of one set of variables (BDeu)


class Measured(NamedTuple):
    """One method: what it promises, and what it took, by the number of variables."""

    answer: str
    seconds: dict[int, float]
    mebibytes: dict[int, float]
    extra: str = ""  # optional dependencies that it needs
    refuses: tuple[str, ...] = ()  # kinds of data


_MEASURED = {
    "order-gflownet": Measured(
        "weighted, checks itself", {5: 44, 11: 54, 20: 178, 50: 700}, {5: 466, 11: 556, 20: 2078}
    ),
    "dag-gflownet": Measured("weighted, checks itself", {5: 21, 10: 310, 20: 6900}, {5: 558, 11: 645}),
    "order-mcmc": Measured(
        "chains, checks itself",
        {5: 7.3, 11: 18, 20: 30, 21: 53, 30: 117, 50: 250},
        {5: 322, 11: 343, 20: 2106, 50: 1465},
    ),
    "mc3": Measured(  # beyond 20 variables without a table of all parent sets
        "chains, checks itself",
        {5: 8.4, 11: 15.7, 20: 16.1, 21: 250, 30: 340, 50: 1800},
        {5: 464, 11: 500, 20: 720},
    ),
    "gadget": Measured("chains, checks itself", {11: 17, 20: 19}, {11: 159, 20: 164}, "gadget"),
    "bootstrap-ges": Measured(
        "no posterior", {11: 1.5, 20: 4.1}, {11: 163, 20: 164}, refuses=(_INTERVENTIONS,)
    ),
    "bootstrap-pc": Measured(
        "no posterior", {11: 2.6, 20: 13.6}, {11: 208, 20: 209}, "baselines", (_INTERVENTIONS,)
    ),
    "dibs": Measured("unverified", {5: 16, 11: 65, 20: 136}, {5: 278, 11: 278, 20: 785}),
    "bcd-nets": Measured(
        "unverified", {11: 48, 20: 60}, {5: 458, 11: 474}, refuses=(_DISCRETE, _INTERVENTIONS)
    ),
}


def estimate_costs(
    num_variables: int, num_rows: int, *, discrete: bool, intervened: bool = False
) -> list[dict[str, Any]]:
    """One row for each method: `method`, `answer`, `seconds`, `bytes`, and these in words: `time`, `memory`.

    Args:
        num_variables: of the table.
        num_rows: of the table; they matter where counts are taken of discrete data.
        discrete: whether the data are discrete.
        intervened: whether variables were set from outside.
    """
    d = num_variables
    within = d <= MAX_VARIABLES
    table = _DISCRETE_SET_AND_ROW * 2.0**d * num_rows if discrete and within else 0.0
    exact = _row(
        "exact",
        "exact" if within else f"no: {MAX_VARIABLES} variables at most",
        estimated_seconds(d) + table,
        _PROCESS + estimated_bytes(d),
    )
    rows = [exact]
    present = [kind for kind, there in ((_DISCRETE, discrete), (_INTERVENTIONS, intervened)) if there]
    for method, (answer, seconds, mebibytes, extra, refuses) in _MEASURED.items():
        size = round(_power_law(d, mebibytes) * 2**20)
        promise = f"{answer}; extra [{extra}]" if extra else answer
        if refused := [kind for kind in present if kind in refuses]:
            promise = f"no: not with {' or '.join(refused)}"
        rows.append(_row(method, promise, _power_law(d, seconds) + table, _PROCESS + size))
    return rows


def _row(method: str, answer: str, seconds: float, num_bytes: int) -> dict[str, Any]:
    return {
        "method": method,
        "answer": answer,
        "seconds": float(f"{seconds:.3g}") if np.isfinite(seconds) else None,
        "bytes": num_bytes,
        "time": duration(seconds),
        "memory": memory(num_bytes),
    }


def _power_law(d: int, measured: dict[int, float]) -> float:
    """The figure at `d` variables, on the straight line through its neighbours in logarithms."""
    x, y = np.log(list(measured)), np.log(list(measured.values()))
    k = int(np.clip(np.searchsorted(x, np.log(d)), 1, len(x) - 1))
    slope = (y[k] - y[k - 1]) / (x[k] - x[k - 1])
    if np.log(d) > x[-1]:
        slope = max(slope, 1.0)  # order methods get cheaper once where they pass to candidate parents
    return float(np.exp(y[k] + slope * (np.log(d) - x[k])))
