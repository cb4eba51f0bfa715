from gflowdag.orders.draws import draw_graphs as draw_graphs
from gflowdag.orders.labels import canonical_orders as canonical_orders
from gflowdag.orders.problem import DEFAULT_CANDIDATES as DEFAULT_CANDIDATES
from gflowdag.orders.problem import OrderProblem as OrderProblem
from gflowdag.orders.problem import edge_probabilities_of_orders as edge_probabilities_of_orders
from gflowdag.orders.problem import mean_edge_probabilities as mean_edge_probabilities
from gflowdag.orders.problem import order_problem as order_problem
