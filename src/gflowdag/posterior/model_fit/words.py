"""What each finding says: the problem, why it matters, and what to do where no option helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gflowdag.posterior.model_fit.finding import Check, Finding, Remedy
from gflowdag.posterior.model_fit.statistics import Tested


class Kind(NamedTuple):
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


SKEWNESS = Kind(
    "skewness",
    "skewness",
    "the values are skewed; the model takes them as normal, which can reverse arrows",
)
TAILS = Kind(
    "tails",
    "excess kurtosis",
    "the tails are not those of a normal distribution, and a few extreme rows can decide an edge",
)
OUTLIERS = Kind("outliers", "rows", "a few rows lie too far out for a normal sample of this size")
CURVATURE = Kind("curvature", "correlation", "the relation is curved, and the model has straight lines only")
UNEQUAL_VARIANCE = Kind(
    "unequal variance",
    "correlation",
    "the spread depends on another variable, and the model takes it as constant",
)
SERIAL = Kind(
    "serial dependence",
    "autocorrelation",
    "neighbouring rows resemble each other; the model takes them as independent, so probabilities are too "
    "close to 0 and 1",
    "Take rows that are far enough apart, or one for each unit that was measured repeatedly",
)
FEW_ROWS = Kind(
    "few rows",
    "rows per parameter",
    "there are few rows per parameter, and the prior decides much of the answer",
    "More rows help most, or fewer columns",
)
DETERMINISTIC = Kind(
    "deterministic",
    "share of the variance that the others leave",
    "other columns almost determine it, so nothing can be said about which of them is its cause",
    "Keep one column of those that measure the same",
)
RARE_LEVELS = Kind(
    "rare levels",
    "rows of the rarest level",
    "a level with few rows carries little information",
    "Merge rare levels with others before reading the table",
)
FEW_VALUES = Kind(
    "few values",
    "different values",
    "the column takes only a few different values, which data from a normal distribution never do",
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
