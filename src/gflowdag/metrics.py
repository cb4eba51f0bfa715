"""How good a posterior is: recovery (its distance to a true graph) and fidelity (to another posterior).

A low distance to the truth is no sign of a good approximation where the exact posterior itself is far from
it: report both. Graphs are matched by variable name, never by position, wherever names are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from gflowdag.errors import DataError, FileFormatError
from gflowdag.graph.bits import graph_keys
from gflowdag.graph.equivalence import class_size, cpdag

if TYPE_CHECKING:
    import networkx as nx

    from gflowdag.posterior import Posterior

    Belief: TypeAlias = "Posterior | pd.DataFrame | ArrayLike"
    """Probabilities of the edges: of a posterior (the best estimate that it has), as a frame [source, target]
    or array [d, d], or as equally weighted graphs [n, d, d]."""

    Truth: TypeAlias = "pd.DataFrame | nx.DiGraph | ArrayLike | Iterable[tuple[str, str]]"
    """A graph: 0/1 frame [source, target], frame with the columns source and target, networkx graph, edge
    list of names, or 0/1 array [d, d] in the order of the names."""


# -- the true graph ------------------------------------------------------------------------------------------


def align(truth: Truth, names: Sequence[str]) -> NDArray[np.bool_]:
    """The adjacency matrix of a graph in the order of `names`.

    Args:
        truth: the graph, in any of the forms of `Truth`. Variables that an edge list or a networkx graph does
            not mention have no edges; a frame [source, target] must hold all of them.
        names: variable names.

    Returns:
        bool [d, d], rows are sources.

    Raises:
        DataError: it names an unknown variable, lacks one, or is not a 0/1 matrix of the right shape.
    """
    names = [str(name) for name in names]
    if isinstance(truth, pd.DataFrame):
        if not {"source", "target"} <= set(truth.columns):
            return _binary(_reordered(truth, names))
        return _from_edges(zip(truth["source"], truth["target"], strict=True), names)
    if hasattr(truth, "edges"):  # networkx, without importing it
        if not truth.is_directed():
            raise DataError("the true graph is undirected; give a networkx.DiGraph")
        _known(truth.nodes, names)
        return _from_edges(((edge[0], edge[1]) for edge in truth.edges), names)
    if isinstance(truth, np.ndarray):
        if truth.shape != (len(names), len(names)):
            raise DataError(f"the true graph has shape {truth.shape}, but there are {len(names)} variables")
        return _binary(truth)
    return _from_edges(truth, names)


def read_edges(path: str | Path, names: Sequence[str]) -> NDArray[np.bool_]:
    """The graph of a CSV file with the columns `source` and `target`, in the order of `names`: bool [d, d]."""
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, skipinitialspace=True)
    except FileNotFoundError:
        raise FileFormatError(f"{path}: no such file") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path}: not a CSV file with the columns source,target ({error})") from None
    if not {"source", "target"} <= set(table.columns):
        found = ", ".join(map(str, table.columns))
        raise FileFormatError(f"{path}: needs the columns source,target; found {found}")
    return align(table, names)


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
            the figures in the literature of DAG-GFlowNet do.

    Returns:
        The probability that a true edge is believed more than a false one; NaN if there is none of either.
    """
    probability, true = _labelled(belief, truth, diagonal)
    positives, negatives = true.sum(), (~true).sum()
    if positives == 0 or negatives == 0:
        return float("nan")
    _, level, count = np.unique(probability, return_inverse=True, return_counts=True)
    mid_rank = np.cumsum(count) - (count - 1) / 2
    return float((mid_rank[level][true].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def auprc(belief: Belief, truth: Truth, *, diagonal: bool = False) -> float:
    """Area under the precision–recall curve (average precision) of the edge probabilities.

    Args:
        belief: edge probabilities.
        truth: the true graph.
        diagonal: count the impossible edges `i -> i` among the negatives.

    Returns:
        The sum of precision × gain in recall over all thresholds; NaN if there is no true edge.
    """
    probability, true = _labelled(belief, truth, diagonal)
    if not true.any():
        return float("nan")
    _, level, count = np.unique(-probability, return_inverse=True, return_counts=True)
    hits = np.bincount(level, weights=true)
    precision = np.cumsum(hits) / np.cumsum(count)
    return float(precision @ hits / true.sum())


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
    from scipy.special import rel_entr

    return float((rel_entr(p, middle) + rel_entr(q, middle)).sum() / 2)


def total_variation(first: Posterior | ArrayLike, second: Posterior | ArrayLike) -> float:
    """Total variation distance between two distributions over graphs, 0 to 1; arguments as for `jsd`."""
    p, q = _distributions(first, second)
    return float(np.abs(p - q).sum() / 2)


def feature_correlation(first: Belief, second: Belief) -> float:
    """Pearson correlation between the probabilities of features (edges, paths, Markov blankets).

    Args:
        first: a posterior, for its edges, or probabilities [..., d, d] of any feature. The diagonal is left
            out.
        second: the same features.
    """
    return float(np.corrcoef(*_feature_pairs(first, second))[0, 1])


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
        `class_size` (members that there are).
    """
    if log_scores is not None:
        posterior = replace(posterior, log_scores=np.asarray(log_scores, dtype=np.float64))
    classes = posterior.equivalence_classes(top=None)
    representatives = cpdag(posterior.samples[classes["sample"]])
    sizes = pd.Series([class_size(graph) for graph in representatives], dtype=object)  # may exceed int64
    return classes[["probability", "log_score", "num_graphs"]].assign(class_size=sizes)


# -- details -------------------------------------------------------------------------------------------------


def _known(found: Iterable[Any], names: Sequence[str]) -> None:
    unknown = sorted({str(name) for name in found} - set(names))
    if unknown:
        raise DataError(
            f"the true graph names unknown variables: {', '.join(unknown)}; known are {', '.join(names)}"
        )


def _from_edges(edges: Iterable[tuple[Any, Any]], names: Sequence[str]) -> NDArray[np.bool_]:
    pairs = []
    for edge in edges:
        if isinstance(edge, str) or len(edge) != 2:
            raise DataError(f"an edge is a pair (source, target) of names, got {edge!r}")
        pairs.append((str(edge[0]), str(edge[1])))
    _known((name for pair in pairs for name in pair), names)
    index = {name: i for i, name in enumerate(names)}
    graph = np.zeros((len(names), len(names)), dtype=bool)
    for source, target in pairs:
        graph[index[source], index[target]] = True
    return _binary(graph)


def _binary(matrix: ArrayLike) -> NDArray[np.bool_]:
    matrix = np.asarray(matrix)
    if not np.isin(matrix, (0, 1)).all():
        raise DataError("the true graph must be a matrix of zeros and ones, 1 at [source, target]")
    graph = matrix.astype(bool)
    if graph.diagonal().any():
        raise DataError("the true graph has an edge from a variable to itself")
    return graph


def _reordered(frame: pd.DataFrame, names: Sequence[str]) -> NDArray[Any]:
    """Values of a frame [source, target] in the order of `names`."""
    rows, columns = [[str(label) for label in axis] for axis in (frame.index, frame.columns)]
    _known((*rows, *columns), names)
    for labels, axis in ((rows, "rows"), (columns, "columns")):
        missing = sorted(set(names) - set(labels))
        if missing or len(labels) != len(names):
            problem = f"lack {', '.join(missing)}" if missing else "name a variable twice"
            raise DataError(f"the {axis} of the table [source, target] {problem}")
    row, column = [[labels.index(name) for name in names] for labels in (rows, columns)]
    return frame.to_numpy()[np.ix_(row, column)]


def _edge_probabilities(belief: Belief) -> tuple[NDArray[np.float64], list[str] | None]:
    """Edge probabilities [..., d, d] and the names of the variables, if known."""
    if hasattr(belief, "edge_probabilities"):
        belief = belief.edge_probabilities()
    if isinstance(belief, pd.DataFrame):
        names = [str(name) for name in belief.index]
        return np.asarray(_reordered(belief, names), dtype=np.float64), names
    probability = np.asarray(belief, dtype=np.float64)
    return (probability.mean(axis=0) if probability.ndim == 3 else probability), None


def _belief_and_truth(belief: Belief, truth: Truth) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Edge probabilities and the true graph in one order of the variables, both [d, d]."""
    probability, names = _edge_probabilities(belief)
    if names is None:
        if not isinstance(truth, np.ndarray):
            raise DataError("graphs without names can only be compared with an array in the same order")
        names = [str(i) for i in range(probability.shape[-1])]
    return probability, align(truth, names)


def _labelled(belief: Belief, truth: Truth, diagonal: bool) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Probability and truth of every possible edge, flat.

    Probabilities that agree to ten digits are made equal: the two directions of a reversible edge often
    differ by rounding alone, and a tie must not be broken by it.
    """
    probability, true = _belief_and_truth(belief, truth)
    counted = np.ones_like(true) if diagonal else ~np.eye(len(true), dtype=bool)
    mantissa, exponent = np.frexp(probability[counted])
    return np.ldexp(np.round(mantissa, 10), exponent), true[counted]


def _feature_pairs(first: Belief, second: Belief) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The off-diagonal entries of two arrays of probabilities in one order of the variables, flat."""
    p, q = [
        belief.edge_probabilities() if hasattr(belief, "edge_probabilities") else belief
        for belief in (first, second)
    ]
    if isinstance(p, pd.DataFrame) and isinstance(q, pd.DataFrame):
        q = _reordered(q, [str(name) for name in p.index])
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    if p.shape != q.shape:
        raise DataError(f"probabilities of different shapes cannot be compared: {p.shape} and {q.shape}")
    between = ~np.eye(p.shape[-1], dtype=bool)
    return p[..., between].ravel(), q[..., between].ravel()


def _distributions(first: Any, second: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Probabilities of the same graphs under both."""
    if hasattr(first, "samples") != hasattr(second, "samples"):
        raise DataError("compare a posterior with a posterior, or log probabilities with log probabilities")
    if not hasattr(first, "samples"):
        p, q = _normalised(first), _normalised(second)
        if p.shape != q.shape:
            raise DataError(f"these are distributions over {p.size} and {q.size} graphs")
        return p, q
    _known(second.names, first.names)
    order = [list(second.names).index(name) for name in first.names]
    graphs = np.concatenate([first.samples, second.samples[:, order][:, :, order]])
    unique, which = np.unique(graph_keys(graphs), return_inverse=True)
    n = len(first.samples)
    p = np.bincount(which[:n], weights=_normalised(first.log_weights), minlength=len(unique))
    q = np.bincount(which[n:], weights=_normalised(second.log_weights), minlength=len(unique))
    return p, q


def _normalised(log_probabilities: ArrayLike) -> NDArray[np.float64]:
    from scipy.special import softmax

    return softmax(np.asarray(log_probabilities, dtype=np.float64))
