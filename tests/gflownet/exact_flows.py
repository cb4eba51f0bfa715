"""The exact flows of a small edge-wise state space, by enumeration: what every objective should find."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from gflowdag.data import Dataset, Knowledge
from gflowdag.data.simulate import linear_gaussian
from gflowdag.gflownet.spaces import NEVER
from gflowdag.gflownet.spaces.edges import EdgeSpace, edge_decision, edge_space, uniform_removals
from gflowdag.graph.enumeration import all_dags
from gflowdag.score import Score, make_score


class TabularPolicy(eqx.Module):
    """A policy that looks its answer up by the graph."""

    log_stop: jnp.ndarray  # float32 [2^(d²)]
    log_edges: jnp.ndarray  # float32 [2^(d²), d, d]

    def __call__(self, observation):
        d = observation.adjacency.shape[0]
        code = (observation.adjacency.reshape(-1) * (1 << jnp.arange(d * d, dtype=jnp.int32))).sum()
        return edge_decision(
            self.log_stop[code], self.log_edges[code], uniform_removals(observation.removable)
        )


def problem(d: int = 3, knowledge: Knowledge | None = None, num_rows: int = 50) -> tuple[Score, EdgeSpace]:
    """A small linear-Gaussian problem."""
    frame = linear_gaussian(d, num_rows, random_state=0).frame
    data = Dataset.from_frame(frame, standardize=True, knowledge=knowledge)
    score = make_score(data, prior="uniform", knowledge=knowledge)
    return score, edge_space(score)


def posterior(score: Score) -> tuple[np.ndarray, np.ndarray, float]:
    """All DAGs, their probabilities and the log evidence."""
    graphs = all_dags(score.num_variables)
    log_scores = score.log_score(graphs)
    log_evidence = float(np.logaddexp.reduce(log_scores))
    return graphs, np.exp(log_scores - log_evidence), log_evidence


def exact_policy(score: Score) -> TabularPolicy:
    """`P(stop | G) = R(G) / F(G)` and `P(G' | G) = F(G') P_B(G | G') / F(G)`, flows summed backwards."""
    graphs, probabilities, _ = posterior(score)
    d = score.num_variables
    required = score.constraints.required
    flow = {code(graph): p for graph, p in zip(graphs, probabilities, strict=True) if p > 0}
    log_stop = np.zeros(2 ** (d * d), np.float32)
    log_edges = np.full((2 ** (d * d), d, d), NEVER, np.float32)
    by_size = sorted((g for g, p in zip(graphs, probabilities, strict=True) if p > 0), key=lambda g: -g.sum())
    for graph in by_size:
        reward = flow[code(graph)]
        outgoing = {}
        for source, target in np.argwhere(~graph):
            child = graph.copy()
            child[source, target] = True
            if code(child) in flow:
                outgoing[source, target] = flow[code(child)] / (child.sum() - required.sum())
        total = reward + sum(outgoing.values())
        flow[code(graph)] = total
        log_stop[code(graph)] = np.log(reward / total)
        for edge, value in outgoing.items():
            log_edges[code(graph)][edge] = np.log(value / total)
    return TabularPolicy(jnp.asarray(log_stop), jnp.asarray(log_edges))


def code(graph: np.ndarray) -> int:
    return int(graph.reshape(-1) @ (1 << np.arange(graph.size)))
