"""Small problems whose posteriors are kept in `posteriors.npz`, each with everything that decides its answer.

An entry never relies on a default: a default that changes must not change what an entry means. What version
0.2 could not be told (hyper-parameters, the constants under `fixed`) is written down with the value that it
had. A version that can be told it, or that has another default, must pass it in `fit` below. How the work is
done (devices, folders, number of processes) is no part of an entry.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

import gflowdag as gd
from gflowdag.score import EdgePrior, ErdosRenyiPrior, FairPrior, UniformPrior

Options = dict[str, Any]

UNIFORM = {"name": "uniform"}
FAIR = {"name": "fair"}
ERDOS_RENYI = {"name": "erdos-renyi", "edges_per_node": 1.0}
EDGE = {"name": "edge", "beta": 0.5}
BDEU = {"name": "bde", "ess": 1.0}


def bge(num_variables: int) -> Options:
    """BGe with prior scale `t = alpha_mu (alpha_w − d − 1) / (alpha_mu + 1)` and prior mean 0."""
    return {"name": "bge", "alpha_mu": 1.0, "alpha_w": num_variables + 2.0}


def gaussian(num_variables: int, num_rows: int, random_state: int, **changes: Any) -> Options:
    """A table from a random linear-Gaussian network."""
    arguments = {
        "num_variables": num_variables,
        "num_rows": num_rows,
        "graph": "erdos-renyi",
        "expected_edges": float(num_variables),
        "weight_scale": 1.0,
        "noise_variance": 0.5,
        "held_out": 0,
        "interventions": None,
        "random_state": random_state,
    }
    return {"source": "linear_gaussian", "arguments": {**arguments, **changes}}


def discrete(num_variables: int, num_rows: int, random_state: int, **changes: Any) -> Options:
    """A table from a random discrete network."""
    arguments = {
        "num_variables": num_variables,
        "num_rows": num_rows,
        "graph": "erdos-renyi",
        "expected_edges": float(num_variables),
        "num_levels": 3,
        "concentration": 2.0,
        "held_out": 0,
        "interventions": None,
        "random_state": random_state,
    }
    return {"source": "discrete", "arguments": {**arguments, **changes}}


SACHS = {"source": "sachs", "arguments": {}}
ASIA = {"source": "asia", "arguments": {"num_rows": 500, "random_state": 1}}

# Every option of each method, with the values of this file; an entry names what it changes.
EXACT = {"max_variables": 20}
AUTO = {"iterations": None, "budget": None}
ORDER_MCMC = {
    "iterations": 60,
    "num_chains": 8,
    "num_temperatures": 1,
    "hottest": 0.25,
    "num_records": 20,
    "num_candidates": None,
}
MC3 = {"num_chains": 8, "burn_in": 200, "num_steps": 400, "thinning": 20}
GADGET = {
    "num_candidates": 5,
    "max_outsiders": 3,
    "num_runs": 2,
    "num_temperatures": 4,
    "burn_in": 100,
    "num_steps": 400,
    "thinning": 4,
    "n_jobs": 1,
}
GES = {"num_bootstraps": 20, "penalty": 1.0, "n_jobs": 1}
PC = {"num_bootstraps": 20, "alpha": 0.05, "n_jobs": 1}
DIBS = {
    "num_particles": 12,
    "num_steps": 300,
    "weighting": "equal",
    "learning_rate": 0.005,
    "num_graphs": 32,
    "sharpness": 1.0,
    "cycle_cost": 1.0,
    "bandwidth": 5.0,
}
BCD = {
    "equal_variances": False,
    "num_steps": 100,
    "batch_size": 16,
    "num_permutations": 4,
    "learning_rate": 1e-3,
    "degree": 2.0,
    "threshold": 0.3,
}
DAG_GFLOWNET = {
    "preset": "fast",
    "iterations": 10,
    "budget": None,
    "objective": "trajectory",
    "batch_size": 32,
    "learning_rate": 2e-3,
    "chain_steps": 60,
    "num_chains": 8,
    "num_weighted": 1000,
    "sampling_batch": 250,
    "draws": "iid",
    "num_guides": 64,
    "num_witnesses": 32,
}
ORDER_GFLOWNET = {
    "iterations": 20,
    "budget": None,
    "batch_size": 64,
    "width": 64,
    "depth": 2,
    "learning_rate": 1e-3,
    "chain_steps": 500,
    "num_chains": 8,
}
# What version 0.2 decides by itself.
FAST_FIXED = {
    "width": 128,
    "warmup": 100,
    "clip": 10.0,
    "target_period": 1,
    "cooldown": 0.75,
    "beta": "learnt",
}
CHAINS_FIXED = {
    "width": 128,
    "depth": 3,
    "num_taught": 100_000,
    "warmup": 100,
    "clip": 10.0,
    "cooldown": 0.25,
}
PAPER_FIXED = {
    "num_environments": 8,
    "capacity": 100_000,
    "prefill": 1000,
    "exploration_iterations": 50_000,
    "min_exploration": 0.1,
    "huber_delta": 1.0,
    "embedding": 128,
    "heads": "4 x 64",
    "hidden": 512,
    "warmup": 1,
    "clip": None,
    "target_period": 1000,
    "cooldown": 0.0,
}
ORDER_FIXED = {"num_weighted": 32_768, "sampling_batch": 1024, "untrained_every": 8}


@dataclass(frozen=True)
class Problem:
    """A table, a model, a method, and how far two fits must agree.

    Attributes:
        max_parents: limit on the parents; `d − 1` is none. `None` where the method refuses any limit.
        knowledge: what else `Knowledge` is given.
        gaps: share and seed of cells that are emptied, or None.
        missing: what is done about gaps.
        num_samples: graphs to draw.
        fixed: what decides the answer and could not be set in version 0.2.
        check: `"exact"`: equal to rounding; `"bits"`: the same samples everywhere; `"machine"`: the same
            samples where versions and processor are the same, since a compiler decides about rounding.
        needs: module of an optional package.
        long: left out of `make test`.
    """

    name: str
    data: Options
    method: str
    options: Options
    score: Options
    prior: Options
    max_parents: int | None
    check: str
    knowledge: Options = field(default_factory=dict)
    gaps: tuple[float, int] | None = None
    missing: str = "error"
    transform: str | None = None
    standardize: bool = True
    num_samples: int = 200
    seed: int = 0
    fixed: Options = field(default_factory=dict)
    needs: str | None = None
    long: bool = False


def table(problem: Problem) -> tuple[pd.DataFrame, np.ndarray | None]:
    """The observations and what was set from outside, bool [n, d] or None.

    Continuous values are rounded to six digits, so that they do not depend on who adds them up.
    """
    source, arguments = problem.data["source"], problem.data["arguments"]
    if source in ("linear_gaussian", "discrete"):
        simulation = getattr(gd.simulate, source)(**arguments)
        frame, intervened = simulation.frame, simulation.intervened
    else:
        frame, intervened = gd.load_dataset(source, **arguments).frame, None
    if kind(problem) == "continuous":
        frame = frame.round(6)
    if problem.gaps is not None:
        share, seed = problem.gaps
        frame = frame.mask(np.random.default_rng(seed).random(frame.shape) < share)
    return frame, intervened


def kind(problem: Problem) -> str:
    """The kind of all columns."""
    return "continuous" if problem.score["name"] == "bge" else "discrete"


def table_digest(problem: Problem) -> str:
    """SHA-256 of the table: other data than before are told from another answer to the same."""
    frame, intervened = table(problem)
    text = frame.to_csv(index=False, float_format="%.6f", lineterminator="\n")
    targets = b"" if intervened is None else np.packbits(intervened).tobytes()
    return hashlib.sha256(text.encode() + targets).hexdigest()


# Options whose names have changed since the file was written.
RENAMED = {"num_guides": "num_training_graphs", "num_witnesses": "num_held_out_graphs"}
PRIORS = {"uniform": UniformPrior, "fair": FairPrior, "erdos-renyi": ErdosRenyiPrior, "edge": EdgePrior}


def score(problem: Problem) -> str | gd.BGe | gd.BDeu:
    """The score with its hyper-parameters; no limit on cells and no factor for edges, as in version 0.2.

    Bootstrapped GES takes a score by name for its own, as version 0.2 did: `"bde"` is BDeu without a limit.
    """
    if problem.method == "bootstrap-ges":
        return problem.score["name"]
    parameters = _parameters(problem.score)
    if "alpha_w" in parameters:
        return gd.BGe(**parameters)
    return gd.BDeu(**parameters, cells_per_row=None, edge_factor=1.0)


def _parameters(options: Options) -> Options:
    return {name: value for name, value in options.items() if name != "name"}


def recipe(fixed: Options) -> gd.PaperRecipe:
    """The constants of the preset `paper`, under the names that they have now."""
    heads, head_size = map(int, fixed["heads"].split(" x "))
    renamed = {"capacity": "replay_capacity", "clip": "max_gradient_norm"}
    named = {renamed.get(name, name): value for name, value in fixed.items() if name != "heads"}
    return gd.PaperRecipe(**named, num_heads=heads, head_size=head_size)


def fit(problem: Problem) -> gd.Posterior:
    """The posterior of a problem by the installed version."""
    frame, intervened = table(problem)
    options = {RENAMED.get(name, name): value for name, value in problem.options.items()}
    if options.get("preset") == "paper":
        options = {**options, "recipe": recipe(problem.fixed)}
    return gd.fit(
        frame,
        method=problem.method,
        score=score(problem),
        prior=PRIORS[problem.prior["name"]](**_parameters(problem.prior)),
        knowledge=gd.Knowledge(**problem.knowledge, max_parents=problem.max_parents),
        interventions=intervened,
        kinds=kind(problem),
        missing=problem.missing,
        transform=problem.transform,
        standardize=problem.standardize,
        num_samples=problem.num_samples,
        random_state=problem.seed,
        **options,
    )
