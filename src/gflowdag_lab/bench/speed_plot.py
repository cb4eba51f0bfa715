"""The figure of a benchmark: error against seconds at each size, then speed and growth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gflowdag.runtime import atomic_write
from gflowdag_lab.bench.measure import GOALS
from gflowdag_lab.bench.stored_rows import Row
from gflowdag_lab.bench.tasks import SUBJECTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SMALLEST_ERROR = 1e-3  # smaller ones are drawn here: exact has none
# Kind, figure, axis of the abscissa, title.
_PANELS = (
    ("sampling", "dags_per_s", "num_variables", "DAGs drawn per second"),
    ("exact", "posterior_s", "num_variables", "exact posterior, seconds"),
    ("scores", "local_per_s", "num_variables", "local scores per second"),
    ("variables", "work_s", "num_variables", "short fit, seconds of work"),
    ("rows", "work_s", "num_rows", "short fit, seconds of work"),
)
_AXES = {"num_variables": "variables", "num_rows": "rows"}


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the figure of all rows as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    sizes = sorted({row["num_variables"] for row in rows if row["kind"] == "quality" and row.get("rungs")})
    panels = [panel for panel in _PANELS if any(row["kind"] == panel[0] and panel[1] in row for row in rows)]
    columns = max(len(sizes), len(panels), 1)
    figure = Figure(figsize=(3.4 * columns, 6.4), layout="constrained")
    axes = figure.subplots(2, columns, squeeze=False)
    for ax in axes.flat:
        ax.set_axis_off()
    for ax, d in zip(axes[0], sizes, strict=False):
        _draw_errors(ax, [row for row in rows if row["kind"] == "quality" and row["num_variables"] == d])
        ax.set(title=f"d = {d}", xlabel="seconds without compilation")
    axes[0, 0].set_ylabel("largest error of an edge probability")
    for ax, (kind, name, axis, title) in zip(axes[1], panels, strict=False):
        _draw_curves(ax, [row for row in rows if row["kind"] == kind and name in row], axis, name)
        ax.set(title=title, xlabel=_AXES[axis])
    named = {
        label: line for ax in axes.flat for line, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=2 * columns)
    with atomic_write(path, "wb") as stream:
        FigureCanvasAgg(figure).print_png(stream)


def _draw_errors(ax: Axes, rows: Sequence[Row]) -> None:
    ax.set_axis_on()
    for row in rows:
        errors = [max(rung["error"], _SMALLEST_ERROR) for rung in row.get("rungs", ())]
        seconds = [rung["work"] for rung in row.get("rungs", ())]
        ax.plot(seconds, errors, "o-", ms=3, label=row["subject"], color=_colour(row["subject"]))
    for goal in GOALS:
        ax.axhline(goal, color="#8a949e", lw=0.8, ls="--")
    ax.set(xscale="log", yscale="log", ylim=(_SMALLEST_ERROR / 1.5, 1.5))


def _draw_curves(ax: Axes, rows: Sequence[Row], axis: str, name: str) -> None:
    ax.set_axis_on()
    for subject in dict.fromkeys(row["subject"] for row in rows):
        points = sorted((row[axis], row[name]) for row in rows if row["subject"] == subject)
        x, y = zip(*points, strict=True)
        ax.plot(x, y, "o-", ms=3, label=subject, color=_colour(subject))
    ax.set(yscale="log", xscale="log" if axis == "num_rows" else "linear")


def _colour(subject: str) -> Any:
    """The same colour in every panel; grey for what a file of a stranger may name."""
    from matplotlib import colormaps

    return colormaps["tab20"](SUBJECTS.index(subject)) if subject in SUBJECTS else "grey"
