"""The command line, and what a command from another package needs to look like one of ours."""

from gflowdag.runtime.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
