"""The rooms of the package and the imports between them: what the tests allow and `docs/rooms.py` draws."""

from __future__ import annotations

# Every room and the rooms that it may import from, inside functions too. `errors` and `runtime` serve all.
BELOW = {"errors", "runtime", "__version__"}
METHODS = {"exact", "mcmc", "gflownet", "baselines"}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "runtime": set(),
    "graph": set(),
    "data": {"graph"},
    "score": {"graph", "data"},
    "search": {"graph", "data", "score"},
    "orders": {"graph", "data", "score", "search"},
    "exact": {"graph", "data", "score"},
    "mcmc": {"graph", "data", "score", "orders"},
    "gflownet": {"graph", "data", "score", "orders"},
    "baselines": {"graph", "data", "score", "search"},
    "posterior": {"graph", "data", "score"},
    "estimators": {"graph", "data", "score", "search", "orders", *METHODS, "posterior"},
    "display": {"graph", "data", "score", "posterior"},
    "cli": {"graph", "data", "score", "exact", "posterior", "estimators", "display"},
    "__main__": {"cli"},
    "__init__": {"data", "score", "estimators", "posterior", "display"},
}
# A posterior and a comparison hand themselves over to what shows them: `report(path)`, `plot()`. A simulation
# from a prior asks the score that has it. Statements about an exact posterior are summed by the engine that
# made it: it alone leaves the scores of all parent sets there.
HAND_OVER = {
    ("posterior/posterior.py", "display"),
    ("posterior/comparison.py", "display"),
    ("data/simulate.py", "score"),
    ("posterior/exact_statements.py", "exact"),
}
