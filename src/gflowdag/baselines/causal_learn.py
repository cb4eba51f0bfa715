"""The optional package causal-learn: how it is imported, and how it writes graphs."""

from __future__ import annotations

import importlib
from types import ModuleType

import numpy as np

from gflowdag.errors import MissingExtraError


def import_causal_learn(module: str) -> ModuleType:
    """A module of causal-learn by its path inside the package; a missing package names the pip command."""
    try:
        return importlib.import_module(f"causallearn.{module}")
    except ImportError as error:
        raise MissingExtraError(
            'this method needs causal-learn: pip install "gflowdag[baselines]"'
        ) from error


def edge_matrix(graph: np.ndarray) -> np.ndarray:
    """From causal-learn's end marks to bool [d, d] with rows as sources.

    causal-learn writes the mark at `i` of the edge between `i` and `j` to `[i, j]`: −1 a tail, 1 an arrow
    head. An edge with two tails is undirected; one with two heads (conflicting colliders) is read as such.
    """
    graph = np.asarray(graph)
    return (graph == -1) | ((graph == 1) & (graph.T == 1))
