"""DAG algebra on 0/1 arrays: `A[i, j] = 1` iff `i -> j`, any leading batch dimensions.

The NumPy names are gathered here; `graph.incremental` is the JAX counterpart for one graph that grows edge
by edge, and is imported from there.
"""

from gflowdag.graph.bits import (
    compress,
    distinct_parent_sets,
    expand,
    graph_keys,
    graphs_from_masks,
    parent_masks,
    popcount,
)
from gflowdag.graph.closure import is_acyclic, legal_edges, transitive_closure
from gflowdag.graph.distance import shd
from gflowdag.graph.enumeration import all_dags
from gflowdag.graph.equivalence import (
    class_keys,
    class_members,
    class_size,
    cpdag,
    extend_pdag,
    random_member,
)
from gflowdag.graph.features import markov_blanket_features, path_features
from gflowdag.graph.order import canonical_order, topological_order
from gflowdag.graph.random import by_parent_counts, erdos_renyi, scale_free

__all__ = [
    "all_dags",
    "by_parent_counts",
    "canonical_order",
    "class_keys",
    "class_members",
    "class_size",
    "compress",
    "cpdag",
    "distinct_parent_sets",
    "erdos_renyi",
    "expand",
    "extend_pdag",
    "graph_keys",
    "graphs_from_masks",
    "is_acyclic",
    "legal_edges",
    "markov_blanket_features",
    "parent_masks",
    "path_features",
    "popcount",
    "random_member",
    "scale_free",
    "shd",
    "topological_order",
    "transitive_closure",
]
