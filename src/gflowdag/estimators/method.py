"""What a method is, can do and costs: one record, which stands in the method's own file.

The registry, the command line, `check`, error texts, the report and the table in the documentation are all
made from these records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from gflowdag.data import Dataset
from gflowdag.estimators.registry import UNRANKED
from gflowdag.runtime.memory import total_memory
from gflowdag.runtime.messages import memory

# What a table may have that not every method can use.
DISCRETE = "discrete data"
MIXED = "continuous and discrete columns together"
INTERVENTIONS = "interventions"
KNOWN_EDGES = "required or forbidden edges"
MAX_PARENTS = "max_parents"


class Problem(NamedTuple):
    """What decides whether a method takes a table."""

    num_variables: int
    discrete: bool = False  # some columns are
    intervened: bool = False  # variables were set from outside
    known_edges: bool = False  # knowledge requires or forbids edges
    limited_parents: bool = False  # knowledge limits the number of parents
    mixed: bool = False  # columns of both kinds

    @classmethod
    def of(cls, data: Dataset) -> Self:
        """The facts of a table with its knowledge."""
        knowledge = None if data.knowledge is None else data.knowledge.resolve(data.names)
        return cls(
            data.num_variables,
            discrete=not data.is_continuous,
            intervened=data.intervened is not None,
            known_edges=knowledge is not None and knowledge.rules_out_edges,
            limited_parents=knowledge is not None and knowledge.max_parents is not None,
            mixed=data.is_mixed,
        )


@dataclass(frozen=True, kw_only=True)
class Method:
    """The record of a method, for people and for programs.

    Args:
        name: on the command line.
        rank: its place in lists of the methods of this package.
        label: for people.
        answer: how far its answer goes, in few words, as in the table of `check`.
        gives: what the answer is.
        checked_by: the diagnostics behind its verdict; empty if nothing vouches for the method.
        assumes: what it takes for granted beyond the score and the prior.
        use_when: advice on choosing it.
        seconds: with default settings, from the number of variables; None if it was never measured.
        num_bytes: of memory besides Python and its packages, from the number of variables.
        extra: optional dependencies, as in `pip install "gflowdag[EXTRA]"`.
        least_variables: fewest variables.
        most_variables: most variables with default settings.
        discrete_measured: most variables of discrete tables at which the costs hold.
        takes_discrete: whether it takes discrete columns.
        takes_mixed: whether it takes tables with columns of both kinds.
        uses_interventions: whether it takes interventional data.
        uses_known_edges: whether it honours required and forbidden edges.
        uses_max_parents: whether it honours a maximum number of parents.
        uses_prior: whether the structure prior enters the answer, where the score is a name.
        trains: whether it trains a network, with checkpoints.
        continues: whether a run that has ended can go on with a larger budget.
        needs_its_memory: whether it is refused where the machine has less than `num_bytes`.
        delegates: whether it leaves the work to another method, and so has no cost of its own.
        uses_jax: whether it computes with JAX, which takes half a second to load.
    """

    name: str
    rank: int = UNRANKED
    label: str
    answer: str
    gives: str
    checked_by: str = ""
    assumes: str = ""
    use_when: str = ""
    seconds: Callable[[int], float] | None = None
    num_bytes: Callable[[int], float] | None = None
    extra: str = ""
    least_variables: int = 2
    most_variables: float = math.inf
    discrete_measured: float = math.inf
    takes_discrete: bool = True
    takes_mixed: bool = True
    uses_interventions: bool = True
    uses_known_edges: bool = True
    uses_max_parents: bool = True
    uses_prior: bool = True
    trains: bool = False
    continues: bool = False
    needs_its_memory: bool = False
    delegates: bool = False
    uses_jax: bool = True

    def unusable(self, problem: Problem) -> list[str]:
        """What of a problem the method cannot use."""
        wanted = {
            DISCRETE: (problem.discrete, self.takes_discrete),
            MIXED: (problem.mixed, self.takes_mixed),
            INTERVENTIONS: (problem.intervened, self.uses_interventions),
            KNOWN_EDGES: (problem.known_edges, self.uses_known_edges),
            MAX_PARENTS: (problem.limited_parents, self.uses_max_parents),
        }
        return [what for what, (is_there, is_used) in wanted.items() if is_there and not is_used]

    def cost_is_known(self, problem: Problem) -> bool:
        """Whether the measured costs say something about a problem."""
        return not problem.discrete or problem.num_variables <= self.discrete_measured

    def refusal(self, problem: Problem) -> str | None:
        """Why the method does not take a problem, in few words; None if it does."""
        d = problem.num_variables
        if d < self.least_variables:
            return f"{self.least_variables} variables at least"
        if d > self.most_variables:
            return f"{self.most_variables} variables at most"
        if self.needs_its_memory and self.num_bytes is not None and self.num_bytes(d) > total_memory():
            return f"needs {memory(round(self.num_bytes(d)))}; this machine has {memory(total_memory())}"
        unusable = self.unusable(problem)
        return f"not with {' or '.join(unusable)}" if unusable else None


def power_law(measured: Mapping[int, float], unit: float = 1.0) -> Callable[[int], float]:
    """A cost between and beyond the measured ones, from the number of variables.

    Straight lines in logarithms; beyond the last measurement the cost grows at least as fast as the table.

    Args:
        measured: cost by number of variables, at two sizes or more.
        unit: what the costs are multiplied by.
    """
    sizes = list(measured)
    x, y = np.log(sizes), np.log(list(measured.values()))

    def cost(num_variables: int) -> float:
        k = int(np.clip(np.searchsorted(x, np.log(num_variables)), 1, len(x) - 1))
        slope = (y[k] - y[k - 1]) / (x[k] - x[k - 1])
        if num_variables > sizes[-1]:
            slope = max(slope, 1.0)  # order methods get cheaper once where they pass to candidate parents
        return unit * float(np.exp(y[k] + slope * (np.log(num_variables) - x[k])))

    return cost


def mebibytes(measured: Mapping[int, float]) -> Callable[[int], float]:
    """Bytes from measurements in MiB, as `power_law`."""
    return power_law(measured, 2.0**20)
