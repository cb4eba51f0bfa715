"""Rows as ratios: to a baseline of the same run, and to an older run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gflowdag_lab.bench.stored_rows import MACHINE, RATE, Results, Row, is_measure
from gflowdag_lab.bench.tasks import BASELINE

# What a kind of measurement is set beside; every other kind beside the baseline method.
_OF_KIND = {"exact": "sumu", "scores": "plain"}


def measured(row: Row) -> dict[str, float]:
    """The measured measures of a row, by name."""
    return {name: value for name, value in row.items() if is_measure(name)}


def times_better(measure: str, value: float, other: float) -> float:
    """How many times better a value is than another: above 1 is faster, or smaller."""
    if min(value, other) <= 0:
        return math.nan
    return value / other if measure.endswith(RATE) else other / value


class Ratio(NamedTuple):
    """How many times better than the baseline."""

    value: float
    is_bound: bool  # the baseline had not arrived when it stopped: at least so many times


def to_baseline(rows: Sequence[Row], row: Row, measure: str, baseline: str = BASELINE) -> Ratio | None:
    """A measure beside that of the baseline at the same size; None where there is nothing beside it."""
    subject = _OF_KIND.get(row["kind"], baseline)
    same = ("kind", "num_variables", "num_rows")
    beside = [r for r in rows if r["subject"] == subject and all(r[key] == row[key] for key in same)]
    if not beside or measure not in row:
        return None
    if measure in beside[0]:
        return Ratio(times_better(measure, row[measure], beside[0][measure]), False)
    if beside[0].get("rungs"):
        return Ratio(times_better(measure, row[measure], beside[0]["rungs"][-1]["work"]), True)
    return None


class Change(NamedTuple):
    """A measure now and in an older run."""

    name: str  # of the row
    measure: str
    before: float
    now: float  # infinite where the goal was reached before and is not now
    times_worse: float  # above 1 is slower, or larger


def is_same_machine(new: Results, old: Results) -> bool:
    """Whether seconds can be set beside seconds."""
    devices = [{row.get("device") for row in results.rows} - {None} for results in (new, old)]
    return devices[0] == devices[1] and all(new.about.get(key) == old.about.get(key) for key in MACHINE)


def changes(new: Results, old: Results) -> Iterator[Change]:
    """Every measure that both runs have, worst first.

    On one machine seconds are compared with seconds. On two machines every measure is divided by that of
    the baseline of its own run, so that the machines cancel; what has no baseline is left out, and so is
    memory, which needs none.
    """
    same_machine = is_same_machine(new, old)
    before = {row["name"]: row for row in old.rows}
    found = []
    for row in new.rows:
        old_row = before.get(row["name"], {})
        for measure, value in measured(old_row).items():
            now = row.get(measure, math.inf)
            if same_machine or measure.endswith("_mib"):
                worse = math.inf if math.isinf(now) else times_better(measure, value, now)
            else:
                worse = _relative(new, old, row, old_row, measure)
            if not math.isnan(worse):
                found.append(Change(row["name"], measure, value, now, worse))
    yield from sorted(found, key=lambda change: -change.times_worse)


def _relative(new: Results, old: Results, row: Row, old_row: Row, measure: str) -> float:
    now, before = to_baseline(new.rows, row, measure), to_baseline(old.rows, old_row, measure)
    if now is None or before is None or now.is_bound or before.is_bound:
        return math.nan
    return before.value / now.value
