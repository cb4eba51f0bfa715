"""Scores of DAGs: BGe and BDeu, observational and interventional, under modular structure priors."""

from gflowdag.score.base import Score, table_memory
from gflowdag.score.priors import EdgePrior, ErdosRenyiPrior, FairPrior, Prior, UniformPrior
from gflowdag.score.registry import make_score

__all__ = [
    "EdgePrior",
    "ErdosRenyiPrior",
    "FairPrior",
    "Prior",
    "Score",
    "UniformPrior",
    "make_score",
    "table_memory",
]
