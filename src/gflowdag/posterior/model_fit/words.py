"""What each finding says: the problem, why it matters, and what to do where no option helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gflowdag.posterior.model_fit.finding import Check, Finding, Remedy
from gflowdag.posterior.model_fit.statistics import Tested


class Wording(NamedTuple):
    """One kind of finding in words."""

    check: Check
    statistic: str
    problem: str
    advice: str = ""

    def finding(
        self,
        columns: Sequence[str],
        tested: Mapping[str, Tested],
        remedy: Remedy | None,
        *,
        beside: str | None = None,
    ) -> Finding:
        """The finding in these columns; `beside` is what the first one depends on."""
        problem = self.problem if beside is None else f"{self.problem} (clearest against {beside})"
        values = tuple(tested[name].value for name in columns)
        return Finding(self.check, tuple(columns), self.statistic, values, problem, remedy, self.advice)


SKEWNESS = Wording(
    "skewness",
    "skewness",
    "the values lean to one side; the model takes them as normal, and that can turn arrows",
)
TAILS = Wording(
    "tails",
    "excess kurtosis",
    "the tails are not normal, and few rows far out can decide an edge",
)
OUTLIERS = Wording("outliers", "rows", "a few rows lie too far out for a normal sample of this size")
CURVATURE = Wording(
    "curvature", "correlation", "the relation bends, and the model knows straight lines alone"
)
UNEQUAL_VARIANCE = Wording(
    "unequal variance",
    "correlation",
    "the spread depends on another variable, and the model takes it as constant",
)
SERIAL = Wording(
    "serial dependence",
    "autocorrelation",
    "neighbouring rows are alike, so that they count for more than they tell and probabilities are too sure",
    "Take rows that are far enough apart, or one for each unit that was measured repeatedly",
)
FEW_ROWS = Wording(
    "few rows",
    "rows for a parameter",
    "there are few rows for what has to be estimated, and the prior decides much of the answer",
)
DETERMINISTIC = Wording(
    "deterministic",
    "share of the variance that the others leave",
    "other columns all but determine it, so that nothing can be said about which of them is its cause",
)
RARE_LEVELS = Wording(
    "rare levels",
    "rows of the rarest level",
    "a level that few rows have says next to nothing",
    "Merge rare levels with others before reading the table",
)
FEW_VALUES = Wording(
    "few values",
    "different values",
    "numbers that take a few values are levels, and no normal distribution has any",
)


def curvature_finding(
    columns: Sequence[str], tested: Mapping[str, Tested], beside: Mapping[str, str], remedy: Remedy | None
) -> Finding:
    """Bent relations, with the column against which the first one bends most."""
    return CURVATURE.finding(columns, tested, remedy, beside=beside[columns[0]])


def outliers_finding(rows: Mapping[str, Sequence[int]], remedy: Remedy | None) -> Finding:
    """Single rows far out: which they are, counted from 1."""
    columns = sorted(rows, key=lambda name: -len(rows[name]))
    first = ", ".join(str(row + 1) for row in rows[columns[0]][:5])
    tested = {name: Tested(float(len(rows[name])), 0.0) for name in columns}
    found = OUTLIERS.finding(columns, tested, remedy)
    return Finding(
        found.check,
        found.columns,
        found.statistic,
        found.values,
        found.problem,
        remedy,
        f"Look at them first: {columns[0]} in row {first}",
    )
