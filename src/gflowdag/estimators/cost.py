"""What each method would do, take and cost on a table of `d` variables, before anything is computed."""

from __future__ import annotations

from gflowdag.exact.size import MAX_VARIABLES, duration, estimated_bytes, estimated_seconds, memory
from gflowdag.score.base import table_memory

# How the methods other than the exact one are bounded: what they promise, and who decides how long they run.
_APPROXIMATE = {
    "order-gflownet": ("weighted, checks itself", "2 to 5 minutes, or --budget"),
    "dag-gflownet": ("weighted, checks itself", "minutes, or --budget"),
    "order-mcmc": ("chains, checks itself", "seconds to minutes"),
    "mc3": ("chains, checks itself", "seconds to minutes"),
    "gadget": ("chains, checks itself", "minutes; extra [gadget]"),
    "bootstrap-ges": ("not a posterior", "minutes; extra [baselines]"),
    "bootstrap-pc": ("not a posterior", "seconds; extra [baselines]"),
    "dibs": ("unverified", "minutes"),
    "bcd-nets": ("unverified", "minutes"),
}


def estimate_costs(num_variables: int) -> list[dict[str, str]]:
    """One row for each method: `method`, `answer`, `time` on two cores, `memory`."""
    d = num_variables
    within = d <= MAX_VARIABLES
    exact = {
        "method": "exact",
        "answer": "exact" if within else f"no: {MAX_VARIABLES} variables at most",
        "time": duration(estimated_seconds(d)),
        "memory": memory(estimated_bytes(d)) if within else "",
    }
    table = memory(table_memory(d)) if within else ""
    return [exact] + [
        {"method": method, "answer": answer, "time": time, "memory": table}
        for method, (answer, time) in _APPROXIMATE.items()
    ]
