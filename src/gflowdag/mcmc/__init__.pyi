from gflowdag.mcmc import order_chains as order_chains
from gflowdag.mcmc import structure as structure
from gflowdag.mcmc.changes import make_changes as make_changes
from gflowdag.mcmc.moves import limits_from_constraints as limits_from_constraints
