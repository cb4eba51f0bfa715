"""What `gflowdag reproduce` does: run, print every row, name what is missing, write the page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from gflowdag.experiments.page import write_page
from gflowdag.experiments.reproduce import chosen_experiments, run, shown_row
from gflowdag.progress import progress_bar


def run_experiments(
    name: str,
    out: Path,
    *,
    quick: bool,
    methods: Sequence[str] | None = None,
    num_datasets: int | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    together: bool = False,
    page: Path | None = None,
    verbose: bool = True,
) -> bool:
    """Run an experiment, or all; whether no row is missing. See `reproduce.run` for the arguments."""
    faults: list[str] = []
    for experiment in chosen_experiments(name):
        with progress_bar(experiment.name, enabled=verbose and sys.stderr.isatty()) as progress:
            outcome = run(
                experiment,
                out,
                quick=quick,
                methods=methods,
                num_datasets=num_datasets,
                jobs=jobs,
                scheduler=scheduler,
                together=together,
                progress=progress,
            )
        faults += outcome.faults
        if verbose:
            print(f"\n{experiment.title} ({'quick' if quick else 'full'} size)")
            print("\n".join(shown_row(row) for row in outcome.rows))
    path = write_page(out, page or out / "reproduction.md")
    if verbose:
        print(f"\nPage: {path}")
    for fault in dict.fromkeys(faults):
        print(f"gflowdag: {fault}", file=sys.stderr)
    return not faults
