"""Greedy searches for one good graph: hill climbing over DAGs, and GES over equivalence classes."""

from gflowdag.runtime.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
