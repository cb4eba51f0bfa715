"""What chose between graphs that observations alone cannot tell apart: interventions, prior knowledge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gflowdag.data import Dataset
from gflowdag.data.knowledge import Constraints
from gflowdag.graph.equivalence import class_members, class_size
from gflowdag.posterior.posterior import Posterior

_MAX_LISTED = 300  # members of a class that are looked at one by one


class Deciding(NamedTuple):
    """Which of the two there were, as far as the report was told; as text, those that chose."""

    interventions: bool
    knowledge: bool  # that rules out any graph
    constraints: Constraints | None  # what the knowledge demands, where that is known

    def __str__(self) -> str:
        # The largest number of parents is the same in all graphs of a class: a limit of it does not choose.
        directs = self.knowledge and (self.constraints is None or self.constraints.rules_out_edges)
        return " and ".join(["interventions"] * self.interventions + ["prior knowledge"] * directs)

    def allowed_members(self, completed: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """The graphs of a class between which nothing else chose, bool [m, d, d]; None where that is unknown.

        Args:
            completed: the CPDAG of the class, bool [d, d].
        """
        if self.interventions or self.constraints is None or class_size(completed) > _MAX_LISTED:
            return None
        members = class_members(completed)
        required, forbidden, _ = self.constraints
        breaks = (members & forbidden | ~members & required).any(axis=(1, 2))
        return None if breaks.all() else members[~breaks]


def find_deciding(posterior: Posterior, config: Mapping[str, Any], data: Dataset | None) -> Deciding:
    """What is known of a posterior: by its table, else by itself, else by the settings of its run."""
    interventions = bool(posterior.diagnosis.interventional) or (
        data is not None and data.intervened is not None
    )
    if data is not None and data.knowledge is not None:
        constraints = data.knowledge.resolve(posterior.names)
        binds = constraints.rules_out_graphs
        return Deciding(interventions, binds, constraints if binds else None)
    told = posterior.diagnosis.knowledge or (data is None and config.get("knowledge"))
    return Deciding(interventions, bool(told), None)
