"""Linear-Gaussian networks as JSON: nodes, arcs, and for each node its coefficients and variance."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from gflowdag.data.networks import LinearGaussianNetwork
from gflowdag.errors import FileFormatError
from gflowdag.graph.closure import is_acyclic

_INTERCEPT = "(Intercept)"


def parse_linear_gaussian(text: str, source: str = "the text") -> LinearGaussianNetwork:
    """Parse the text of such a file; `source` is its name in messages.

    The keys are `nodes` (names), and `cpds`: for each node `parents`, `variance` and `coefficients`, by the
    name of the parent, with `(Intercept)`. Numbers may stand in lists of one.
    """

    def fail(problem: str) -> FileFormatError:
        return FileFormatError(f"{source} is not a linear-Gaussian network: {problem}.")

    try:
        content = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise fail(f"it is not JSON: {error}") from error
    try:
        names = tuple(str(name) for name in content["nodes"])
        size = len(names)
        adjacency = np.zeros((size, size), dtype=bool)
        weights, intercepts, variances = np.zeros((size, size)), np.zeros(size), np.zeros(size)
        for node, name in enumerate(names):
            cpd = content["cpds"][name]
            coefficients = dict(cpd["coefficients"])
            intercepts[node] = _number(coefficients.pop(_INTERCEPT, 0.0))
            variances[node] = _number(cpd["variance"])
            if set(coefficients) != set(cpd["parents"]):
                raise fail(f"the coefficients of {name!r} do not match its parents")
            for parent, coefficient in coefficients.items():
                adjacency[names.index(parent), node] = True
                weights[names.index(parent), node] = _number(coefficient)
    except FileFormatError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise fail(f"missing or wrong entry {error}") from error
    if len(set(names)) != size or not size:
        raise fail("the nodes need names, all different")
    if (variances <= 0).any():
        raise fail(f"the variance of {names[int((variances <= 0).argmax())]!r} is not positive")
    if not is_acyclic(adjacency):
        raise fail("the edges form a cycle")
    return LinearGaussianNetwork(names, adjacency, weights, intercepts, variances)


def _number(value: Any) -> float:
    if isinstance(value, list):
        (value,) = value
    if not math.isfinite(number := float(value)):
        raise ValueError(value)
    return number
