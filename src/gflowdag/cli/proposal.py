"""How `check` would read a table: what `fit --yes` does without being asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gflowdag.data import Dataset, Knowledge
from gflowdag.data.checks import discrete_copies
from gflowdag.data.columns import ROWS_OF_A_LEVEL
from gflowdag.data.notes import identifiers, row_numbers
from gflowdag.data.read_options import ReadOptions, Transform
from gflowdag.data.refusals import added_options, mended
from gflowdag.data.spellings import doubts
from gflowdag.data.table import variables
from gflowdag.errors import GFlowDAGError
from gflowdag.posterior.model_fit import ModelFit, check_table
from gflowdag.posterior.model_fit.shapes import transform_remedy
from gflowdag.posterior.model_fit.statistics import skewness
from gflowdag.runtime.messages import counted

_SHAPES = ("skewness", "tails", "outliers")  # findings that a transform mends
_COLUMNS = ("deterministic", "few values")  # findings that mean another kind, or a column too many
_FAR = 1.0  # skewness, of a gamma distribution with shape 4
Frame = Any  # a pandas DataFrame; what its methods return is typed too loosely for a checker to follow


class Proposal(NamedTuple):
    """A way of reading a table that works, and why it is not the one that was asked for."""

    options: ReadOptions
    data: Dataset
    model_fit: ModelFit  # of that data
    decided: tuple[str, ...]  # sentences for the user


class _Read(NamedTuple):
    """A table as it was read with some options."""

    frame: Frame
    options: ReadOptions
    data: Dataset
    model_fit: ModelFit


def proposed(
    frame: Frame,
    options: ReadOptions | None = None,
    *,
    knowledge: Knowledge | None = None,
    data: Dataset | None = None,
) -> Proposal | None:
    """The options with which a table can be read and is fit for the model; None where nothing helps.

    On top of what `mended` does: cells that hardly are values become gaps, identifiers, row numbers and
    copies are left out, numbers with few rows for each value are measurements, and skewed columns are
    transformed. Each of these is taken only if the table can be read with it. What the user said stays as it
    is. `data` is the table as it was read with `options`, if it was.
    """
    options = options or ReadOptions()
    without_codes = _without_codes(frame, options)
    if data is not None and without_codes is options:
        read = _Read(frame, options, data, check_table(data))
    else:
        readable = mended(frame, without_codes, knowledge=knowledge) or mended(
            frame, options, knowledge=knowledge
        )
        if readable is None:
            return None
        read = _read(frame, readable, knowledge)
    for change in (_without_names, _without_copies, _with_measurements, _without_findings, _transformed):
        changed = change(read)
        if changed is None:
            continue
        try:
            read = _read(frame, changed, knowledge)
        except GFlowDAGError:  # the knowledge speaks of a column, or the transform does not fit
            continue
    return Proposal(read.options, read.data, read.model_fit, _decisions(options, read))


def _read(frame: Frame, options: ReadOptions, knowledge: Knowledge | None) -> _Read:
    data = Dataset.from_frame(frame, options, knowledge=knowledge)
    return _Read(frame, options, data, check_table(data))


def _without_codes(frame: Frame, options: ReadOptions) -> ReadOptions:
    """The options with cells such as -9999 as missing values."""
    try:
        cells, _ = variables(frame, replace(options, interventions=None, intervention_base=None))
    except GFlowDAGError:
        return options
    said = options.given_kinds(list(cells.columns))
    likely = [doubt.entry for doubt in doubts(cells, said) if doubt.likely]
    return replace(options, missing_values=(*options.missing_values, *likely)) if likely else options


def _without_names(read: _Read) -> ReadOptions | None:
    """The options without columns that name or number the rows."""
    names = list(read.data.names)
    said = read.options.given_kinds(names)
    kept = read.frame.set_axis([str(name).strip() for name in read.frame.columns], axis=1)[names]
    return _without([name for name in (*identifiers(kept), *row_numbers(kept)) if name not in said], read)


def _without_copies(read: _Read) -> ReadOptions | None:
    """The options without discrete columns that hold what another one holds."""
    data = read.data
    discrete = [index for index, kind in enumerate(data.kinds) if kind == "discrete"]
    pairs = discrete_copies(data.values[:, discrete], [data.names[index] for index in discrete])
    return _without([second for _, second in pairs], read)


def _without(names: list[str], read: _Read) -> ReadOptions | None:
    data, options = read.data, read.options
    if data.intervened is not None:
        targets = {data.names[index] for index in np.flatnonzero(data.intervened.any(axis=0))}
        names = [name for name in names if name not in targets]
    return replace(options, drop=(*options.drop, *names)) if names else None


def _with_measurements(read: _Read) -> ReadOptions | None:
    """The options with measurements for numbers taken as levels that have few rows each."""
    data, options = read.data, read.options
    if options.discretize is not None:
        return None
    said = options.given_kinds(list(data.names))
    few = [
        column.name
        for column in data.columns
        if column.name not in said
        and column.holds_numbers
        and len(column.levels or ()) > max(2, data.num_rows // ROWS_OF_A_LEVEL)
    ]
    return replace(options, continuous=(*options.continuous, *few)) if few else None


def _without_findings(read: _Read) -> ReadOptions | None:
    """The options without near copies, and with levels for measurements that take a few values."""
    findings = [finding for finding in read.model_fit.findings if finding.check in _COLUMNS]
    options = read.options
    remedies = [finding.remedy for finding in findings if finding.remedy is not None]
    levels = [name for remedy in remedies for name in remedy.discrete if name not in options.continuous]
    changed = replace(options, discrete=(*options.discrete, *levels))
    dropped = [name for remedy in remedies for name in remedy.drop if name not in levels]
    return _without(dropped, read._replace(options=changed)) or (changed if levels else None)


def _transformed(read: _Read) -> ReadOptions | None:
    """The options with a transform of columns that are skewed, or have heavy tails or outliers."""
    options = read.options
    if options.transform is not None or options.discretize is not None:
        return None
    for finding in read.model_fit.findings:  # all of them have one transform as remedy
        if finding.check in _SHAPES and finding.remedy is not None and finding.remedy.transform:
            how = finding.remedy.transform
            return replace(options, transform=how if isinstance(how, str) else dict(how))
    return _logarithms(read.data, options) if read.data.is_mixed else None


def _logarithms(data: Dataset, options: ReadOptions) -> ReadOptions | None:
    """The options with the logarithm of columns that are strongly skewed to the right, and not after it.

    Beside discrete columns the levels can cause the skewness, so `check_table` does not report it. But under
    the default score a skewed column looks like a mixture, and that decides directions.
    """
    found: dict[str, Transform] = {}
    for name, numbers in zip(data.names, data.values.T, strict=True):
        seen = numbers[~np.isnan(numbers)]
        if data.kinds[data.names.index(name)] == "continuous" and skewness(seen).value > _FAR:
            remedy = transform_remedy(data, [name])
            if remedy is not None and remedy.transform in ("log", ((name, "log"),)):
                found[name] = "log"
    return replace(options, transform=found) if found else None


def _decisions(asked: ReadOptions, read: _Read) -> tuple[str, ...]:
    added = added_options(asked, read.options)
    rows, columns = counted(len(read.frame), "row"), counted(read.frame.shape[1], "column")
    used = f"{read.data.num_variables} of {columns} and {read.data.num_rows:,} of {rows} are used"
    return (f"Decided by check: {added}; {used}.",) if added else ()
