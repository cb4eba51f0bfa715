"""One graph, or its equivalence class, in the forms of other programs. Directions are as they say here.

bnlearn (R): `[A][B|A]`, a variable and its parents. Tetrad's text, which causal-learn reads: `A --> B`, and
`A --- B` for an edge of either direction. GML, which DoWhy reads: `source` and `target`. pgmpy, networkx:
edges `(source, target)`. causal-learn's matrix: `G[i, j] = -1, G[j, i] = 1` where i → j.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray

from gflowdag.data.bif_text import bif_text
from gflowdag.data.networks import DiscreteNetwork, LinearGaussianNetwork
from gflowdag.errors import DataError, MissingExtraError
from gflowdag.graph.equivalence import cpdag as equivalence_pattern

if TYPE_CHECKING:
    import networkx as nx
    from causallearn.graph.GeneralGraph import GeneralGraph
    from pgmpy.base import DAG
    from xarray import DataTree

    from gflowdag.posterior.posterior import Posterior


class HandOver:
    """What a posterior gives to other programs; a base of `Posterior`."""

    if TYPE_CHECKING:
        samples: np.ndarray
        names: Sequence[str]

        def map_graph(self) -> pd.DataFrame: ...
        def edge_probabilities(self) -> pd.DataFrame: ...

    def to_networkx(self, k: int | None = None) -> nx.DiGraph[str]:
        """Sample `k` as a networkx graph; without `k`, every possible edge with its `probability`."""
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(self.names)
        p = self.edge_probabilities().to_numpy()
        present = p > 0 if k is None else self.samples[k]
        for i, j in np.argwhere(present):
            graph.add_edge(self.names[int(i)], self.names[int(j)], probability=float(p[i, j]))
        return graph

    def cpdag(self, k: int | None = None) -> pd.DataFrame:
        """The equivalence class of sample `k`, or of the best graph: bool [source, target].

        Both entries of a pair are set where the members of the class differ in its direction.
        """
        best = self.map_graph()
        return pd.DataFrame(equivalence_pattern(self._graph(k)), best.index, best.columns)

    def fitted_network(self, k: int | None = None) -> DiscreteNetwork | LinearGaussianNetwork:
        """Sample `k`, or the best graph, with posterior means of its parameters, in units of the table."""
        from gflowdag.posterior.fitted import fitted_network

        return fitted_network(cast("Posterior", self), k)

    def to_pgmpy(self, k: int | None = None, *, fitted: bool = False) -> DAG:
        """Sample `k`, or without `k` the best graph (`map_graph`), as a graph of pgmpy.

        Its models take it as it is: `DiscreteBayesianNetwork(post.to_pgmpy()).fit(df)` for discrete data,
        `LinearGaussianBayesianNetwork` for continuous data.

        Args:
            k: which sample.
            fitted: give one of these models, with the posterior means of the parameters (`fitted_network`).
        """
        if fitted:
            return fitted_pgmpy(self.fitted_network(k))
        try:
            from pgmpy.base import DAG
        except ImportError as error:
            raise MissingExtraError("to_pgmpy needs pgmpy: pip install pgmpy") from error
        graph = DAG()
        graph.add_nodes_from(self.names)
        chosen = np.argwhere(self._graph(k))
        graph.add_edges_from([(self.names[int(i)], self.names[int(j)]) for i, j in chosen])
        return graph

    def to_causal_learn(self, k: int | None = None, *, cpdag: bool = False) -> GeneralGraph:
        """Sample `k`, or the best graph, or the `cpdag` of its class, as a graph of causal-learn."""
        return causal_learn_graph(self.names, self.cpdag(k).to_numpy() if cpdag else self._graph(k))

    def to_bnlearn(self, k: int | None = None) -> str:
        """Sample `k`, or the best graph, as a model string of R's bnlearn: `[A][B|A]`."""
        return model_string(self.names, self._graph(k))

    def to_gml(self, k: int | None = None) -> str:
        """Sample `k`, or the best graph, in GML, as DoWhy takes it: `CausalModel(…, graph=post.to_gml())`."""
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(self.names)
        chosen = np.argwhere(self._graph(k))
        graph.add_edges_from((self.names[int(i)], self.names[int(j)]) for i, j in chosen)
        return "\n".join(cast(Any, nx).generate_gml(graph)) + "\n"

    def to_bif(self, k: int | None = None) -> str:
        """Sample `k`, or the best graph, with its fitted tables in the Bayesian Interchange Format."""
        network = self.fitted_network(k)
        if not isinstance(network, DiscreteNetwork):
            raise DataError("BIF holds networks of discrete variables, and these are continuous.")
        return bif_text(network)

    def to_datatree(self) -> DataTree:
        """The samples as xarray's `DataTree`, for ArviZ and its neighbours.

        `posterior/adjacency` has the dimensions chain (one), draw, source, target; `sample_stats` holds
        `log_weight` and, where known, `log_score`. ArviZ does not know of weights: where they differ, give
        it `post.resample(1000).to_datatree()`.
        """
        from gflowdag.posterior.datatree import datatree

        return datatree(cast("Posterior", self))

    def _graph(self, k: int | None) -> np.ndarray:
        """Sample `k`, or the best graph, bool [d, d]."""
        return self.map_graph().to_numpy() if k is None else self.samples[k]


def edges(pattern: NDArray[np.bool_]) -> Iterator[tuple[int, int, bool]]:
    """`(source, target, directed)` of a DAG or a CPDAG, bool [d, d]; undirected edges once."""
    for i, j in np.argwhere(pattern):
        directed = not pattern[j, i]
        if directed or i < j:
            yield int(i), int(j), directed


def model_string(names: Sequence[str], graph: NDArray[np.bool_]) -> str:
    """The model string of R's bnlearn, for `model2network`."""
    for name in names:
        if not name or any(mark in name for mark in "[]|:\n\r"):
            raise DataError(
                f"bnlearn cannot read the name {name!r}: [, ], | and : are marks of its model strings. "
                "Rename the column."
            )
    parts: list[str] = []
    for node, name in enumerate(names):
        parents = [names[int(parent)] for parent in np.flatnonzero(graph[:, node])]
        parts.append(f"[{name}|{':'.join(parents)}]" if parents else f"[{name}]")
    return "".join(parts)


def tetrad_text(names: Sequence[str], pattern: NDArray[np.bool_]) -> str:
    """The text format of Tetrad and causal-learn (`txt2generalgraph`), of a DAG or a CPDAG."""
    for name in names:
        if not name or any(mark.isspace() or mark in ";," for mark in name):
            raise DataError(
                f"Tetrad's text cannot hold the name {name!r}: blanks, commas and semicolons separate its "
                "parts. Rename the column."
            )
    lines = [
        f"{number}. {names[i]} {'-->' if directed else '---'} {names[j]}"
        for number, (i, j, directed) in enumerate(edges(pattern), start=1)
    ]
    return "\n".join(["Graph Nodes:", ";".join(names), "", "Graph Edges:", *lines, ""])


def causal_learn_graph(names: Sequence[str], pattern: NDArray[np.bool_]) -> GeneralGraph:
    """A DAG or a CPDAG as a graph of causal-learn."""
    try:
        from causallearn.graph.Edge import Edge
        from causallearn.graph.Endpoint import Endpoint
        from causallearn.graph.GeneralGraph import GeneralGraph
        from causallearn.graph.GraphNode import GraphNode
    except ImportError as error:
        raise MissingExtraError("to_causal_learn needs causal-learn: pip install causal-learn") from error
    nodes: list[Any] = [GraphNode(name) for name in names]
    graph = GeneralGraph(nodes)
    for i, j, directed in edges(pattern):
        graph.add_edge(Edge(nodes[i], nodes[j], Endpoint.TAIL, Endpoint.ARROW if directed else Endpoint.TAIL))
    return graph


def fitted_pgmpy(network: DiscreteNetwork | LinearGaussianNetwork) -> Any:
    """A network with parameters as a model of pgmpy."""
    try:
        from pgmpy.factors.continuous import LinearGaussianCPD
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.models import DiscreteBayesianNetwork, LinearGaussianBayesianNetwork
    except ImportError as error:
        raise MissingExtraError("to_pgmpy needs pgmpy 1.0 or newer: pip install pgmpy") from error
    names = list(network.names)
    pairs = [(names[int(i)], names[int(j)]) for i, j in np.argwhere(network.adjacency)]
    tables: list[Any] = []
    if isinstance(network, DiscreteNetwork):
        model: Any = DiscreteBayesianNetwork(pairs)
        for node, name in enumerate(names):
            parents = network.parents[node]
            values = network.tables[node].reshape(-1, len(network.levels[node])).T
            tables.append(
                TabularCPD(
                    name,
                    len(network.levels[node]),
                    values,
                    evidence=[names[parent] for parent in parents] or None,
                    evidence_card=[len(network.levels[parent]) for parent in parents] or None,
                    state_names={names[v]: list(network.levels[v]) for v in (node, *parents)},
                )
            )
    else:
        model = LinearGaussianBayesianNetwork(pairs)
        for node, name in enumerate(names):
            parents = np.flatnonzero(network.adjacency[:, node]).tolist()
            beta = [float(network.intercepts[node]), *network.weights[parents, node].tolist()]
            deviation = float(np.sqrt(network.variances[node]))
            tables.append(LinearGaussianCPD(name, beta, deviation, [names[parent] for parent in parents]))
    model.add_nodes_from(names)
    model.add_cpds(*tables)
    return model
