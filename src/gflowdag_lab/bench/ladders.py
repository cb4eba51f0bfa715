"""How the effort of each method grows: settings of one fit after the other, each twice as much work."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

from gflowdag.errors import GFlowDAGError
from gflowdag.runtime import instead

GROWTH = 2  # effort of a rung over that of the one below
Settings = dict[str, Any]

# Settings of rung 0, 1, 2, …; a new method is one line, and so is a method's other recipe, `method:recipe`.
# What has no line has one rung, its defaults.
LADDERS: dict[str, Callable[[int], Settings]] = {
    "mc3": lambda rung: _chains(500 << rung, thinning=10 << rung),
    "gadget": lambda rung: {
        "burn_in": 50 << rung,
        "num_steps": 100 << rung,
        "thinning": max(1, (100 << rung) // 1000),
    },
    "parent-set-mcmc": lambda rung: {"iterations": 64 << rung},
    "order-mcmc": lambda rung: {"iterations": 150 << rung},
    "order-gflownet": lambda rung: {"iterations": 16 << rung, "chain_steps": 150 << rung},
    "dag-gflownet": lambda rung: {"iterations": 64 << rung},
    "dag-gflownet:chains": lambda rung: {
        "preset": "chains",
        "iterations": 250 << rung,
        "chain_steps": 250 << rung,
    },
    "bootstrap-ges": lambda rung: {"num_bootstraps": 25 << rung},
    "bootstrap-pc": lambda rung: {"num_bootstraps": 25 << rung},
    "dibs": lambda rung: {"num_steps": 125 << rung},
    "bcd-nets": lambda rung: {"num_steps": 500 << rung},
}
METHODS = ("exact", *LADDERS)  # and their recipes
_NEEDS = {"gadget": "sumu", "sumu": "sumu", "bootstrap-pc": "causallearn"}


def rungs(method: str) -> Iterator[Settings]:
    """Settings of the estimator, from the least effort upwards; without an end where effort can grow."""
    if method not in LADDERS:
        yield {}
        return
    rung = 0
    while True:
        yield LADDERS[method](rung)
        rung += 1


def method_of(subject: str) -> str:
    """The method that a recipe belongs to; a method is its own."""
    return subject.partition(":")[0]


def is_installed(method: str) -> bool:
    """Whether the package that the method stands on is there."""
    return method not in _NEEDS or importlib.util.find_spec(_NEEDS[method]) is not None


def require_methods(names: list[str]) -> list[str]:
    """The names, or an error that names the one that does not exist."""
    for name in names:
        if name not in METHODS:
            raise GFlowDAGError(f"there is no method {name!r} to measure: {instead(name, METHODS)}")
    return names


def _chains(num_steps: int, thinning: int) -> Settings:
    return {"burn_in": num_steps // 2, "num_steps": num_steps, "thinning": thinning}
