"""What a policy itself says of a small problem, without the noise of sampling from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gflowdag.gflownet import EdgeSpace, Policy, StateSpace
from gflowdag.graph import all_dags
from gflowdag.posterior import Posterior
from gflowdag.runtime import atomic_write
from gflowdag_lab.measurements.policy_distribution import policy_distribution

FEATURES = {
    "edge": Posterior.edge_probabilities,
    "path": Posterior.path_probabilities,
    "markov blanket": Posterior.markov_blanket_probabilities,
}
_MOST_VARIABLES = 5  # whose DAGs are few enough to list


def keep_policy(
    folder: Path, problem: str, method: str, space: StateSpace, policy: Policy, names: Sequence[str]
) -> None:
    """Store the probabilities of all features under a trained policy, if its DAGs can be listed."""
    if not isinstance(space, EdgeSpace) or space.num_variables > _MOST_VARIABLES:
        return
    graphs = all_dags(space.num_variables)
    with np.errstate(divide="ignore"):
        log_weights = np.log(policy_distribution(space, policy, graphs))
    listed = Posterior(graphs, list(names), method, log_weights=log_weights)
    features: Any = {name: probabilities(listed).to_numpy() for name, probabilities in FEATURES.items()}
    path = _path(folder, problem, method)
    with atomic_write(path, "wb") as stream:
        np.savez(stream, **features)


def kept_policy(folder: Path, problem: str, method: str) -> dict[str, np.ndarray] | None:
    """The probabilities that `keep_policy` stored, float64 [d, d] by feature; None where it did not."""
    path = _path(folder, problem, method)
    if not path.exists():
        return None
    with np.load(path) as file:
        return {name: file[name] for name in FEATURES}


def _path(folder: Path, problem: str, method: str) -> Path:
    return folder / "policies" / f"{problem}--{method}.npz"
