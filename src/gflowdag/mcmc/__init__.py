"""Markov chains over graphs (`structure`) and over orders (`order_chains`)."""

from gflowdag.runtime.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
