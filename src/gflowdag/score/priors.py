"""Priors over structures that are modular in the number of parents (Eggeling et al. 2019).

A prior gives one log weight to each number of parents `k = 0 … d − 1`; the prior of a DAG is, up to a
constant, their sum over the nodes. A new prior is one class here and one line in `PRIORS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gflowdag.errors import ScoreError
from gflowdag.runtime.keywords import named_parameters
from gflowdag.runtime.messages import instead
from gflowdag.runtime.place import typed


@runtime_checkable
class Prior(Protocol):
    """A structure prior."""

    def log_weights(self, d: int) -> NDArray[np.float64]:
        """Log weight of each number of parents among `d` variables, float64 [d]."""
        ...


@named_parameters
@dataclass(frozen=True)
class UniformPrior:
    """Every DAG is equally likely."""

    def log_weights(self, d: int) -> NDArray[np.float64]:
        return np.zeros(d)


@named_parameters
@dataclass(frozen=True)
class ErdosRenyiPrior:
    """Every edge is present with the same probability: `k log p + (d − 1 − k) log(1 − p)`.

    Args:
        edges_per_node: expected number of edges for each node; `p = 2 edges_per_node / (d − 1)`.
    """

    edges_per_node: float = 1.0

    def log_weights(self, d: int) -> NDArray[np.float64]:
        if d == 1:
            return np.zeros(1)
        p = 2 * self.edges_per_node / (d - 1)
        if not 0 < p < 1:
            raise ScoreError(
                f"prior 'erdos-renyi' with edges_per_node = {self.edges_per_node} means an edge probability "
                f"of {p:.3g} at {d} variables; "
                + typed(
                    python=f"choose edges_per_node between 0 and {(d - 1) / 2:g}.",
                    command_line="choose another one: --prior fair.",
                )
            )
        k = np.arange(d)
        return k * np.log(p) + (d - 1 - k) * np.log1p(-p)


@named_parameters
@dataclass(frozen=True)
class EdgePrior:
    """Every edge multiplies the prior by `beta`: `k log β`.

    Args:
        beta: below 1, sparse graphs are preferred.
    """

    beta: float = 0.5

    def log_weights(self, d: int) -> NDArray[np.float64]:
        if not (0 < self.beta < np.inf):
            raise ScoreError(f"prior 'edge' needs a positive, finite beta, not {self.beta}.")
        return np.arange(d) * np.log(self.beta)


@named_parameters
@dataclass(frozen=True)
class FairPrior:
    """For each node, every number of parents is equally likely: `−log C(d − 1, k)`."""

    def log_weights(self, d: int) -> NDArray[np.float64]:
        k = np.arange(d)
        return gammaln(k + 1) + gammaln(d - k) - gammaln(d)


PRIORS: dict[str, type] = {
    "uniform": UniformPrior,
    "erdos-renyi": ErdosRenyiPrior,
    "edge": EdgePrior,
    "fair": FairPrior,
}


def checked_log_weights(prior: Prior, d: int) -> NDArray[np.float64]:
    """The log weights of a prior, float64 [d], or an error where a prior of one's own breaks its promise."""
    name = type(prior).__name__
    given: object = prior.log_weights(d)
    try:
        weights = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise ScoreError(f"{name}.log_weights({d}) must give {d} numbers, not {given!r}.") from error
    if weights.shape != (d,):
        raise ScoreError(
            f"{name}.log_weights({d}) gave an array of shape {weights.shape}: it must give one number for "
            f"each number of parents from 0 to {d - 1}, shape ({d},)."
        )
    if not np.isfinite(weights).all():
        count = int(np.flatnonzero(~np.isfinite(weights))[0])
        raise ScoreError(
            f"{name}.log_weights({d}) gave {weights[count]} for {count} parents: log weights must be finite; "
            "limit the number of parents by Knowledge(max_parents=...)."
        )
    return weights


def make_prior(prior: object) -> Prior:
    """A prior by its name, with default parameters, or the prior itself; anything else is refused."""
    if not isinstance(prior, str):
        if isinstance(prior, Prior):
            return prior
        raise ScoreError(f"prior must be one of {', '.join(PRIORS)} or a prior object, not {prior!r}.")
    if prior not in PRIORS:
        raise ScoreError(f"There is no prior {prior!r}: {instead(prior, PRIORS)}.")
    return PRIORS[prior]()
