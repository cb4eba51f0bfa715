"""What `gflowdag bench` does: measure what is missing, show it, draw it, set it beside an older run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from gflowdag.errors import GFlowDAGError
from gflowdag.exact import MAX_VARIABLES
from gflowdag.runtime import atomic_write, instead
from gflowdag_lab.bench import ratios, speed_plot, summary
from gflowdag_lab.bench.ladders import METHODS, is_installed, require_methods
from gflowdag_lab.bench.process import measure_apart
from gflowdag_lab.bench.stored_rows import Results, circumstances, joined
from gflowdag_lab.bench.tasks import BASELINE, KINDS, SIZES, plan

QUICK_METHODS = ("exact", "mc3", "order-mcmc", "order-gflownet")
QUICK_SIZES = (5,)
QUICK_KINDS = ("exact", "quality", "sampling", "scores")
QUICK_CAP = 4.0
TOLERANCE = 1.5  # seconds of one machine vary by a quarter from run to run


def run_bench(
    out: Path,
    *,
    methods: Sequence[str] | None = None,
    sizes: Sequence[int | str] | None = None,
    kinds: Sequence[str] | None = None,
    quick: bool = False,
    cap: float | None = None,
    seed: int = 0,
    baseline: str = BASELINE,
    join: Sequence[Path] = (),
    compare: Path | None = None,
    tolerance: float = TOLERANCE,
    console: Console | None = None,
) -> bool:
    """Measure, and show; whether nothing became worse than `compare` by more than the tolerance.

    Rows that `out` or `join` already hold are not measured again, unless they failed. Tables and figure go
    to the same name with `.md` and `.png`, exact posteriors to the folder `references` beside it.

    Args:
        out: JSON file.
        methods: names of methods; by default all that are installed.
        sizes: numbers of variables; by default 5, 11, 16 and 20.
        kinds: measurements; by default all.
        quick: four methods at one size, and a cap of some seconds: under two minutes.
        cap: seconds after which no longer fit is begun; 60 by default.
        seed: of problems and fits.
        baseline: method that the others are set beside.
        join: more files of the same machine, whose rows need not be measured either.
        compare: results of an older run.
        tolerance: how many times worse a measure may become.
        console: where tables go; None shows nothing.
    """
    chosen = require_methods(list(methods or (QUICK_METHODS if quick else METHODS)))
    require_methods([baseline])
    _check(kinds or (), tolerance)
    old = None if compare is None else Results.load(compare)
    results = _gathered(out, join)
    tasks = plan(
        chosen if baseline in chosen else [baseline, *chosen],
        _numbers(sizes) if sizes else (QUICK_SIZES if quick else SIZES),
        kinds=kinds or (QUICK_KINDS if quick else KINDS),
        cap=cap or (QUICK_CAP if quick else 60.0),
        seed=seed,
    )
    show = console or Console(quiet=True)
    for name in chosen:
        if not is_installed(name):
            show.print(f"{name} is not installed and is left out")
    measured = {row["name"] for row in results.rows}
    missing = [task for task in tasks if task.name not in measured]
    if missing:
        now = circumstances()
        results.require_machine(now)
        results.add_commits(now["commit"])
    for number, task in enumerate(missing, start=1):
        row = measure_apart(task, out.parent / "references")
        results.add(row)
        show.print(f"[{number}/{len(missing)}] {_line(row)}", markup=False, soft_wrap=True)
    results.save()
    speed_plot.draw(results.rows, out.with_suffix(".png"))
    with atomic_write(out.with_suffix(".md")) as stream:
        stream.write(summary.page(results, baseline))
    for grid in summary.grids(results.rows, baseline):
        show.print()
        show.print(summary.rich_table(grid))
    show.print(f"\n{summary.legend(baseline)}")
    return old is None or _compare(results, old, tolerance, show)


def _gathered(out: Path, join: Sequence[Path]) -> Results:
    """What has been measured before, in `out` and elsewhere."""
    parts = [Results.load(path) for path in ([out] if out.exists() else []) + list(join)]
    return joined(out, parts) if parts else Results(out, circumstances())


def _compare(new: Results, old: Results, tolerance: float, show: Console) -> bool:
    changes = list(ratios.changes(new, old))
    grid = summary.comparison_grid(changes, tolerance)
    same = ratios.is_same_machine(new, old)
    show.print()
    show.print("Same machine: seconds beside seconds." if same else "Another machine: beside the baselines.")
    if grid.rows:
        show.print(summary.rich_table(grid))
    else:
        show.print(f"None of {len(changes)} measures changed by more than a factor of {tolerance:g}.")
    return all(change.times_worse <= tolerance for change in changes)


def _line(row: dict) -> str:
    shown = "  ".join(f"{name} {summary.number(value)}" for name, value in ratios.measured(row).items())
    return f"{row['name']}  {shown}  {row.get('error', '')}".rstrip()


def _numbers(sizes: Sequence[int | str]) -> list[int]:
    numbers = [int(size) for size in sizes if str(size).isdecimal()]
    if len(numbers) < len(sizes) or any(not 2 <= number <= MAX_VARIABLES for number in numbers):
        raise GFlowDAGError(
            f"sizes are numbers from 2 to {MAX_VARIABLES}, the limit of the exact posterior, which is the "
            f"reference; got {', '.join(map(str, sizes))}"
        )
    return numbers


def _check(kinds: Sequence[str], tolerance: float) -> None:
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise GFlowDAGError(f"there is no measurement {unknown[0]!r}: {instead(unknown[0], KINDS)}")
    if tolerance < 1:
        raise GFlowDAGError(f"the tolerance is a factor of 1 or more, got {tolerance:g}")
