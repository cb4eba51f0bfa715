"""The engines of the other methods, each a module with `Config` and `run`; and the assignment problem."""

from gflowdag.runtime.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
