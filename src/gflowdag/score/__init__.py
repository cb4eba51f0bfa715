"""Scores of DAGs: BGe, BDeu and scores of one's own, under structure priors modular in the parents."""

from gflowdag.score.base import Score, table_memory
from gflowdag.score.bdeu import BDeu
from gflowdag.score.bge import BGe
from gflowdag.score.local_score import LocalScore, UnboundScore
from gflowdag.score.priors import EdgePrior, ErdosRenyiPrior, FairPrior, Prior, UniformPrior
from gflowdag.score.registry import SCORES, make_score, named_score

__all__ = [
    "SCORES",
    "BDeu",
    "BGe",
    "EdgePrior",
    "ErdosRenyiPrior",
    "FairPrior",
    "LocalScore",
    "Prior",
    "Score",
    "UnboundScore",
    "UniformPrior",
    "make_score",
    "named_score",
    "table_memory",
]
