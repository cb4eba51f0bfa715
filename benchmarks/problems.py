"""The problems that every benchmark shares with the experiments, so that their rows can be set side by side."""

from gflowdag.experiments.problems import Problem, linear_gaussian, sachs_continuous, sachs_interventional

__all__ = ["Problem", "linear_gaussian", "sachs_continuous", "sachs_interventional"]
