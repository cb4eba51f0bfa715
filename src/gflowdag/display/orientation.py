"""What orients the edges that observations alone leave open: interventions and prior knowledge.

The graphs of a Markov equivalence class fit observations equally well. Interventions and prior knowledge can
tell them apart.
"""

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


class OrientingEvidence(NamedTuple):
    """Whether a posterior was computed with interventions, and with prior knowledge.

    As text: those of the two that can tell graphs of one class apart, such as "interventions and prior
    knowledge"; empty where neither can.
    """

    interventions: bool  # whether some variables were set from outside
    knowledge: bool  # whether prior knowledge rules out any graph
    constraints: Constraints | None  # the edges that it requires and forbids; None where they are not known

    def __str__(self) -> str:
        # All graphs of a class have the same largest number of parents: a limit on it cannot tell them apart.
        directs = self.knowledge and (self.constraints is None or self.constraints.rules_out_edges)
        return " and ".join(["interventions"] * self.interventions + ["prior knowledge"] * directs)

    def allowed_members(self, completed: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """The graphs of a class that the prior knowledge allows, bool [m, d, d].

        None where there were interventions too, which rule out others, or where the graphs cannot be listed.

        Args:
            completed: the CPDAG of the class, bool [d, d].
        """
        if self.interventions or self.constraints is None or class_size(completed) > _MAX_LISTED:
            return None
        members = class_members(completed)
        required, forbidden, _ = self.constraints
        breaks = (members & forbidden | ~members & required).any(axis=(1, 2))
        return None if breaks.all() else members[~breaks]


def find_orienting_evidence(
    posterior: Posterior, config: Mapping[str, Any], data: Dataset | None
) -> OrientingEvidence:
    """Look for interventions and knowledge in the table and the posterior, else in the run's settings."""
    interventions = bool(posterior.diagnosis.interventional) or (
        data is not None and data.intervened is not None
    )
    if data is not None and data.knowledge is not None:
        constraints = data.knowledge.resolve(posterior.names)
        binds = constraints.rules_out_graphs
        return OrientingEvidence(interventions, binds, constraints if binds else None)
    is_known = posterior.diagnosis.knowledge or (data is None and config.get("knowledge"))
    return OrientingEvidence(interventions, bool(is_known), None)
