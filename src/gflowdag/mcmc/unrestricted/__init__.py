"""Chains over all DAGs, beyond the reach of dense tables: no parent is left out.

Each sweep draws a few candidate parents for every node, tabulates the local scores of their subsets and moves
the graph by exact draws from these tables. The candidates are an auxiliary variable: how likely they were,
given the graph, enters the tables (`candidate_sets`), so that the posterior over *all* DAGs is left as it is.
"""

from gflowdag.mcmc.unrestricted.run import Result, State, Verdict, run
from gflowdag.mcmc.unrestricted.tables import LocalTables

__all__ = ["LocalTables", "Result", "State", "Verdict", "run"]
