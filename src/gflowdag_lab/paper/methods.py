"""The rows of every table: which estimator, under which name in the paper, at which settings."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from gflowdag.errors import GFlowDAGError
from gflowdag.estimators import StructureLearner, estimator_class, preset_for
from gflowdag.runtime import instead
from gflowdag_lab.model import PRIOR

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_NO_BUDGETS: Mapping[int, float] = MappingProxyType({})
LARGE = 30  # number of variables from which on the settings `large` count


class Change(NamedTuple):
    """A version from which on a row's fits are others than before."""

    version: str
    what: str  # completes "in earlier versions …"


class Method(NamedTuple):
    """A row: an estimator and its settings beside the defaults."""

    label: str  # as in the paper's tables
    estimator: str  # name in the registry, or "module:Class"
    quick: Mapping[str, Any]  # minutes for a whole experiment on two cores
    full: Mapping[str, Any] = _NOTHING  # one GPU
    large: Mapping[str, Any] = _NOTHING  # changes beyond `LARGE` variables, at full size
    quick_large: Mapping[str, Any] = _NOTHING  # the same, quick
    budgets: Mapping[int, float] = _NO_BUDGETS  # seconds from so many variables on, full size; see `together`
    uses_interventions: bool = True
    change: Change | None = None  # the last one; older fits say so and decide no claim


_REMEDIES = "gflowdag_lab.paper.remedies:PartlyRemedied"
_TRAINED_BRIEFLY = {"budget": 20.0, "batch_size": 32, "num_weighted": 1000, "num_held_out_graphs": 0}
# No held-out graphs: their question, what a policy never draws, is answered by the exact posterior here.
# No more graphs than are returned: 10,000 of 20 variables would keep the paper's network busy for hours.
_FEW_GRAPHS = {"num_samples": 50, "num_weighted": 50, "sampling_batch": 50, "num_held_out_graphs": 0}
# The presets' own numbers of iterations where a GPU does them in minutes; beyond, as much as it does then.
_SOME_MINUTES = 150.0

METHODS: dict[str, Method] = {
    "exact": Method("Exact posterior", "exact", {}),
    "mc3": Method(
        "MC3",
        "mc3",
        quick={"num_chains": 16, "burn_in": 2000, "num_steps": 4000, "thinning": 40},
        large={"num_chains": 16, "burn_in": 10_000, "num_steps": 20_000, "thinning": 100},
    ),
    "gadget": Method(
        "Gadget",
        "gadget",
        quick={
            "num_candidates": 8,
            "num_runs": 2,
            "num_temperatures": 4,
            "burn_in": 200,
            "num_steps": 400,
            "thinning": 2,
        },
        full={"num_candidates": 8, "burn_in": 4000, "num_steps": 16_000, "thinning": 16},
        large={"max_outsiders": 2, "num_steps": 12_000, "thinning": 12},
        quick_large={"num_candidates": 6, "max_outsiders": 2},
    ),
    "bootstrap-ges": Method(
        "Bootstrap GES",
        "bootstrap-ges",
        quick={"num_bootstraps": 10},
        uses_interventions=False,
    ),
    "bootstrap-pc": Method(
        "Bootstrap PC",
        "bootstrap-pc",
        quick={"num_bootstraps": 20},
        large={"num_bootstraps": 30},
        quick_large={"num_bootstraps": 5},
        uses_interventions=False,
    ),
    "dibs": Method(
        "DiBS",
        "dibs",
        quick={"num_particles": 10, "num_steps": 200},
        # As many particles as graphs are returned; fewer where the score of a graph takes d factorisations.
        full={"num_particles": 1000},
        large={"num_particles": 30, "num_graphs": 32},
        quick_large={"num_particles": 4, "num_steps": 300, "num_graphs": 16},
    ),
    "bcd-nets": Method(
        "BCD Nets",
        "bcd-nets",
        quick={"num_steps": 500},
        full={"num_steps": 6000},
        large={"num_steps": 3000},
        quick_large={"num_steps": 100, "batch_size": 16},
        uses_interventions=False,
    ),
    "dag-gflownet-paper": Method(
        "DAG-GFlowNet (paper)",
        "dag-gflownet",
        quick={"preset": "paper", "budget": 5.0, **_FEW_GRAPHS},
        full={"preset": "paper", "num_weighted": 1000, "sampling_batch": 500, "num_held_out_graphs": 0},
        large={"batch_size": 16, "num_samples": 200, "num_weighted": 200, "sampling_batch": 200},
        budgets={13: _SOME_MINUTES},
        quick_large={"batch_size": 2, "num_samples": 4, "num_weighted": 4, "sampling_batch": 4},
        change=Change(
            "0.2.0",
            "the two output perceptrons started with smaller weights than those of the official "
            "implementation (each layer by a factor of 0.72) and had GELU in place of ReLU",
        ),
    ),
    "dag-gflownet-retuned": Method(
        "DAG-GFlowNet (retuned)",
        "dag-gflownet",
        quick={"preset": "retuned", "budget": 5.0, **_FEW_GRAPHS},
        full={"preset": "retuned", "num_weighted": 1000, "sampling_batch": 500, "num_held_out_graphs": 0},
    ),
    "dag-gflownet": Method(
        "DAG-GFlowNet (fast)",
        "dag-gflownet",
        quick={"preset": "fast", **_TRAINED_BRIEFLY},
        full={"preset": "fast", "num_held_out_graphs": 0},
        large={"batch_size": 32, "num_weighted": 1000},
        budgets={LARGE: _SOME_MINUTES},
        quick_large={
            "budget": 5.0,
            "batch_size": 2,
            **_FEW_GRAPHS,
            "num_samples": 10,
            "num_weighted": 10,
            "num_training_graphs": 0,  # the chains would take longer than the training
        },
        change=Change("0.2.0", "it learnt from its own trajectories alone, without graphs of chains"),
    ),
    "dag-gflownet-chains": Method(
        "DAG-GFlowNet (chains)",
        "dag-gflownet",
        quick={
            "preset": "chains",
            "num_chains": 8,
            "chain_steps": 300,
            "iterations": 100,
            "batch_size": 256,
            **_FEW_GRAPHS,
        },
        full={"preset": "chains", "num_held_out_graphs": 0},
    ),
    "dag-gflownet-canonical": Method(
        "DAG-GFlowNet (canonical)",
        "dag-gflownet",
        quick={
            "preset": "canonical",
            "num_chains": 8,
            "chain_steps": 300,
            "iterations": 100,
            "batch_size": 256,
            **_FEW_GRAPHS,
        },
        full={"preset": "canonical", "num_held_out_graphs": 0},
    ),
    "order-gflownet": Method(
        "Order GFlowNet",
        "order-gflownet",
        quick={"iterations": 50},
        quick_large={"iterations": 10, "chain_steps": 60, "num_chains": 4},
    ),
    "order-mcmc": Method(
        "Order MCMC",
        "order-mcmc",
        quick={"iterations": 600, "num_chains": 16, "num_records": 40},
        quick_large={"iterations": 60, "num_chains": 4, "num_records": 20},
    ),
    "plain-policy": Method(
        "Edge-wise, no remedy",
        _REMEDIES,
        quick={"temperature_schedule": False, "reparametrised": False, **_TRAINED_BRIEFLY},
        full={"temperature_schedule": False, "reparametrised": False, "num_held_out_graphs": 0},
    ),
    "temperature-schedule": Method(
        "Edge-wise, temperature schedule",
        _REMEDIES,
        quick={"temperature_schedule": True, "reparametrised": False, **_TRAINED_BRIEFLY},
        full={"temperature_schedule": True, "reparametrised": False, "num_held_out_graphs": 0},
    ),
    "reparametrised-policy": Method(
        "Edge-wise, reparametrised policy",
        _REMEDIES,
        quick={"temperature_schedule": False, "reparametrised": True, **_TRAINED_BRIEFLY},
        full={"temperature_schedule": False, "reparametrised": True, "num_held_out_graphs": 0},
    ),
}

# The rows of the paper's tables, in its order, then ours.
OF_THE_PAPER = (
    "mc3",
    "gadget",
    "bootstrap-ges",
    "bootstrap-pc",
    "dibs",
    "bcd-nets",
    "dag-gflownet-paper",
)
OURS = ("dag-gflownet", "order-gflownet", "order-mcmc")
FOR_A_DOZEN = ("exact", *OF_THE_PAPER, "dag-gflownet-retuned", *OURS)  # variables, or fewer
WITH_INTERVENTIONS = tuple(name for name in FOR_A_DOZEN if METHODS[name].uses_interventions)


def settings(name: str, *, quick: bool, num_variables: int, budget: float | None = None) -> dict[str, Any]:
    """Parameters of a row's estimator beside its defaults.

    Args:
        name: of the row.
        quick: small settings, for minutes on two cores.
        num_variables: of the data.
        budget: seconds that end the training of a DAG-GFlowNet, in place of the row's own.
    """
    method = METHODS[name]
    chosen = dict(method.quick if quick else method.full)
    if num_variables > LARGE:
        chosen |= method.quick_large if quick else method.large
    sizes = [least for least in method.budgets if num_variables >= least]
    if sizes and not quick:
        chosen["budget"] = method.budgets[max(sizes)]
    if budget is not None and (preset := _preset(method, chosen)) is not None:
        iterations = preset_for(preset, num_variables).iterations
        chosen = {"iterations": iterations, **chosen, "budget": budget}
    return chosen


def _preset(method: Method, chosen: Mapping[str, Any]) -> str | None:
    """Of a DAG-GFlowNet; None for other rows."""
    return chosen.get("preset", "fast" if method.estimator == _REMEDIES else None)


def planned_iterations(name: str, num_variables: int) -> int | None:
    """Iterations of a row at full size where no clock ends its training; None for rows without a preset."""
    preset = _preset(METHODS[name], settings(name, quick=False, num_variables=num_variables))
    return None if preset is None else preset_for(preset, num_variables).iterations


def is_outdated(name: str, version: str) -> bool:
    """Whether a fit by that version of the library is another than today's."""
    change = METHODS[name].change
    return change is not None and _numbers(version) < _numbers(change.version)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def make_estimator(name: str, options: Mapping[str, Any], seed: int, prior: str = PRIOR) -> StructureLearner:
    """The estimator of a row, under the paper's structure prior or another one."""
    path = METHODS[name].estimator
    if ":" in path:
        module, class_name = path.split(":")
        kind = getattr(importlib.import_module(module), class_name)
    else:
        kind = estimator_class(path)
    return kind(prior=prior, random_state=seed, **options)


def require_methods(names: list[str]) -> None:
    """Refuse names of rows that do not exist."""
    for name in names:
        if name not in METHODS:
            raise GFlowDAGError(f"there is no row {name!r}: {instead(name, METHODS)}")
