"""Probabilities of features from weighted samples, and their Monte-Carlo errors.

What an edge decides is left to the edge probabilities, which are often known better than by counting samples:
of two adjacent variables the first has a path to the second or not, as the edge points. Only graphs in which
they are not adjacent are counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gflowdag.graph.features import markov_blanket_features, path_features

if TYPE_CHECKING:
    from gflowdag.posterior.posterior import Posterior

ROUNDING = 1e-9  # probabilities that differ by less are the same: two directions of ½ each are a tie


def edges(posterior: Posterior, weighted: bool) -> np.ndarray:
    """Probability of each edge [d, d]."""
    if weighted and posterior.marginals is not None:
        return posterior.marginals
    return _mean(posterior, posterior.samples, weighted)


def paths(posterior: Posterior, weighted: bool) -> np.ndarray:
    """Probability of each directed path [d, d]."""
    if weighted and posterior.path_marginals is not None:
        return posterior.path_marginals
    p = edges(posterior, weighted)
    return p + _apart(p) * _given_apart(posterior, path_features(posterior.samples), weighted)


def markov_blankets(posterior: Posterior, weighted: bool) -> np.ndarray:
    """Probability of each membership in a Markov blanket [d, d]."""
    apart = _apart(edges(posterior, weighted))
    blankets = markov_blanket_features(posterior.samples)
    return 1 - apart + apart * _given_apart(posterior, blankets, weighted)


def standard_errors(posterior: Posterior, features: np.ndarray, weighted: bool) -> np.ndarray:
    """Standard error of the mean of per-sample `features` [n, ...]."""
    w = posterior.weights if weighted else np.full(posterior.num_samples, 1 / posterior.num_samples)
    mean, widened = np.tensordot(w, features, axes=1), samples_for_one(posterior)
    if features.dtype != bool:
        return np.sqrt(np.tensordot(w**2, np.square(features - mean), axes=1) * widened)
    squares = np.tensordot(w**2, features, axes=1)  # of a bool the square is itself
    spread = squares * (1 - 2 * mean) + mean**2 * np.square(w).sum()
    error = np.sqrt(np.maximum(spread, 0.0) * widened)
    return np.maximum(error, _add_half(1 / (widened * np.square(w).sum())))


def edge_errors(posterior: Posterior) -> np.ndarray:
    """Standard error of each edge probability [d, d]; zero where they are exact."""
    if posterior.diagnosis.verdict == "exact":
        return np.zeros((posterior.num_variables, posterior.num_variables))
    if posterior.diagnosis.edge_errors is not None:
        return posterior.diagnosis.edge_errors
    return _off_diagonal(standard_errors(posterior, posterior.samples, True))


def path_errors(posterior: Posterior) -> np.ndarray:
    """Standard error of each path probability [d, d]; zero where they are exact."""
    if posterior.path_marginals is not None:
        return np.zeros((posterior.num_variables, posterior.num_variables))
    features = path_features(posterior.samples)
    if posterior.marginals is None:
        return _off_diagonal(standard_errors(posterior, features, True))
    beyond = _given_apart(posterior, features, True)
    known = _error_of_directions(posterior, 1 - beyond, -beyond)
    return np.hypot(known, _errors_apart(posterior, features, beyond))


def markov_blanket_errors(posterior: Posterior) -> np.ndarray:
    """Standard error of each probability of a Markov blanket [d, d]."""
    features = markov_blanket_features(posterior.samples)
    if posterior.marginals is None:
        return _off_diagonal(standard_errors(posterior, features, True))
    beyond = _given_apart(posterior, features, True)
    known = _error_of_directions(posterior, 1 - beyond, 1 - beyond)
    return np.hypot(known, _errors_apart(posterior, features, beyond))


def samples_for_one(posterior: Posterior) -> float:
    """How many samples count as one independent one, by the diagnostics; 1 or more."""
    independent = posterior.diagnosis.independent_samples
    if independent is None:
        independent = posterior.diagnosis.effective_samples
    return max(1.0, posterior.num_samples / independent) if independent else 1.0  # 1 also where it is NaN


def _mean(posterior: Posterior, features: np.ndarray, weighted: bool) -> np.ndarray:
    if not weighted or np.ptp(posterior.log_weights) == 0:
        return features.mean(axis=0)
    return np.clip(np.tensordot(posterior.weights, features, axes=1), 0, 1)


def _not_adjacent(posterior: Posterior) -> np.ndarray:
    """Whether two variables have no edge between them, in each sample [n, d, d]."""
    return ~(posterior.samples | posterior.samples.transpose(0, 2, 1))


def _given_apart(posterior: Posterior, features: np.ndarray, weighted: bool) -> np.ndarray:
    """Mean of `features` [n, d, d] over the samples in which the two variables are not adjacent."""
    apart = _not_adjacent(posterior)
    mass = _mean(posterior, apart, weighted)
    share = _mean(posterior, apart & features, weighted)
    return np.divide(share, mass, out=np.zeros_like(mass), where=mass > 0)


def _error_of_directions(posterior: Posterior, there: np.ndarray, back: np.ndarray) -> np.ndarray:
    """Standard error of `there · p + back · pᵀ` [d, d], for edge probabilities `p` that were estimated.

    A graph has an edge in one direction at most, so the two are correlated as events that exclude each other
    are.
    """
    p, error = edges(posterior, True), edge_errors(posterior)
    odds = p / np.maximum(1 - p, ROUNDING)
    correlation = -np.sqrt(np.minimum(odds * odds.T, 1))
    first, second = there * error, back * error.T
    return np.sqrt(np.maximum(first**2 + second**2 + 2 * correlation * first * second, 0))


def _errors_apart(posterior: Posterior, features: np.ndarray, given_apart: np.ndarray) -> np.ndarray:
    """What the error of `given_apart` contributes to that of a probability [d, d]."""
    apart = _not_adjacent(posterior)
    w, widened = posterior.weights, samples_for_one(posterior)
    mass = _mean(posterior, apart, True)
    deviation = np.tensordot(w**2, np.square(np.where(apart, features - given_apart, 0.0)), axes=1)
    error = np.sqrt(np.divide(deviation * widened, mass**2, out=np.zeros_like(mass), where=mass > 0))
    number = mass / (widened * np.square(w).sum())
    return _off_diagonal(_apart(edges(posterior, True)) * np.maximum(error, _add_half(number)))


def _off_diagonal(values: np.ndarray) -> np.ndarray:
    """`values` [d, d] with zeros on the diagonal: no variable is its own cause."""
    return np.where(np.eye(len(values), dtype=bool), 0.0, values)


def _apart(p: np.ndarray) -> np.ndarray:
    """Probability that two variables are not adjacent [d, d], by the probabilities of their edges."""
    return np.clip(1 - p - p.T, 0, 1)


def _add_half(number: np.ndarray | float) -> np.ndarray:
    """Standard error of a proportion of `number` samples that all agree, after adding half a count."""
    number = np.asarray(number)
    share = 0.5 / (number + 1)
    return np.sqrt(share * (1 - share) / np.maximum(number, 1))
