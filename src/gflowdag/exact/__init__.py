"""The exact posterior over DAGs by dynamic programming over subsets, for about twenty variables."""

from gflowdag.exact.best import map_graph
from gflowdag.exact.evidence import given_edges, log_evidence
from gflowdag.exact.marginals import Exact, posterior
from gflowdag.exact.recurrence import weigh_completions, weigh_dags
from gflowdag.exact.references import Reference, reference
from gflowdag.exact.sampling import sample
from gflowdag.exact.saved import Saved
from gflowdag.exact.scaled import potentials, subset_sums
from gflowdag.exact.size import MAX_VARIABLES, check_size, estimated_bytes

__all__ = [
    "MAX_VARIABLES",
    "Exact",
    "Reference",
    "Saved",
    "check_size",
    "estimated_bytes",
    "given_edges",
    "log_evidence",
    "map_graph",
    "posterior",
    "potentials",
    "reference",
    "sample",
    "subset_sums",
    "weigh_completions",
    "weigh_dags",
]
