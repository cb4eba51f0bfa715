"""The answer of every method, its file format, and what can be computed from it."""

from gflowdag.runtime.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
