"""What an experiment is: problems × methods, and what is made of the fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from gflowdag_lab.model import PRIOR
from gflowdag_lab.paper.problems import Spec
from gflowdag_lab.paper.results import Results
from gflowdag_lab.paper.tables import Frame

Tables = dict[str, Frame]


class Section(NamedTuple):
    """What the page says about an experiment, as Markdown."""

    text: str
    unfinished: str = ""  # tables of rows whose training a clock ended; they stand in a section of their own


class Experiment(NamedTuple):
    """One figure or table of the paper."""

    name: str  # on the command line
    title: str
    study: str  # folder of its fits; experiments on the same fits share one
    problems: Callable[[bool, int | None], list[Spec]]  # (quick, number of data sets or None)
    methods: tuple[str, ...]
    reference: str  # the method that others are measured against
    tables: Callable[[Results], Tables]  # tidy, each a CSV file; the one named after the study has its fits
    keys: Mapping[str, tuple[str, ...]]  # of each table, the columns by which its rows replace each other
    figures: Callable[[Tables, Path], list[Path]]  # drawn into a folder
    section: Callable[[Tables], Section]
    prior: str = PRIOR  # on structures, of all fits
