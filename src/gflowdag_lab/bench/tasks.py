"""What is measured: a list of independent tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gflowdag.exact import MAX_VARIABLES
from gflowdag_lab.bench.ladders import METHODS, is_installed

KINDS = ("exact", "quality", "sampling", "scores", "variables", "rows")
SIZES = (5, 11, 16, 20)
BASELINE = "mc3"
_ROWS = 100  # observations, as in the paper
_MANY_VARIABLES = (10, 20, 40, 80)
_MANY_ROWS = (100, 10_000, 1_000_000)
_ROWS_AT = 11  # variables of the tables that grow in length
_SAMPLERS = ("exact", "mc3", "order-mcmc", "order-gflownet", "dag-gflownet")
_SCORES = ("plain", "bge", "bdeu")
SUBJECTS = (*METHODS, "sumu", *_SCORES)  # all that a row may be about, in the order of tables and colours


class Task(NamedTuple):
    """One measurement."""

    kind: str  # a name in `measure.MEASUREMENTS`
    subject: str  # a method, or a score
    num_variables: int
    num_rows: int = _ROWS
    cap: float = 60.0  # seconds after which no longer fit is begun
    seed: int = 0

    @property
    def name(self) -> str:
        """What identifies the row, in this file and in an older one."""
        return f"{self.kind} {self.subject} d={self.num_variables} N={self.num_rows}"

    def as_json(self) -> dict[str, Any]:
        """The task as it travels to its process."""
        return self._asdict()


def plan(
    methods: Sequence[str], sizes: Sequence[int], *, kinds: Sequence[str], cap: float, seed: int
) -> list[Task]:
    """The tasks of a benchmark, those that others build on first.

    Args:
        methods: names of methods; what is not installed is left out.
        sizes: numbers of variables at which methods are compared; at most 20, the reach of the judge.
        kinds: names of measurements.
        cap: seconds after which no longer fit is begun.
        seed: of problems and fits.
    """
    methods = [name for name in methods if is_installed(name)]
    engines = ["exact", *(["sumu"] if is_installed("sumu") else [])]
    growing = [name for name in methods if name in (*_SAMPLERS, "gadget")]
    of_kind = {
        "exact": [(engine, d, _ROWS) for d in sizes for engine in engines],
        "scores": [(score, d, _ROWS) for d in sizes for score in _SCORES],
        "sampling": [(method, d, _ROWS) for d in sizes for method in methods if method in _SAMPLERS],
        "quality": [(method, d, _ROWS) for d in sizes for method in methods],
        "variables": [
            (method, d, _ROWS)
            for d in _MANY_VARIABLES
            for method in growing
            if method != "exact" or d <= MAX_VARIABLES
        ],
        "rows": [(method, _ROWS_AT, n) for n in _MANY_ROWS for method in growing],
    }
    return [Task(kind, *rest, cap=cap, seed=seed) for kind in kinds for rest in of_kind[kind]]
