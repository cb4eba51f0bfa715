"""The estimators, their registry, and `fit`: one name on the surface for each method."""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any

from gflowdag.errors import GFlowDAGError
from gflowdag.runtime.messages import instead, nearest

if TYPE_CHECKING:
    from gflowdag.estimators.auto import AutoPosterior as AutoPosterior
    from gflowdag.estimators.base import StructureLearner as StructureLearner
    from gflowdag.estimators.bcd_nets import BCDNets as BCDNets
    from gflowdag.estimators.bcd_nets import bcd_posterior as bcd_posterior
    from gflowdag.estimators.bootstrap import BootstrapGES as BootstrapGES
    from gflowdag.estimators.bootstrap import BootstrapPC as BootstrapPC
    from gflowdag.estimators.dag_gflownet import PRESETS as PRESETS
    from gflowdag.estimators.dag_gflownet import DAGGFlowNet as DAGGFlowNet
    from gflowdag.estimators.dag_gflownet import Preset as Preset
    from gflowdag.estimators.dag_gflownet import preset_for as preset_for
    from gflowdag.estimators.dibs import DiBS as DiBS
    from gflowdag.estimators.dibs import dibs_posterior as dibs_posterior
    from gflowdag.estimators.dibs import dibs_target as dibs_target
    from gflowdag.estimators.exact import ExactPosterior as ExactPosterior
    from gflowdag.estimators.gadget import Gadget as Gadget
    from gflowdag.estimators.mc3 import MC3 as MC3
    from gflowdag.estimators.order_gflownet import OrderGFlowNet as OrderGFlowNet
    from gflowdag.estimators.order_gflownet import order_space as order_space
    from gflowdag.estimators.order_mcmc import OrderMCMC as OrderMCMC
    from gflowdag.estimators.order_mcmc import mixing as mixing
    from gflowdag.estimators.stacked import TrainedStack as TrainedStack
    from gflowdag.estimators.stacked import train_together as train_together
    from gflowdag.posterior.posterior import Posterior

# Method name -> (module, class). A new method is one file, one line here and one for type checkers above.
REGISTRY = {
    "exact": ("exact", "ExactPosterior"),
    "dag-gflownet": ("dag_gflownet", "DAGGFlowNet"),
    "order-gflownet": ("order_gflownet", "OrderGFlowNet"),
    "order-mcmc": ("order_mcmc", "OrderMCMC"),
    "mc3": ("mc3", "MC3"),
    "gadget": ("gadget", "Gadget"),
    "bootstrap-ges": ("bootstrap", "BootstrapGES"),
    "bootstrap-pc": ("bootstrap", "BootstrapPC"),
    "dibs": ("dibs", "DiBS"),
    "bcd-nets": ("bcd_nets", "BCDNets"),
    "auto": ("auto", "AutoPosterior"),
}
# Parts of estimators, for those who train or sample by themselves: public name -> module.
_PARTS = {
    "StructureLearner": "base",
    "bcd_posterior": "bcd_nets",
    "PRESETS": "dag_gflownet",
    "Preset": "dag_gflownet",
    "preset_for": "dag_gflownet",
    "dibs_posterior": "dibs",
    "dibs_target": "dibs",
    "order_space": "order_gflownet",
    "mixing": "order_mcmc",
    "TrainedStack": "stacked",
    "train_together": "stacked",
}
_MODULES = {name: module for module, name in REGISTRY.values()} | _PARTS

if not TYPE_CHECKING:
    __all__ = ["REGISTRY", "estimator_class", "fit", *sorted(_MODULES)]

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def estimator_class(method: str) -> type[StructureLearner]:
    """The estimator of a method by its command-line name, e.g. `"order-gflownet"`."""
    if method not in REGISTRY:
        spelt = str(method).lower().replace("_", "-")
        by_class = {name.lower(): known for known, (_, name) in REGISTRY.items()}
        meant = nearest(spelt, [*REGISTRY, *by_class]) or spelt
        raise GFlowDAGError(f"unknown method {method!r}: {instead(by_class.get(meant, meant), REGISTRY)}")
    module, name = REGISTRY[method]
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


_READING = ("kinds", "missing", "discretize", "bins", "transform", "max_levels", "intervention_base")


def fit(
    X: Any,
    *,
    method: str = "auto",
    score: str = "auto",
    prior: Any = "uniform",
    knowledge: Any = None,
    interventions: Any = None,
    random_state: Any = 0,
    **options: Any,
) -> Posterior:
    """The posterior over the graphs that could have produced the table `X`.

    Args:
        X: `Dataset`, pandas or polars DataFrame, or array, shape [rows, variables].
        method: `"auto"` is exact where that is possible, and says what it did where it is not.
        score: `"auto"`, `"bge"` (continuous) or `"bde"` (discrete).
        prior: structure prior: `"uniform"`, `"erdos-renyi"`, `"edge"`, `"fair"`.
        knowledge: a `Knowledge` object.
        interventions: which variable was set from outside in which row; see `Dataset.from_frame`.
        random_state: seed.
        **options: how the table is read (`kinds`, `missing`, `discretize`, `bins`, `transform`, `max_levels`,
            `intervention_base`; see `Dataset.from_frame`), and further parameters of the method's estimator.
    """
    reading = {name: options.pop(name) for name in _READING if name in options}
    chosen = estimator_class(method)
    parameters = inspect.signature(chosen).parameters
    if unknown := sorted(options.keys() - parameters.keys()):
        known = (*sorted(parameters), *_READING, "interventions")
        raise GFlowDAGError(f"{method} has no option {unknown[0]!r}: {instead(unknown[0], known)}")
    estimator = chosen(score=score, prior=prior, knowledge=knowledge, random_state=random_state, **options)
    if reading:
        from gflowdag.data import Dataset

        if isinstance(X, Dataset):
            raise GFlowDAGError(
                f"a Dataset has been read already: give {', '.join(reading)} where it is made"
            )
        scaled = options.get("standardize", True)
        X = Dataset.as_dataset(
            X, interventions=interventions, knowledge=knowledge, standardize=scaled, **reading
        )
        interventions = None
    return estimator.fit(X, interventions=interventions).posterior_
