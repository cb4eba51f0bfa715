"""Data from random networks whose graph is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gflowdag.data.mixed_network import random_mixed_network, table_of
from gflowdag.data.networks import DiscreteNetwork, LinearGaussianNetwork, Network
from gflowdag.errors import DataError
from gflowdag.graph.closure import is_acyclic
from gflowdag.graph.random import erdos_renyi, scale_free
from gflowdag.runtime.keywords import named_parameters
from gflowdag.runtime.messages import unknown_name
from gflowdag.runtime.randomness import generator

if TYPE_CHECKING:
    from gflowdag.score import Prior, UnboundScore

_MOST_VARIABLES = 100_000  # of a simulated table
RandomState = int | np.random.Generator | None


@dataclass(frozen=True, eq=False)
class Simulation:
    """Simulated data and where they come from."""

    frame: pd.DataFrame  # [n, d], observational rows first
    truth: pd.DataFrame  # bool [source, target]
    weights: pd.DataFrame | None  # float64 [source, target] of a linear-Gaussian network
    held_out: pd.DataFrame | None  # observational rows of the same network
    intervened: np.ndarray | None  # bool [n, d]: what was set from outside
    network: Network


@named_parameters
def linear_gaussian(
    num_variables: int = 10,
    num_rows: int = 100,
    *,
    graph: str | np.ndarray | pd.DataFrame = "erdos-renyi",
    edges_per_node: float = 1.0,
    expected_edges: float | None = None,
    weight_scale: float = 1.0,
    noise_variance: float = 0.01,
    held_out: int = 0,
    interventions: int | Mapping[str, int] | None = None,
    random_state: RandomState = None,
) -> Simulation:
    """Observations of a random linear-Gaussian network: `X_j = Σ_i β_ij X_i + ε_j`.

    The defaults are those of the DAG-GFlowNet paper: `β_ij ~ N(0, 1)`, noise of variance 0.01. Its graphs of
    20 and 50 variables have `edges_per_node=2`.

    Args:
        num_variables: number of variables d, named X1 … Xd.
        num_rows: number of observations.
        graph: `"erdos-renyi"`, `"scale-free"`, or the adjacency matrix of a DAG (a DataFrame has the names).
        edges_per_node: expected number of edges over d.
        expected_edges: expected number of edges, in place of `edges_per_node`.
        weight_scale: standard deviation of the weights.
        noise_variance: variance of every ε_j.
        held_out: number of further observations, for `Simulation.held_out`.
        interventions: further rows in which one variable is set to a draw from N(0, 1): this many for each
            variable, or by name.
        random_state: seed or generator.
    """
    if weight_scale <= 0 or noise_variance <= 0:
        raise DataError("weight_scale and noise_variance must be positive.")
    rng = generator(random_state)
    adjacency, names = _graph(graph, num_variables, edges_per_node, expected_edges, rng)
    weights = np.where(adjacency, rng.normal(0.0, weight_scale, adjacency.shape), 0.0)
    num_variables = len(names)
    network = LinearGaussianNetwork(
        names, adjacency, weights, np.zeros(num_variables), np.full(num_variables, float(noise_variance))
    )
    return _simulation(network, num_rows, held_out, interventions, rng)


@named_parameters
def discrete(
    num_variables: int = 10,
    num_rows: int = 1000,
    *,
    graph: str | np.ndarray | pd.DataFrame = "erdos-renyi",
    edges_per_node: float = 1.0,
    expected_edges: float | None = None,
    num_levels: int | Sequence[int] = 3,
    concentration: float = 1.0,
    held_out: int = 0,
    interventions: int | Mapping[str, int] | None = None,
    random_state: RandomState = None,
) -> Simulation:
    """Observations of a random discrete network; every row of every table is drawn from a Dirichlet.

    Args:
        num_variables: number of variables d, named X1 … Xd.
        num_rows: number of observations.
        graph: `"erdos-renyi"`, `"scale-free"`, or the adjacency matrix of a DAG (a DataFrame has the names).
        edges_per_node: expected number of edges over d.
        expected_edges: expected number of edges, in place of `edges_per_node`.
        num_levels: number of levels, of all variables or of each.
        concentration: of the Dirichlet; small values make nearly deterministic tables.
        held_out: number of further observations, for `Simulation.held_out`.
        interventions: further rows in which one variable is set to a level drawn uniformly: this many for
            each variable, or by name.
        random_state: seed or generator.
    """
    if concentration <= 0:
        raise DataError("concentration must be positive.")
    rng = generator(random_state)
    adjacency, names = _graph(graph, num_variables, edges_per_node, expected_edges, rng)
    cardinalities = np.broadcast_to(num_levels, len(names))
    if cardinalities.min() < 2:
        raise DataError("num_levels must be at least 2.")
    parents = tuple(tuple(np.flatnonzero(column).tolist()) for column in adjacency.T)
    if any(np.prod(cardinalities[list(of_node)], dtype=float) > 1e6 for of_node in parents):
        raise DataError(
            "A variable has more than a million combinations of parents; use fewer edges or levels."
        )
    tables = tuple(
        rng.dirichlet(np.full(levels, concentration), size=tuple(cardinalities[list(of_node)]))
        for levels, of_node in zip(cardinalities, parents, strict=True)
    )
    network = DiscreteNetwork(names, tuple(tuple(range(levels)) for levels in cardinalities), parents, tables)
    return _simulation(network, num_rows, held_out, interventions, rng)


@named_parameters
def mixed(
    num_variables: int = 10,
    num_rows: int = 1000,
    *,
    graph: str | np.ndarray | pd.DataFrame = "erdos-renyi",
    edges_per_node: float = 1.0,
    expected_edges: float | None = None,
    num_levels: Sequence[int] | None = None,
    weight_scale: float = 1.0,
    noise_variance: float = 0.25,
    held_out: int = 0,
    interventions: int | Mapping[str, int] | None = None,
    random_state: RandomState = None,
) -> Simulation:
    """Observations of a random network of continuous and discrete variables, with edges in all directions.

    A continuous variable is a linear regression with coefficients of its own in every cell of its discrete
    parents; a discrete one a multinomial logistic regression on its continuous parents, likewise.

    Args:
        num_variables: number of variables d, named X1 … Xd.
        num_rows: number of observations.
        graph: `"erdos-renyi"`, `"scale-free"`, or the adjacency matrix of a DAG (a DataFrame has the names).
        edges_per_node: expected number of edges over d.
        expected_edges: expected number of edges, in place of `edges_per_node`.
        num_levels: of each variable, 0 for a continuous one. None: half of the variables are discrete, drawn
            at random, with two or three levels.
        weight_scale: standard deviation of the coefficients of continuous parents.
        noise_variance: variance of continuous variables given their parents.
        held_out: number of further observations, for `Simulation.held_out`.
        interventions: further rows in which one variable is set, a number to a draw from N(0, 1), a level
            uniformly: this many for each variable, or by name.
        random_state: seed or generator.
    """
    if weight_scale <= 0 or noise_variance <= 0:
        raise DataError("weight_scale and noise_variance must be positive.")
    rng = generator(random_state)
    adjacency, names = _graph(graph, num_variables, edges_per_node, expected_edges, rng)
    if num_levels is None:
        levels = np.zeros(len(names), np.int64)
        chosen = rng.permutation(len(names))[: len(names) // 2]
        levels[chosen] = rng.integers(2, 4, size=len(chosen))
    else:
        levels = np.asarray(num_levels, np.int64)
    if levels.shape != (len(names),) or (levels < 0).any() or (levels == 1).any():
        raise DataError("num_levels must be one number for each variable: 0 (continuous), or 2 or more.")
    if np.where(adjacency, np.maximum(levels, 1)[:, None], 1.0).prod(axis=0).max(initial=1) > 1e5:
        raise DataError(
            "A variable has more than 100,000 combinations of discrete parents; use fewer edges or levels."
        )
    network = random_mixed_network(names, adjacency, levels, weight_scale, noise_variance, rng)
    return _simulation(network, num_rows, held_out, interventions, rng)


def from_prior(
    num_variables: int = 5,
    num_rows: int = 100,
    *,
    score: str | UnboundScore = "auto",
    prior: str | Prior = "fair",
    num_levels: int | Sequence[int] = 0,
    graph: np.ndarray | pd.DataFrame | None = None,
    held_out: int = 0,
    random_state: RandomState = None,
) -> Simulation:
    """Observations of a network whose graph and parameters are drawn from a score's own prior.

    Fitted with that score and prior, as they are (`standardize=False`), the probabilities of such tables are
    right: of the edges with probability 0.3, 30 % are there.

    Args:
        num_variables: number of variables d, named X1 … Xd.
        num_rows: number of observations.
        score: `"bge"`, `"bdeu"`, `"bde"`, `"conditional-gaussian"` or `"generalized-linear"`, or an object of
            theirs; `"auto"` takes the one that `fit` takes for such columns.
        prior: structure prior, by name or an object. A limit of the score on the cells of a family is a part
            of it.
        num_levels: of all variables or of each, 0 for a continuous one.
        graph: adjacency matrix of a DAG, in place of one drawn from the prior (a DataFrame has the names).
        held_out: number of further observations of the same network, for `Simulation.held_out`.
        random_state: seed or generator.
    """
    from gflowdag.score import make_prior, named_score
    from gflowdag.score.prior_draws import draw_graph, draw_table

    rng = generator(random_state)
    if graph is None:
        adjacency, names = None, _names(num_variables)
    else:
        adjacency, names = _graph(graph, num_variables, 0.0, None, rng)
    levels = np.asarray(num_levels, np.int64)
    if levels.shape not in ((), (len(names),)) or (levels < 0).any() or (levels == 1).any():
        raise DataError(
            "num_levels must be 0 (continuous) or 2 or more, one number or one for each variable."
        )
    levels = np.broadcast_to(levels, len(names))
    if num_rows < 0 or held_out < 0:
        raise DataError("Numbers of rows cannot be negative.")
    if score == "auto":
        score = "bdeu" if levels.all() else "generalized-linear" if levels.any() else "bge"
    model = named_score(score) if isinstance(score, str) else score
    if adjacency is None:
        adjacency = draw_graph(num_rows, levels, model, make_prior(prior), rng)
    network, values = draw_table(adjacency, num_rows, levels, model, rng)
    network = replace(network, names=names)
    return Simulation(
        frame=table_of(names, levels, values),
        truth=network.graph,
        weights=None,
        held_out=network.sample(held_out, rng) if held_out else None,
        intervened=None,
        network=network,
    )


def _names(num_variables: int) -> tuple[str, ...]:
    """X1, X2, …; a graph of more variables than `_MOST_VARIABLES` would fill any machine."""
    if num_variables > _MOST_VARIABLES:
        raise DataError(f"at most {_MOST_VARIABLES:,} variables can be simulated; ask for fewer.")
    return tuple(f"X{number}" for number in range(1, num_variables + 1))


def _graph(
    graph: Any,
    num_variables: int,
    edges_per_node: float,
    expected_edges: float | None,
    rng: np.random.Generator,
) -> tuple[np.ndarray, tuple[str, ...]]:
    """A DAG bool [d, d] and the names of its nodes."""
    names = _names(num_variables)
    if isinstance(graph, str):
        edges = edges_per_node * num_variables if expected_edges is None else expected_edges
        if graph == "erdos-renyi":
            return erdos_renyi(num_variables, edges, rng), names
        if graph == "scale-free":
            return scale_free(num_variables, max(1, round(edges / max(num_variables, 1))), rng), names
        raise DataError(f"graph must be 'erdos-renyi', 'scale-free' or an adjacency matrix; got {graph!r}.")
    if isinstance(graph, pd.DataFrame):
        names = tuple(map(str, graph.columns))
        if sorted(names) != sorted(map(str, graph.index)):
            raise DataError("The rows (sources) and columns (targets) of `graph` must have the same names.")
        graph = graph.loc[list(graph.columns)]
    adjacency = np.asarray(graph) != 0
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise DataError(f"An adjacency matrix is square; got shape {adjacency.shape}.")
    if not is_acyclic(adjacency):
        raise DataError("The given graph has a cycle; only a DAG can be simulated.")
    if len(names) != len(adjacency):
        names = tuple(f"X{number}" for number in range(1, len(adjacency) + 1))
    return adjacency, names


def _simulation(
    network: Network,
    num_rows: int,
    held_out: int,
    interventions: int | Mapping[str, int] | None,
    rng: np.random.Generator,
) -> Simulation:
    if num_rows < 0 or held_out < 0:
        raise DataError("Numbers of rows cannot be negative.")
    intervened = _intervened(network.names, num_rows, interventions)
    weights = None
    if isinstance(network, LinearGaussianNetwork):
        weights = network.graph.astype(float)
        weights[:] = network.weights
    return Simulation(
        frame=network.sample(num_rows if intervened is None else len(intervened), rng, intervened=intervened),
        truth=network.graph,
        weights=weights,
        held_out=network.sample(held_out, rng) if held_out else None,
        intervened=intervened,
        network=network,
    )


def _intervened(
    names: tuple[str, ...], num_rows: int, interventions: int | Mapping[str, int] | None
) -> np.ndarray | None:
    """`num_rows` observational rows, then the rows with one target each, bool [n, d]."""
    if interventions is None:
        return None
    rows = interventions if isinstance(interventions, Mapping) else dict.fromkeys(names, interventions)
    for name in rows:
        if name not in names:
            raise DataError(f"`interventions` names an unknown variable. {unknown_name(name, names)}")
    counts = [rows.get(name, 0) for name in names]
    observational = np.zeros((num_rows, len(names)), dtype=bool)
    return np.concatenate([observational, np.repeat(np.eye(len(names), dtype=bool), counts, axis=0)])
