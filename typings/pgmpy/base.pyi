# The one class that a posterior is handed over to; pgmpy is not a dependency.
import networkx as nx

class DAG(nx.DiGraph[str]): ...
