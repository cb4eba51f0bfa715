"""Scores of DAGs for columns of one or of both kinds, under structure priors modular in the parents."""

from gflowdag.score.base import Score, table_memory
from gflowdag.score.bdeu import BDeu
from gflowdag.score.bge import BGe
from gflowdag.score.conditional_gaussian import ConditionalGaussian
from gflowdag.score.degenerate_gaussian import DegenerateGaussian
from gflowdag.score.generalized_linear import GeneralizedLinear
from gflowdag.score.local_score import LocalScore, UnboundScore
from gflowdag.score.priors import EdgePrior, ErdosRenyiPrior, FairPrior, Prior, UniformPrior, make_prior
from gflowdag.score.registry import SCORES, make_score, named_score
from gflowdag.score.score_files import ScoreFile, write_local_scores

__all__ = [
    "SCORES",
    "BDeu",
    "BGe",
    "ConditionalGaussian",
    "DegenerateGaussian",
    "EdgePrior",
    "ErdosRenyiPrior",
    "FairPrior",
    "GeneralizedLinear",
    "LocalScore",
    "Prior",
    "Score",
    "ScoreFile",
    "UnboundScore",
    "UniformPrior",
    "make_prior",
    "make_score",
    "named_score",
    "table_memory",
    "write_local_scores",
]
