"""Gadget on the paper's problems, with a uniform and its own prior. Options: `candidates=K`, `exact=yes`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gflowdag.estimators import Gadget
from gflowdag_lab.measurements import baseline_rows
from gflowdag_lab.measurements.harness import Options, Row, case


def _learner(options: Options, prior: str) -> baseline_rows.Learner:
    steps: dict[str, Any] = {"burn_in": 20, "num_steps": 40, "num_runs": 2} if options.quick else {}
    candidates = int(options.extra.get("candidates", 10))
    return lambda seed: Gadget(prior=prior, num_candidates=candidates, random_state=seed, **steps)


@case
def gadget_twenty(options: Options) -> Iterator[Row]:
    """Gadget: ER2, d = 20, N = 100, five networks, raw and standardised."""
    for prior in ("uniform", "fair"):
        for found in baseline_rows.twenty(_learner(options, prior), options):
            yield {"prior": prior, **found}


@case
def gadget_sachs(options: Options) -> Iterator[Row]:
    """Gadget on continuous Sachs, in both alignments."""
    for prior in ("uniform", "fair"):
        for found in baseline_rows.sachs(_learner(options, prior), options):
            yield {"prior": prior, **found}
