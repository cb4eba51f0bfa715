"""What chose between graphs that observations alone cannot tell apart: interventions, prior knowledge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.data import Dataset
from gflowdag.data.knowledge import Constraints
from gflowdag.graph.equivalence import class_members, class_size
from gflowdag.posterior import Posterior

_MAX_LISTED = 300  # members of a class that are looked at one by one


class Deciding(NamedTuple):
    """Which of the two there were, as far as the report was told."""

    interventions: bool
    knowledge: bool
    constraints: Constraints | None  # what the knowledge demands, where that is known

    def __str__(self) -> str:
        found = ["interventions"] * self.interventions + ["prior knowledge"] * self.knowledge
        return " and ".join(found)

    def allowed_members(self, completed: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """The graphs of a class between which nothing else chose, bool [m, d, d]; None where that is unknown.

        Args:
            completed: the CPDAG of the class, bool [d, d].
        """
        if self.interventions or self.constraints is None or class_size(completed) > _MAX_LISTED:
            return None
        required, forbidden, limit = self.constraints
        members = class_members(completed)
        breaks = (members & forbidden | ~members & required).any(axis=(1, 2))
        if limit is not None:
            breaks |= (members.sum(axis=1) > limit).any(axis=1)
        return None if breaks.all() else members[~breaks]


def find_deciding(posterior: Posterior, config: Mapping[str, Any], data: Dataset | None) -> Deciding:
    """What is known of a posterior: by its table, else by itself, else by the settings of its run."""
    details = posterior.details
    interventions = bool(details.get("interventional")) or (data is not None and data.intervened is not None)
    if data is not None and data.knowledge is not None:
        constraints = data.knowledge.resolve(posterior.names)
        binds = _binds(constraints)
        return Deciding(interventions, binds, constraints if binds else None)
    told = details.get("knowledge") or (data is None and config.get("knowledge"))
    return Deciding(interventions, bool(told), None)


def _binds(constraints: Constraints) -> bool:
    """Whether any graph is ruled out."""
    d = len(constraints.forbidden)
    limit = constraints.max_parents
    # The diagonal is forbidden always, and a required edge forbids its reverse.
    return bool(constraints.forbidden.sum() > d) or (limit is not None and limit < d - 1)
