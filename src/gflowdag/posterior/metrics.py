"""How good a posterior is: recovery (its distance to a true graph) and fidelity (to another posterior).

A low distance to the truth is no sign of a good approximation where the exact posterior itself is far from
it: report both. Graphs are matched by variable name, never by position, wherever names are known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import ArrayLike, NDArray
from scipy.special import rel_entr, softmax

from gflowdag.errors import DataError
from gflowdag.graph.bits import graph_keys
from gflowdag.graph.equivalence import class_size, cpdag
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.truth import Truth, align, is_array, read_edges, reordered, require_known

__all__ = [
    "align",
    "auprc",
    "auroc",
    "class_coverage",
    "expected_edges",
    "expected_shd",
    "feature_correlation",
    "held_out",
    "jsd",
    "max_error",
    "read_edges",
    "total_variation",
]

Belief: TypeAlias = Posterior | pd.DataFrame | np.ndarray
"""Probabilities of edges: of a posterior (the best estimate that it has), as a frame [source, target] or an
array [d, d], or as equally weighted graphs, bool [n, d, d]."""


# -- recovery: against the true graph ------------------------------------------------------------------------


def expected_edges(belief: Belief) -> float:
    """Expected number of edges."""
    probability, _ = _edge_probabilities(belief)
    return float(probability.sum())


def expected_shd(belief: Belief, truth: Truth) -> float:
    """Expected structural Hamming distance to the true graph; a reversed edge counts once.

    A pair of variables is at distance one unless it is connected as in the truth, so the expectation depends
    on the edge probabilities alone, and exact ones give it without sampling noise.
    """
    probability, true = _belief_and_truth(belief, truth)
    absent = 1 - probability - probability.T
    right = np.select([true & ~true.T, ~true & true.T, ~true & ~true.T], [probability, probability.T, absent])
    return float(np.triu(1 - right, 1).sum())


def auroc(belief: Belief, truth: Truth, *, diagonal: bool = False) -> float:
    """Area under the ROC curve of the edge probabilities; ties count half.

    Args:
        belief: edge probabilities.
        truth: the true graph.
        diagonal: count the d impossible edges `i -> i` among the negatives, which flatters every method, as
            the values in the literature of DAG-GFlowNet do.

    Returns:
        The probability that a true edge is rated higher than a false one; NaN if there is none of either.
    """
    probability, true = labelled_edges(belief, truth, diagonal)
    if true.all() or not true.any():
        return float("nan")
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(true, probability))


def auprc(belief: Belief, truth: Truth, *, diagonal: bool = False) -> float:
    """Area under the precision–recall curve (average precision) of the edge probabilities.

    Args:
        belief: edge probabilities.
        truth: the true graph.
        diagonal: count the impossible edges `i -> i` among the negatives.

    Returns:
        The sum of precision × gain in recall over all thresholds; NaN if there is no true edge.
    """
    probability, true = labelled_edges(belief, truth, diagonal)
    if not true.any():
        return float("nan")
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(true, probability))


def held_out(score_train: Any, score_all: Any, graphs: ArrayLike, log_evidence: float) -> NDArray[np.float64]:
    """Joint log-probability of each graph and new data, `log P(G, D' | D)`.

    It is `log P(D' | G, D) + log P(G | D)`: the gain in log marginal likelihood by the new rows, without the
    prior, plus the log posterior.

    Args:
        score_train: score on the training data D.
        score_all: the same score, with the same hyper-parameters, on the training and the new rows together;
            the new rows are standardised by the means and deviations of the training rows.
        graphs: bool [n, d, d].
        log_evidence: log of the sum of `exp(score_train)` over all graphs, one value for all methods that
            are compared.

    Returns:
        float64 [n].
    """
    predictive = score_all.log_likelihood(graphs) - score_train.log_likelihood(graphs)
    return predictive + score_train.log_score(graphs) - log_evidence


# -- fidelity: against another posterior ---------------------------------------------------------------------


def jsd(first: Posterior | ArrayLike, second: Posterior | ArrayLike) -> float:
    """Jensen–Shannon divergence between two distributions over graphs, in nats: 0 (equal) to log 2.

    Args:
        first: a posterior, or log probabilities [n] (normalised here).
        second: a posterior, or log probabilities [n] of the same graphs in the same order.
    """
    p, q = _distributions(first, second)
    middle = (p + q) / 2
    return float((rel_entr(p, middle) + rel_entr(q, middle)).sum() / 2)


def total_variation(first: Posterior | ArrayLike, second: Posterior | ArrayLike) -> float:
    """Total variation distance between two distributions over graphs, 0 to 1; arguments as for `jsd`."""
    p, q = _distributions(first, second)
    return float(np.abs(p - q).sum() / 2)


def feature_correlation(first: Belief, second: Belief) -> float:
    """Pearson correlation between the probabilities of features (edges, paths, Markov blankets).

    NaN where all probabilities of one side are the same, as those of a method that finds no edge are.

    Args:
        first: a posterior, for its edges, or probabilities [..., d, d] of any feature. The diagonal is left
            out.
        second: the same features.
    """
    p, q = _feature_pairs(first, second)
    if np.ptp(p) == 0 or np.ptp(q) == 0:
        return float("nan")
    return float(np.corrcoef(p, q)[0, 1])


def max_error(first: Belief, second: Belief) -> float:
    """Largest difference between the probabilities of features; arguments as for `feature_correlation`."""
    p, q = _feature_pairs(first, second)
    return float(np.abs(p - q).max(initial=0.0))


def class_coverage(posterior: Posterior, log_scores: ArrayLike | None = None) -> pd.DataFrame:
    """The Markov equivalence classes that were sampled, most probable first (paper, figures 5 and 6).

    Args:
        posterior: samples of graphs.
        log_scores: log score of each sample [n]; those of the posterior by default.

    Returns:
        One row for each class: `probability` (its share of the weight), `log_score` (of its best sampled
        member; all score alike under a score-equivalent score), `num_graphs` (distinct members sampled) and
        `class_size` (all members).
    """
    if log_scores is not None:
        posterior = replace(posterior, log_scores=np.asarray(log_scores, dtype=np.float64))
    classes = posterior.equivalence_classes(top=None)
    representatives = cpdag(posterior.samples[classes["sample"]])
    sizes = pd.Series([class_size(graph) for graph in representatives], dtype=object)  # may exceed int64
    table = pd.DataFrame(classes, columns=["probability", "log_score", "num_graphs"])
    table["class_size"] = sizes
    return table


# -- details -------------------------------------------------------------------------------------------------


def _edge_probabilities(belief: Belief) -> tuple[NDArray[np.float64], list[str] | None]:
    """Edge probabilities [d, d] and the names of the variables, if known."""
    if isinstance(belief, Posterior):
        belief = belief.edge_probabilities()
    if isinstance(belief, pd.DataFrame):
        names = [str(name) for name in belief.index]
        return reordered(belief, names).astype(np.float64), names
    probability = np.asarray(belief, dtype=np.float64)
    return (probability.mean(axis=0) if probability.ndim == 3 else probability), None


def _belief_and_truth(belief: Belief, truth: Truth) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Edge probabilities and the true graph in one order of the variables, both [d, d]."""
    probability, names = _edge_probabilities(belief)
    if names is None:
        if not is_array(truth):
            raise DataError("graphs without names can only be compared with an array in the same order")
        names = [str(i) for i in range(len(probability))]
    return probability, align(truth, names)


def labelled_edges(
    belief: Belief, truth: Truth, diagonal: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Probability and truth of every possible edge, flat.

    Probabilities that agree to ten digits are made equal: the two directions of a reversible edge often
    differ by rounding alone, and a tie must not be broken by it.
    """
    probability, true = _belief_and_truth(belief, truth)
    if np.isnan(probability).any():
        raise DataError("some edge probabilities are NaN")
    counted = np.ones_like(true) if diagonal else ~np.eye(len(true), dtype=bool)
    mantissa, exponent = np.frexp(probability[counted])
    return np.ldexp(np.round(mantissa, 10), exponent), true[counted]


def _feature_pairs(first: Belief, second: Belief) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The off-diagonal entries of two arrays of probabilities in one order of the variables, flat."""
    p, q = (b.edge_probabilities() if isinstance(b, Posterior) else b for b in (first, second))
    if isinstance(p, pd.DataFrame) and isinstance(q, pd.DataFrame):
        q = reordered(q, [str(name) for name in p.index])
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    if p.shape != q.shape:
        raise DataError(f"probabilities of different shapes cannot be compared: {p.shape} and {q.shape}")
    between = ~np.eye(p.shape[-1], dtype=bool)
    return p[..., between].ravel(), q[..., between].ravel()


def _distributions(
    first: Posterior | ArrayLike, second: Posterior | ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Probabilities of the same graphs under both."""
    if isinstance(first, Posterior) and isinstance(second, Posterior):
        require_known(second.names, first.names)
        require_known(first.names, second.names)
        order = [second.names.index(name) for name in first.names]
        graphs = np.concatenate([first.samples, second.samples[:, order][:, :, order]])
        unique, which = np.unique(graph_keys(graphs), return_inverse=True)
        mass = np.zeros((2, len(unique)))
        np.add.at(mass[0], which[: first.num_samples], first.weights)
        np.add.at(mass[1], which[first.num_samples :], second.weights)
        return mass[0], mass[1]
    if isinstance(first, Posterior) or isinstance(second, Posterior):
        raise DataError("compare a posterior with a posterior, or log probabilities with log probabilities")
    p, q = softmax(np.asarray(first, dtype=np.float64)), softmax(np.asarray(second, dtype=np.float64))
    if p.shape != q.shape:
        raise DataError(f"these are distributions over {p.size} and {q.size} graphs")
    return p, q
