"""Canonical orders: weights, windows, labels, draws and potentials, shared by chains and policies."""

from gflowdag.runtime.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
