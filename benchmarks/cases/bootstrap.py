"""Bootstrap GES and PC on the paper's problems. Options: `bootstraps=N`, `exact=yes`."""

from __future__ import annotations

from collections.abc import Iterator

import baseline_rows
from gflowdag.estimators.bootstrap import BootstrapGES, BootstrapPC
from harness import Options, Row, case


def _number(options: Options) -> int:
    return int(options.extra.get("bootstraps", 2 if options.quick else 100))


@case
def bootstrap_ges_twenty(options: Options) -> Iterator[Row]:
    """Bootstrap GES: ER2, d = 20, N = 100, five networks, raw and standardised."""
    number = _number(options)
    return baseline_rows.twenty(lambda seed: BootstrapGES(num_bootstraps=number, random_state=seed), options)


@case
def bootstrap_ges_sachs(options: Options) -> Iterator[Row]:
    """Bootstrap GES on continuous Sachs, in both alignments."""
    number = _number(options)
    return baseline_rows.sachs(lambda seed: BootstrapGES(num_bootstraps=number, random_state=seed), options)


@case
def bootstrap_pc_twenty(options: Options) -> Iterator[Row]:
    """Bootstrap PC: ER2, d = 20, N = 100, five networks, raw and standardised."""
    number = _number(options)
    return baseline_rows.twenty(lambda seed: BootstrapPC(num_bootstraps=number, random_state=seed), options)


@case
def bootstrap_pc_sachs(options: Options) -> Iterator[Row]:
    """Bootstrap PC on continuous Sachs, in both alignments."""
    number = _number(options)
    return baseline_rows.sachs(lambda seed: BootstrapPC(num_bootstraps=number, random_state=seed), options)
