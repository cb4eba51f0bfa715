"""The options of `fit` besides those that every method has, for type checkers and editors.

A test compares them with the parameters of the estimators, so a misspelt option is found while it is written.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from gflowdag.data.read_options import ColumnKeywords

if TYPE_CHECKING:
    from gflowdag.estimators.paper_recipe import PaperRecipe


class MethodOptions(TypedDict, total=False):
    """The parameters of single methods; see their estimators."""

    # methods that train a network
    iterations: int | None
    devices: int | str | None
    folder: str | Path | None
    resume: bool
    batch_size: int | None
    learning_rate: float | None
    chain_steps: int
    # parent-set-mcmc
    max_error: float
    core_size: int
    num_outsiders: int
    # order-gflownet
    width: int
    depth: int
    # dag-gflownet
    preset: str
    recipe: PaperRecipe | None
    objective: str | None
    num_weighted: int
    sampling_batch: int | None
    draws: str
    num_training_graphs: int
    num_held_out_graphs: int
    # chains
    num_chains: int | None
    burn_in: int
    num_steps: int
    thinning: int
    num_candidates: int | None
    num_temperatures: int | None
    hottest: float
    num_records: int
    max_outsiders: int
    num_runs: int
    n_jobs: int | None
    # exact
    max_variables: int
    # bootstrap-ges, bootstrap-pc
    num_bootstraps: int
    penalty: float
    alpha: float
    # dibs
    num_particles: int
    weighting: str
    num_graphs: int
    sharpness: float
    cycle_cost: float
    bandwidth: float
    # bcd-nets
    equal_variances: bool
    num_permutations: int
    degree: float
    threshold: float


class FitOptions(ColumnKeywords, MethodOptions, total=False):
    """Everything that `fit` takes besides its named parameters."""
