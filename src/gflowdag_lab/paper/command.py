"""What `gflowdag reproduce` does: run, print every row, name what is missing, write the page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from gflowdag.runtime import progress_bar
from gflowdag_lab.paper.page import write_page
from gflowdag_lab.paper.reproduce import chosen_experiments, run, run_together, shown_row


def run_experiments(
    name: str,
    out: Path,
    *,
    quick: bool,
    methods: Sequence[str] | None = None,
    num_datasets: int | None = None,
    budget: float | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    together: bool = False,
    page: Path | None = None,
    keep: bool = False,
    verbose: bool = True,
) -> bool:
    """Run an experiment, or all; whether no row is missing.

    See `reproduce.run` and `page.write_page` for the arguments; with `together`, `reproduce.run_together`
    comes first.
    """
    faults: list[str] = []
    experiments, shown = chosen_experiments(name), verbose and sys.stderr.isatty()
    fits = {"quick": quick, "methods": methods, "num_datasets": num_datasets, "budget": budget}
    if together:
        with progress_bar("together", enabled=shown) as progress:
            run_together(experiments, out, **fits, progress=progress)
    for experiment in experiments:
        with progress_bar(experiment.name, enabled=shown) as progress:
            outcome = run(experiment, out, **fits, jobs=jobs, scheduler=scheduler, progress=progress)
        faults += outcome.faults
        if verbose:
            print(f"\n{experiment.title} ({'quick' if quick else 'full'} size)")
            print("\n".join(shown_row(row) for row in outcome.rows))
    path = write_page(out, page or out / "reproduction.md", keep=keep)
    if verbose:
        print(f"\nPage: {path}")
    for fault in dict.fromkeys(faults):
        print(f"gflowdag: {fault}", file=sys.stderr)
    return not faults
