"""gflowdag: the posterior over the directed acyclic graphs that could have produced your table."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.2.0"

# Public name -> module; imported on first use, so that `import gflowdag` and `gflowdag --help` stay quick.
_LAZY = {
    "Dataset": "gflowdag.data",
    "Knowledge": "gflowdag.data",
    "load_dataset": "gflowdag.data",
    "Posterior": "gflowdag.posterior",
    "fit": "gflowdag.estimators",
    "ExactPosterior": "gflowdag.estimators",
    "DAGGFlowNet": "gflowdag.estimators",
    "OrderGFlowNet": "gflowdag.estimators",
    "MC3": "gflowdag.estimators",
    "OrderMCMC": "gflowdag.estimators",
    "Gadget": "gflowdag.estimators",
    "BootstrapGES": "gflowdag.estimators",
    "BootstrapPC": "gflowdag.estimators",
    "DiBS": "gflowdag.estimators",
    "BCDNets": "gflowdag.estimators",
    "compare": "gflowdag.compare",
    "total_effects": "gflowdag.effects",
}
_MODULES = {"metrics": "gflowdag.metrics", "simulate": "gflowdag.data.simulate", "plot": "gflowdag.plot"}

__all__ = sorted([*_LAZY, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = importlib.import_module(_MODULES[name])
    elif name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
    else:
        raise AttributeError(f"module 'gflowdag' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
