"""gflowdag: the posterior over the directed acyclic graphs that could have produced your table."""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.3.0"

# Public name -> module; imported on first use, so that `import gflowdag` and `gflowdag --help` stay quick.
# Beside them there is the class of every method.
_LAZY = {
    "Dataset": "gflowdag.data",
    "Knowledge": "gflowdag.data",
    "ReadOptions": "gflowdag.data",
    "load_dataset": "gflowdag.data",
    "BGe": "gflowdag.score",
    "BDeu": "gflowdag.score",
    "ConditionalGaussian": "gflowdag.score",
    "DegenerateGaussian": "gflowdag.score",
    "GeneralizedLinear": "gflowdag.score",
    "LocalScore": "gflowdag.score",
    "ScoreFile": "gflowdag.score",
    "Posterior": "gflowdag.posterior.posterior",
    "fit": "gflowdag.estimators",
    "PaperRecipe": "gflowdag.estimators",
    "compare": "gflowdag.estimators.compare",
    "Comparison": "gflowdag.posterior.comparison",
    "total_effects": "gflowdag.posterior.effects",
}
_MODULES = {
    "metrics": "gflowdag.posterior.metrics",
    "simulate": "gflowdag.data.simulate",
    "plot": "gflowdag.display.plots",
}

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from gflowdag.data import Dataset as Dataset
    from gflowdag.data import Knowledge as Knowledge
    from gflowdag.data import ReadOptions as ReadOptions
    from gflowdag.data import load_dataset as load_dataset
    from gflowdag.data import simulate as simulate
    from gflowdag.display import plots as plot  # noqa: F401  (the public name)
    from gflowdag.estimators import MC3 as MC3
    from gflowdag.estimators import AutoPosterior as AutoPosterior
    from gflowdag.estimators import BCDNets as BCDNets
    from gflowdag.estimators import BootstrapGES as BootstrapGES
    from gflowdag.estimators import BootstrapPC as BootstrapPC
    from gflowdag.estimators import DAGGFlowNet as DAGGFlowNet
    from gflowdag.estimators import DiBS as DiBS
    from gflowdag.estimators import ExactPosterior as ExactPosterior
    from gflowdag.estimators import Gadget as Gadget
    from gflowdag.estimators import OrderGFlowNet as OrderGFlowNet
    from gflowdag.estimators import OrderMCMC as OrderMCMC
    from gflowdag.estimators import PaperRecipe as PaperRecipe
    from gflowdag.estimators import ParentSetMCMC as ParentSetMCMC
    from gflowdag.estimators import fit as fit
    from gflowdag.estimators.compare import compare as compare
    from gflowdag.posterior import metrics as metrics
    from gflowdag.posterior.comparison import Comparison as Comparison
    from gflowdag.posterior.effects import total_effects as total_effects
    from gflowdag.posterior.posterior import Posterior as Posterior
    from gflowdag.score import BDeu as BDeu
    from gflowdag.score import BGe as BGe
    from gflowdag.score import ConditionalGaussian as ConditionalGaussian
    from gflowdag.score import DegenerateGaussian as DegenerateGaussian
    from gflowdag.score import GeneralizedLinear as GeneralizedLinear
    from gflowdag.score import LocalScore as LocalScore
    from gflowdag.score import ScoreFile as ScoreFile
else:  # out of their sight: to them it would make every name, also a misspelt one, a name of this module
    import importlib

    def __getattr__(name):
        if name in _MODULES:
            value = importlib.import_module(_MODULES[name])
        elif name in _LAZY:
            value = getattr(importlib.import_module(_LAZY[name]), name)
        elif name == "__all__":
            value = __dir__()
        elif name.startswith("_") or (value := _methods().class_of_name(name)) is None:
            raise AttributeError(f"module 'gflowdag' has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__():
        classes = [kind for _, kind in _methods().REGISTRY.values()]
        return sorted([*_LAZY, *_MODULES, *classes, "__version__"])

    def _methods():
        return importlib.import_module("gflowdag.estimators.registry")
