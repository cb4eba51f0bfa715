"""The problems that the benchmarks share with the experiments: rows can be set side by side."""

from gflowdag_lab.paper.problems import Problem, linear_gaussian, sachs_continuous, sachs_interventional

__all__ = ["Problem", "linear_gaussian", "sachs_continuous", "sachs_interventional"]
