"""Effects in linear networks: the sum over directed paths of the products of drawn coefficients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gflowdag.graph.bits import graph_keys
from gflowdag.graph.closure import transitive_closure
from gflowdag.graph.order import topological_order
from gflowdag.posterior.effect import EffectDraws, LinearEffect
from gflowdag.posterior.effect_cases import any_effect, column_of, graph_cases, scaled
from gflowdag.posterior.effect_scale import EffectScale, read_all
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.sample_parameters import SampleParameters
from gflowdag.score.conjugate import GaussianParameters


def linear_effect(
    posterior: Posterior,
    parameters: SampleParameters,
    cause: str,
    outcome: str,
    num_draws: int,
    rng: np.random.Generator,
) -> LinearEffect:
    """The posterior of the sum over directed paths of the products of coefficients."""
    i, j = posterior.names.index(cause), posterior.names.index(outcome)
    known = any_effect(posterior, cause, outcome)
    scale = EffectScale(column_of(posterior, cause), column_of(posterior, outcome))
    values, weights = [np.zeros(0)], [np.zeros(0)]
    mean_of_sample, noise = np.full(posterior.num_samples, scale.none), 0.0
    for case in graph_cases(posterior, parameters.of_sample, i, j, num_draws, whole_past=False):
        if case.present:
            own = _gaussian(parameters, case.table)
            drawn = scale.read(path_products(own, case.graph, i, j, case.num_draws, rng))
            values.append(drawn)
            weights.append(np.full(case.num_draws, case.weight / case.num_draws))
            mean_of_sample[case.members] = drawn.mean()
            noise += case.weight**2 * drawn.var() / case.num_draws
    weight = scaled(np.concatenate(weights), known.probability)
    return LinearEffect(
        **vars(known),
        draws=EffectDraws(np.concatenate(values), weight, scale.none),
        meaning=scale.meaning,
        mean_error=float(np.hypot(posterior.standard_errors(mean_of_sample), np.sqrt(noise))),
    )


def _gaussian(parameters: SampleParameters, table: int) -> GaussianParameters:
    found = parameters.of(table)
    assert isinstance(found, GaussianParameters)
    return found


def path_products(
    parameters: GaussianParameters,
    graph: NDArray[np.bool_],
    i: int,
    j: int,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """The sum over directed paths from i to j of the products of coefficients, [size]."""
    total = {i: np.ones(size)}
    for node in topological_order(graph).tolist():
        between = graph[:, node] if node != i else np.zeros(len(graph), dtype=bool)
        parents = np.flatnonzero(between).tolist()
        if parents:
            coefficients = parameters.draw_coefficients(node, parents, size, rng)
            zero = np.zeros(size)
            total[node] = sum(
                (coefficients[:, place] * total.get(parent, zero) for place, parent in enumerate(parents)),
                zero,
            )
    return total[j]


def linear_means(
    posterior: Posterior, parameters: SampleParameters, num_draws: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The mean effect of every variable on every other, as `linear_effect` reads it, [d, d]."""
    d = posterior.num_variables
    columns = [column_of(posterior, name) for name in posterior.names]
    none = read_all(columns, np.zeros((d, d)))
    _, of_graph = np.unique(graph_keys(posterior.samples), return_inverse=True)
    pairs = np.column_stack([of_graph.reshape(-1), parameters.of_sample])
    _, first, inverse = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    mass = np.bincount(inverse.reshape(-1), weights=posterior.weights)
    means, share = np.zeros((d, d)), np.zeros((d, d))  # of what differs from no effect
    for sample, weight in zip(first, mass, strict=True):
        graph, own = posterior.samples[sample], _gaussian(parameters, int(parameters.of_sample[sample]))
        size = max(round(num_draws * weight), 1)
        effects = np.zeros((size, d, d))  # of every variable on every other, itself included
        for node in topological_order(graph).tolist():
            parents = np.flatnonzero(graph[:, node]).tolist()
            coefficients = own.draw_coefficients(node, parents, size, rng)
            effects[:, :, node] = np.einsum("msp,mp->ms", effects[:, :, parents], coefficients)
            effects[:, node, node] = 1.0
        means += weight * (read_all(columns, effects).mean(axis=0) - none)
        share += weight * transitive_closure(graph)
    known = posterior.path_probabilities().to_numpy()  # may be known without sampling, as for one effect
    means = none + np.divide(means * known, share, out=np.zeros((d, d)), where=share > 0)
    np.fill_diagonal(means, 0.0)
    return means
