"""The engines of the other methods; each is a module with `Config` and `run`."""

from gflowdag.runtime.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
