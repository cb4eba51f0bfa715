from gflowdag.baselines import bcd_nets as bcd_nets
from gflowdag.baselines import dibs as dibs
from gflowdag.baselines.assignment import max_assignment as max_assignment
