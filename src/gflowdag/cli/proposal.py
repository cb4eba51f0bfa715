"""How `check` would read a table: what `fit --yes` does without being asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gflowdag.data import Dataset, Knowledge
from gflowdag.data.checks import discrete_copies
from gflowdag.data.notes import identifiers, row_numbers
from gflowdag.data.read_options import ReadOptions, Transform
from gflowdag.data.refusals import added_options, mended
from gflowdag.data.spellings import doubts
from gflowdag.data.table import variables
from gflowdag.errors import GFlowDAGError
from gflowdag.posterior.model_fit import check_table
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
    decided: tuple[str, ...]  # sentences for the user


def proposed(
    frame: Frame, options: ReadOptions | None = None, *, knowledge: Knowledge | None = None
) -> Proposal | None:
    """The options with which a table can be read and is fit for the model; None where nothing helps.

    On top of what `mended` does: cells that hardly are values become gaps, identifiers, row numbers and
    copies are left out, and skewed columns are transformed. Each of these is taken only if the table can be
    read with it. What the user said stays as it is.
    """
    options = options or ReadOptions()
    readable = mended(frame, _without_codes(frame, options), knowledge=knowledge) or mended(
        frame, options, knowledge=knowledge
    )
    if readable is None:
        return None
    data = Dataset.from_frame(frame, readable, knowledge=knowledge)
    for change in (_without_names, _without_copies, _without_findings, _transformed):
        changed = change(data, frame, readable)
        if changed is None:
            continue
        try:
            data = Dataset.from_frame(frame, changed, knowledge=knowledge)
        except GFlowDAGError:  # the knowledge speaks of a column, or the transform does not fit
            continue
        readable = changed
    return Proposal(readable, data, _decisions(frame, options, readable, data))


def _without_codes(frame: Frame, options: ReadOptions) -> ReadOptions:
    """The options with cells such as -9999 as missing values."""
    try:
        cells, _ = variables(frame, replace(options, interventions=None, intervention_base=None))
    except GFlowDAGError:
        return options
    said = options.given_kinds(list(cells.columns))
    likely = [doubt.entry for doubt in doubts(cells, said) if doubt.likely]
    return replace(options, missing_values=(*options.missing_values, *likely)) if likely else options


def _without_names(data: Dataset, frame: Frame, options: ReadOptions) -> ReadOptions | None:
    """The options without columns that name or number the rows."""
    said = options.given_kinds(list(data.names))
    kept = frame.set_axis([str(name).strip() for name in frame.columns], axis=1)[list(data.names)]
    return _without(
        [name for name in (*identifiers(kept), *row_numbers(kept)) if name not in said], data, options
    )


def _without_copies(data: Dataset, frame: Frame, options: ReadOptions) -> ReadOptions | None:
    """The options without discrete columns that hold what another one holds."""
    discrete = [index for index, kind in enumerate(data.kinds) if kind == "discrete"]
    pairs = discrete_copies(data.values[:, discrete], [data.names[index] for index in discrete])
    return _without([second for _, second in pairs], data, options)


def _without(names: list[str], data: Dataset, options: ReadOptions) -> ReadOptions | None:
    if data.intervened is not None:
        targets = {data.names[index] for index in np.flatnonzero(data.intervened.any(axis=0))}
        names = [name for name in names if name not in targets]
    return replace(options, drop=(*options.drop, *names)) if names else None


def _without_findings(data: Dataset, frame: Frame, options: ReadOptions) -> ReadOptions | None:
    """The options without near copies, and with levels for measurements that take a few values."""
    findings = [finding for finding in check_table(data).findings if finding.check in _COLUMNS]
    remedies = [finding.remedy for finding in findings if finding.remedy is not None]
    levels = [name for remedy in remedies for name in remedy.discrete if name not in options.continuous]
    changed = replace(options, discrete=(*options.discrete, *levels))
    dropped = [name for remedy in remedies for name in remedy.drop if name not in levels]
    return _without(dropped, data, changed) or (changed if levels else None)


def _transformed(data: Dataset, frame: Frame, options: ReadOptions) -> ReadOptions | None:
    """The options with a transform of columns that are skewed, or have heavy tails or outliers."""
    if options.transform is not None or options.discretize is not None:
        return None
    for finding in check_table(data).findings:  # all of them have one transform as remedy
        if finding.check in _SHAPES and finding.remedy is not None and finding.remedy.transform:
            how = finding.remedy.transform
            return replace(options, transform=how if isinstance(how, str) else dict(how))
    return _logarithms(data, options) if data.is_mixed else None


def _logarithms(data: Dataset, options: ReadOptions) -> ReadOptions | None:
    """The options with the logarithm of columns that are strongly skewed to the right, and not after it.

    Beside discrete columns the levels can cause the skewness, so `check_table` does not report it. But under
    the default score a skewed column looks like a mixture, and that decides directions.
    """
    found: dict[str, Transform] = {}
    for name, numbers in zip(data.names, data.values.T, strict=True):
        if data.kinds[data.names.index(name)] == "continuous" and skewness(numbers).value > _FAR:
            remedy = transform_remedy(data, [name])
            if remedy is not None and remedy.transform in ("log", ((name, "log"),)):
                found[name] = "log"
    return replace(options, transform=found) if found else None


def _decisions(frame: Frame, asked: ReadOptions, taken: ReadOptions, data: Dataset) -> tuple[str, ...]:
    added = added_options(asked, taken)
    used = f"{len(data.names)} of {counted(frame.shape[1], 'column')} and {data.num_rows:,} of "
    used += f"{counted(len(frame), 'row')} are used"
    return (f"Decided by check: {added}; {used}.",) if added else ()
