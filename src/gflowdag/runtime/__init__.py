"""What every room may use: files, progress, interrupts, devices, processes, precision, messages."""

from gflowdag.runtime.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
