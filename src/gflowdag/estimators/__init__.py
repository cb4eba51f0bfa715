"""The estimators, their registry, and `fit`: one name on the surface for each method."""

from gflowdag.runtime.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
