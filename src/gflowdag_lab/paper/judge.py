"""How far a posterior is from the truth (recovery) and from the exact posterior (fidelity), as flat rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from gflowdag import metrics
from gflowdag.posterior import Posterior, reordered
from gflowdag_lab.model import PRIOR, paper_score
from gflowdag_lab.paper.problems import Problem

NUM_BOOTSTRAPS = 1000


def recovery(posterior: Posterior, truth: pd.DataFrame | np.ndarray) -> dict[str, float]:
    """Expected edges, expected SHD and AUROC.

    AUROC counts the diagonal, as the published values do. The plain columns come from the weighted samples,
    `marginal_*` from the method's best edge probabilities (exact or Rao–Blackwellised where it has them),
    `unweighted_*` from the samples without their importance weights.

    Args:
        posterior: what is judged.
        truth: the true graph; an array is taken in the order of the posterior's variables.
    """
    true = metrics.align(truth, posterior.names)
    beliefs = {
        "": np.tensordot(posterior.weights, posterior.samples, axes=1),
        "marginal_": posterior.edge_probabilities().to_numpy(),
        "unweighted_": posterior.samples.mean(axis=0),
    }
    row: dict[str, float] = {}
    for kind, probability in beliefs.items():
        row[f"{kind}e_edges"] = metrics.expected_edges(probability)
        row[f"{kind}e_shd"] = metrics.expected_shd(probability, true)
        row[f"{kind}auroc"] = metrics.auroc(probability, true, diagonal=True)
    row["unseen_pairs"] = int((~posterior.samples.any(axis=0)).sum()) - posterior.num_variables
    row["auroc_off_diagonal"] = metrics.auroc(beliefs["marginal_"], true)
    row["auprc"] = metrics.auprc(beliefs["marginal_"], true)
    return row


def bootstrap_intervals(posterior: Posterior, truth: pd.DataFrame | np.ndarray) -> dict[str, float]:
    """95 % intervals of what `recovery` estimates from the samples, by resampling them.

    Samples are taken as independent, as in the paper; for a Markov chain the intervals are too narrow.
    """
    true = metrics.align(truth, posterior.names)
    n, d = posterior.num_samples, posterior.num_variables
    counts = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=NUM_BOOTSTRAPS)
    weights = counts * posterior.weights
    weights = weights[weights.sum(axis=1) > 0]
    weights /= weights.sum(axis=1, keepdims=True)
    probabilities = (weights @ posterior.samples.reshape(n, d * d).astype(np.float64)).reshape(-1, d, d)
    measures = {
        "e_edges": probabilities.sum(axis=(1, 2)),
        "e_shd": np.array([metrics.expected_shd(p, true) for p in probabilities]),
        "auroc": np.array([metrics.auroc(p, true, diagonal=True) for p in probabilities]),
    }
    ends = {"low": 0.025, "high": 0.975}
    return {
        f"{name}_{end}": float(np.quantile(values, q))
        for name, values in measures.items()
        for end, q in ends.items()
    }


def fidelity(posterior: Posterior, reference: Posterior) -> dict[str, float]:
    """Distance to a reference posterior: correlations and largest errors of edge and path probabilities."""
    edges, paths = posterior.edge_probabilities(), posterior.path_probabilities()
    unweighted = posterior.edge_probabilities(weighted=False)
    row = {
        "edge_r": metrics.feature_correlation(edges, reference.edge_probabilities()),
        "edge_max_error": metrics.max_error(edges, reference.edge_probabilities()),
        "edge_mean_error": mean_error(edges, reference.edge_probabilities()),
        "unweighted_edge_r": metrics.feature_correlation(unweighted, reference.edge_probabilities()),
        "unweighted_edge_max_error": metrics.max_error(unweighted, reference.edge_probabilities()),
        "path_r": metrics.feature_correlation(paths, reference.path_probabilities()),
        "path_max_error": metrics.max_error(paths, reference.path_probabilities()),
    }
    if posterior.log_evidence is not None and reference.log_evidence is not None:
        row["evidence_error"] = posterior.log_evidence - reference.log_evidence
    return row


def mean_error(first: pd.DataFrame, second: pd.DataFrame) -> float:
    """Mean absolute difference between probabilities of edges, the diagonal left out."""
    between = ~np.eye(len(first), dtype=bool)
    difference = first.to_numpy() - reordered(second, list(first.index))
    return float(np.abs(difference[between]).mean())


def sampled(posterior: Posterior) -> Posterior:
    """The same weighted samples without better marginals, so that methods with and without them compare."""
    return replace(posterior, marginals=None, path_marginals=None)


def log_joint_held_out(problem: Problem, posterior: Posterior, prior: str = PRIOR) -> np.ndarray:
    """`log P(G, D, D')` of each sample, equally weighted [n]."""
    if np.ptp(posterior.log_weights) > 0:
        posterior = posterior.resample(posterior.num_samples, random_state=0)
    return log_joint_of_graphs(problem, posterior.samples, prior)


def log_joint_of_graphs(problem: Problem, graphs: np.ndarray, prior: str = PRIOR) -> np.ndarray:
    """`log P(G, D, D')` of each graph, bool [n, d, d] to float64 [n]."""
    data = problem.data
    assert problem.held_out is not None
    score = paper_score(data, prior=prior)
    score_all = paper_score(data.concatenate(data.like(problem.held_out)), prior=prior)
    return metrics.held_out(score, score_all, graphs, log_evidence=0.0)


def misaligned(truth: pd.DataFrame) -> np.ndarray:
    """The true graph with its variables in alphabetical order, to be read as if in the data's order.

    The wrong way on purpose: this is what comes out when a graph from one file and samples from another are
    compared by position.
    """
    order = sorted(truth.index)
    return truth.loc[order, order].to_numpy(bool)


def random_orders(posterior: Posterior, truth: pd.DataFrame, num_orders: int = 1000) -> dict[str, float]:
    """E-SHD and AUROC of the marginals when the true graph's variables are put in random wrong orders."""
    rng = np.random.default_rng(0)
    true = metrics.align(truth, posterior.names)
    probability = posterior.edge_probabilities().to_numpy()
    orders = [rng.permutation(len(true)) for _ in range(num_orders)]
    shuffled = [true[np.ix_(order, order)] for order in orders]
    measures = {
        "e_shd": np.array([metrics.expected_shd(probability, graph) for graph in shuffled]),
        "auroc": np.array([metrics.auroc(probability, graph, diagonal=True) for graph in shuffled]),
    }
    return {
        f"{name}_{end}": float(function(values))
        for name, values in measures.items()
        for end, function in (("mean", np.mean), ("sd", np.std), ("min", np.min), ("max", np.max))
    }


def exact_by_enumeration(problem: Problem) -> Posterior:
    """The exact posterior as the weighted list of all DAGs, for five variables or fewer."""
    from gflowdag.graph import all_dags

    graphs = all_dags(problem.data.num_variables)
    log_scores = paper_score(problem.data).log_score(graphs)
    listed = Posterior(graphs, problem.data.names, "exact", log_weights=log_scores, log_scores=log_scores)
    return replace(  # summed once, since these are asked for again and again
        listed,
        marginals=listed.edge_probabilities().to_numpy(),
        path_marginals=listed.path_probabilities().to_numpy(),
    )
