"""The GFlowNets: state spaces, policies, learners, their trainer, and sampling from what was learnt."""

from gflowdag.runtime.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
