"""The PC algorithm (Spirtes & Glymour 1991; stable as of Colombo & Maathuis 2014), by causal-learn."""

from __future__ import annotations

import numpy as np

from gflowdag.baselines.causal_learn import edge_matrix, import_causal_learn


def search(
    values: np.ndarray, *, discrete: bool, alpha: float, required: np.ndarray, forbidden: np.ndarray
) -> np.ndarray:
    """The partly directed graph that PC finds; conflicting tests can make it the CPDAG of no DAG.

    Args:
        values: observations, float64 [n, d]; codes 0 … r−1 where discrete.
        discrete: χ² tests instead of Fisher's z.
        alpha: significance level of the tests.
        required: edges that are known, bool [d, d], rows are sources.
        forbidden: edges that are known to be absent, bool [d, d].

    Returns:
        bool [d, d], both entries set for an undirected or bidirected edge.
    """
    pc = import_causal_learn("search.ConstraintBased.PC").pc
    knowledge = _background_knowledge(required, forbidden)
    test, values = ("chisq", values.astype(int)) if discrete else ("fisherz", values)
    found = pc(values, alpha=alpha, indep_test=test, background_knowledge=knowledge, show_progress=False)
    return edge_matrix(found.G.graph)


def _background_knowledge(required: np.ndarray, forbidden: np.ndarray) -> object | None:
    forbidden = forbidden & ~np.eye(len(forbidden), dtype=bool)
    if not required.any() and not forbidden.any():
        return None
    node = import_causal_learn("graph.GraphNode").GraphNode
    knowledge = import_causal_learn("utils.PCUtils.BackgroundKnowledge").BackgroundKnowledge()
    nodes = [node(f"X{index + 1}") for index in range(len(required))]  # the names that causal-learn gives
    for i, j in np.argwhere(required):
        knowledge.add_required_by_node(nodes[i], nodes[j])
    for i, j in np.argwhere(forbidden):
        knowledge.add_forbidden_by_node(nodes[i], nodes[j])
    return knowledge
