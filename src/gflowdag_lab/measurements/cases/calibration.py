"""Whether stated probabilities are frequencies: every normalised score, every sampler.

How it is judged, fixed before anything was measured. A row is one score under one method; it has five tests,
reliability and four ranks (`measurements.calibration`). A row is *calibrated* if the smallest of its five
p-values, times five, is above 0.01. Rows of wrong models must be below 0.001: the tests can see. With as many
rows as there are here one in a hundred fails by chance; a row that fails is run again with another seed, and
both results are reported.

What cannot be calibrated is measured beside and not judged: the degenerate Gaussian score on tables of the
conditional Gaussian one, since it is no likelihood of levels, and columns that are standardised, as a fit
does by default, although the prior says how large they are.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gflowdag import BDeu, BGe, ConditionalGaussian, DegenerateGaussian, GeneralizedLinear
from gflowdag.runtime import atomic_write, read_json
from gflowdag.score import named_score
from gflowdag_lab.measurements.calibration import (
    TESTS,
    Answerer,
    Setting,
    adjusted,
    by_method,
    collect,
    exactly,
)
from gflowdag_lab.measurements.harness import Options, Row, case

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOLDER = Path("docs/laboratory/calibration")
LIMIT = 0.01  # smallest p-value of a row, times its tests
_LEVELS = (2, 3, 2, 3, 2)
BGE = Setting("BGe", BGe(), 30)
BDE = Setting("BDeu, sample size 1", named_score("bde"), 60, num_levels=_LEVELS)
BDEU = Setting("BDeu, default", BDeu(), 30, num_levels=_LEVELS)
MIXED = Setting("conditional Gaussian", ConditionalGaussian(), 40, num_levels=(2, 3, 0, 0, 0))
LOGISTIC = Setting("generalised linear", GeneralizedLinear(), 40, num_levels=(2, 3, 0, 0, 0))
NORMALISED = (
    BGE,
    BDE,
    BDEU,
    MIXED,
    LOGISTIC,
    replace(BGE, name="BGe, prior uniform", prior="uniform"),
    replace(BGE, name="BGe, 8 variables", num_variables=8, num_rows=50),
    replace(BDEU, name="BDeu, 8 variables", num_variables=8, num_rows=60, num_levels=2),
)
WRONG = (
    replace(BGE, name="wrong: BGe with alpha_w = d + 10", fitted_by=BGe(alpha_w=15)),
    replace(BGE, name="wrong: prior uniform for fair", fitted_prior="uniform"),
    replace(BDE, name="wrong: sample size 16 for 1", fitted_by=named_score("bde", ess=16)),
)
MEASURED = (
    replace(MIXED, name="degenerate Gaussian on tables of the conditional", fitted_by=DegenerateGaussian()),
    replace(BGE, name="BGe, standardised", standardize=True),
)
# Short runs: what is tested is that a sampler is right, not how long its defaults run.
SAMPLERS: dict[str, dict[str, Any]] = {
    "mc3": {"num_chains": 16, "burn_in": 2000, "num_steps": 8000, "thinning": 40},
    "order-mcmc": {"iterations": 200, "num_chains": 16},
    "parent-set-mcmc": {},
    "gadget": {"burn_in": 250, "num_steps": 2000, "n_jobs": 1},
    "order-gflownet": {"iterations": 150, "width": 64, "depth": 2, "batch_size": 64},
    "dag-gflownet": {"iterations": 200},
}


@case
def calibration(options: Options) -> Iterator[Row]:
    """Exact posteriors of all scores; `tables` of each, `draws` from each posterior; `settings` chooses."""
    chosen = options.extra["settings"].split(";") if "settings" in options.extra else None
    num_tables = 100 if options.quick else int(options.extra.get("tables", 2000))
    num_draws = 99 if options.quick else int(options.extra.get("draws", 999))
    for kind, settings in (("normalised", NORMALISED), ("wrong", WRONG), ("measured", MEASURED)):
        for setting in settings:
            if chosen is not None and setting.name not in chosen:
                continue
            yield {"kind": kind} | _row(setting, "exact", exactly(num_draws), num_tables, options.seed)


@case
def calibration_samplers(options: Options) -> Iterator[Row]:
    """Every sampler on BGe and the default of discrete tables; `methods`, `tables` choose."""
    num_tables = 5 if options.quick else int(options.extra.get("tables", 100))
    methods = options.extra.get("methods", ",".join(SAMPLERS)).split(",")
    for method in methods:
        for setting in (BGE, BDEU):
            answer = by_method(method, 999, **SAMPLERS[method])
            yield {"kind": "normalised"} | _row(setting, method, answer, num_tables, options.seed)


@case
def calibration_picture(options: Options) -> Iterator[Row]:
    """The reliability curves of all files in `docs/laboratory/calibration`, in one picture."""
    rows = [row for path in sorted(FOLDER.glob("*.json")) for row in read_json(path)["rows"]]
    path = Path("docs/images/calibration.png")
    _draw(rows, path)
    yield {"picture": str(path), "curves": len(rows)}


def _row(setting: Setting, method: str, answer: Answerer, num_tables: int, seed: int) -> Row:
    started = time.process_time()
    collected = collect(setting, answer, num_tables, seed)
    found = collected.p_values()
    return {
        "setting": setting.name,
        "method": method,
        "tables": num_tables,
        **{name: found[name] for name in TESTS},
        "adjusted": adjusted(list(found.values())),
        "calibrated": str(adjusted(list(found.values())) > LIMIT),
        "cpu_seconds": round(time.process_time() - started, 1),
        "curve": collected.curve(),
        "ranks": np.histogram(np.array(collected.ranks)[:, 0], bins=10, range=(0, 1))[0].tolist(),
    }


def _draw(rows: list[Row], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = 5
    figure = Figure(figsize=(2.6 * columns, 2.8 * -(-len(rows) // columns)), layout="constrained")
    axes = figure.subplots(-(-len(rows) // columns), columns, squeeze=False, sharex=True, sharey=True)
    for ax in axes.flat:
        ax.set_axis_off()
    for ax, row in zip(axes.flat, rows, strict=False):
        _draw_curve(ax, row)
    figure.supxlabel("stated probability", fontsize=9)
    figure.supylabel("share of edges that are there", fontsize=9)
    with atomic_write(path, "wb") as stream:
        FigureCanvasAgg(figure).print_png(stream)


def _draw_curve(ax: Axes, row: Row) -> None:
    stated, found, low, high = (
        [point[name] for point in row["curve"]] for name in ("stated", "found", "low", "high")
    )
    colour = {"normalised": "#1f6f8b", "wrong": "#b5422c", "measured": "#8a6d1f"}[row["kind"]]
    ax.set_axis_on()
    ax.plot([0, 1], [0, 1], color="#8a949e", lw=0.8)
    ax.fill_between(stated, low, high, color=colour, alpha=0.2, lw=0)
    ax.plot(stated, found, "o-", color=colour, ms=3, lw=1)
    setting = textwrap.fill(row["setting"], 32)
    ax.set_title(f"{setting}\n{row['method']}, {row['tables']} tables", fontsize=8)
    ax.set(xlim=(0, 1), ylim=(0, 1))
