"""Skewness, tails and outliers of columns or residuals, and the transform that removes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gflowdag.data import Dataset
from gflowdag.data.read_options import Transform
from gflowdag.posterior.model_fit.finding import Finding, Remedy
from gflowdag.posterior.model_fit.statistics import (
    LEVEL,
    Draw,
    Tested,
    are_few,
    averaged,
    by_parent_set,
    excess_kurtosis,
    has_skewed_middle,
    outlying_rows,
    skewness,
)
from gflowdag.posterior.model_fit.words import SKEWNESS, TAILS, outliers_finding


def shape_findings(data: Dataset, columns: Mapping[str, Sequence[Draw]]) -> list[Finding]:
    """Findings in the shape of columns, or of residuals, by the variable that they belong to.

    A column is named once: for a few outliers where the rest is normal, else for skewness, else for tails.
    """
    outliers: dict[str, list[int]] = {}
    skewed: dict[str, Tested] = {}
    tailed: dict[str, Tested] = {}
    for name, draws in columns.items():
        shape = _Shape(draws, len(columns))
        if shape.is_normal:
            continue
        cells = by_parent_set(draws)[0]  # of the most probable parent set
        far = [outlying_rows(cell.x, len(columns) * len(cells)) for cell in cells]
        rest = [cell._replace(x=np.delete(cell.x, rows)) for cell, rows in zip(cells, far, strict=True)]
        num_rows = sum(len(cell.x) for cell in cells)
        if are_few(np.concatenate(far), num_rows) and _Shape(rest, len(columns)).is_normal:
            outliers[name] = [
                row for cell, rows in zip(cells, far, strict=True) for row in _in_table(cell, rows)
            ]
        elif shape.is_skewed and any(has_skewed_middle(cell.x) for cell in cells):
            skewed[name] = shape.skew
        else:
            tailed[name] = shape.kurtosis
    found = [outliers_finding(outliers, transform_remedy(data, list(outliers)))] if outliers else []
    for kind, tested in ((SKEWNESS, skewed), (TAILS, tailed)):
        if tested:
            names = sorted(tested, key=lambda name: -abs(tested[name].value))
            found.append(kind.finding(names, tested, transform_remedy(data, names)))
    return found


def _in_table(cell: Draw, rows: NDArray[np.int64]) -> list[int]:
    """Rows of a draw as rows of the table."""
    return (rows if cell.rows is None else cell.rows[rows]).tolist()


class _Shape:
    """Whether a column is skewed, heavy- or light-tailed, among `num_columns`."""

    def __init__(self, draws: Sequence[Draw], num_columns: int):
        self.skew, self.kurtosis = averaged(skewness, draws), averaged(excess_kurtosis, draws)
        self.is_skewed = 2 * self.skew.p * num_columns < LEVEL  # two tests: half of the level for each
        self.is_normal = not self.is_skewed and 2 * self.kurtosis.p * num_columns >= LEVEL


def transform_remedy(data: Dataset, names: list[str]) -> Remedy | None:
    """The transform of these columns that should help most; None where their ranks were taken already.

    One for all of them: the logarithm where it helps every one, else ranks.
    """
    names = [name for name in names if data.columns[data.names.index(name)].scores is None]
    if not names:
        return None
    how: Transform = "log" if all(_log_helps(data, name) for name in names) else "rank"
    continuous = [column.name for column in data.columns if column.kind == "continuous"]
    if set(names) == set(continuous):
        return Remedy(transform=how)
    return Remedy(transform=tuple((name, how) for name in names))


def with_one_transform(findings: Sequence[Finding], data: Dataset) -> list[Finding]:
    """The findings with one transform for all of them, of all columns where more than half need one.

    Several transforms in one table make several answers, and a reader who has to choose between them.
    """
    named = [finding.remedy.columns_transformed(data) for finding in findings if finding.remedy]
    affected = {name for columns in named for name in columns}
    continuous = [column.name for column in data.columns if column.kind == "continuous"]
    if 2 * len(affected) > len(continuous):
        affected = set(continuous)
    remedy = transform_remedy(data, [name for name in data.names if name in affected])
    return [
        replace(finding, remedy=remedy) if finding.remedy and finding.remedy.transform else finding
        for finding in findings
    ]


def _log_helps(data: Dataset, name: str) -> bool:
    """Whether the logarithm can be taken and halves the skewness of the column."""
    index = data.names.index(name)
    column = data.columns[index]
    coded = data.values[:, index]
    measured = column.decode(coded[~np.isnan(coded)])
    if column.log or (measured <= 0).any():
        return False
    before, after = abs(skewness(measured).value), abs(skewness(np.log(measured)).value)
    return after < before / 2
