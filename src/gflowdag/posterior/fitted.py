"""One graph of a posterior with posterior means of its parameters: a network that can be run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gflowdag.data.networks import DiscreteNetwork, LinearGaussianNetwork
from gflowdag.errors import ScoreError
from gflowdag.posterior.network_effects import conjugate_parameters
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.place import option
from gflowdag.score.conjugate import DiscreteParameters, GaussianParameters


def fitted_network(posterior: Posterior, k: int | None) -> DiscreteNetwork | LinearGaussianNetwork:
    """See `Posterior.fitted_network`."""
    parameters = conjugate_parameters(posterior, "A network with fitted parameters")
    graph = posterior.map_graph().to_numpy() if k is None else posterior.samples[k]
    if isinstance(parameters, DiscreteParameters):
        return _discrete(posterior, parameters, graph)
    return _gaussian(posterior, parameters, graph)


def _discrete(
    posterior: Posterior, parameters: DiscreteParameters, graph: NDArray[np.bool_]
) -> DiscreteNetwork:
    parents = tuple(tuple(np.flatnonzero(column).tolist()) for column in graph.T)
    columns = None if posterior.table is None else posterior.table.columns
    levels = tuple(
        tuple(range(int(r))) if columns is None else columns[node].levels or ()
        for node, r in enumerate(parameters.cardinalities)
    )
    tables = tuple(parameters.mean_table(node, chosen) for node, chosen in enumerate(parents))
    return DiscreteNetwork(tuple(posterior.names), levels, parents, tables)


def _gaussian(
    posterior: Posterior, parameters: GaussianParameters, graph: NDArray[np.bool_]
) -> LinearGaussianNetwork:
    """In the units of the table (of the logarithm, of a column that was transformed)."""
    scaling = [] if posterior.table is None else [column.scaling for column in posterior.table.columns]
    ranked = [] if posterior.table is None else [c.name for c in posterior.table.columns if c.scores]
    if ranked:
        raise ScoreError(
            f"{', '.join(ranked)} were taken as ranks: a linear network has no parameters in their units."
        )
    known = [pair for pair in scaling if pair is not None]
    if len(known) < posterior.num_variables:
        raise ScoreError(
            "The intercepts of a linear network need the means of its columns, which this posterior does not "
            f"hold: fit with {option('standardize', True)}, or estimate them from the table."
        )
    mean, deviation = np.array(known).T
    d = posterior.num_variables
    weights, variances = np.zeros((d, d)), np.zeros(d)
    for node in range(d):
        parents = np.flatnonzero(graph[:, node]).tolist()
        coefficients, variance = parameters.mean_regression(node, parents)
        weights[parents, node] = coefficients * deviation[node] / deviation[parents]
        variances[node] = variance * deviation[node] ** 2
    intercepts = mean - mean @ weights
    return LinearGaussianNetwork(tuple(posterior.names), graph.copy(), weights, intercepts, variances)
