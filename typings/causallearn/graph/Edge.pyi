from causallearn.graph.Endpoint import Endpoint
from causallearn.graph.GraphNode import GraphNode

class Edge:
    def __init__(self, node1: GraphNode, node2: GraphNode, end1: Endpoint, end2: Endpoint) -> None: ...
