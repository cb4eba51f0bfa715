"""What the figures need beyond `gflowdag.display.plots`: grids of axes, box plots, curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gflowdag.runtime import atomic_write
from gflowdag_lab.paper.tables import Frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# One colour for each row, wherever it is drawn.
COLOURS = {
    "exact": "#222222",
    "mc3": "#729ece",
    "gadget": "#aec7e8",
    "bootstrap-ges": "#ffbb78",
    "bootstrap-pc": "#ff9e4a",
    "dibs": "#67bf5c",
    "bcd-nets": "#98df8a",
    "dag-gflownet-paper": "#ed665d",
    "dag-gflownet-retuned": "#d6604d",
    "dag-gflownet": "#b2182b",
    "dag-gflownet-chains": "#e7969c",
    "dag-gflownet-canonical": "#a55194",
    "order-gflownet": "#7b3294",
    "order-mcmc": "#1f4e79",
    "plain-policy": "#bbbbbb",
    "temperature-schedule": "#d8b365",
    "reparametrised-policy": "#5ab4ac",
}


def panels(rows: int, columns: int, *, width: float = 3.2, height: float = 3.0) -> tuple[Figure, Any]:
    """A figure with a grid of axes, object [rows, columns]."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


@contextmanager
def colours_of(methods: Iterable[str]) -> Iterator[None]:
    """Let `gflowdag.display.plots` draw the methods, in this order, in their colours."""
    import matplotlib
    from cycler import cycler

    with matplotlib.rc_context({"axes.prop_cycle": cycler(color=[COLOURS[method] for method in methods])}):
        yield


def save(figure: Figure, path: Path) -> Path:
    """Write a PNG file."""
    with atomic_write(path, "wb") as stream:
        figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
    return path


def boxes(
    axes: Axes, values: Mapping[str, Sequence[float]], *, name: Callable[[str], str], title: str
) -> None:
    """One horizontal box per method, the first on top; a line without a box where there are no values."""
    methods = list(values)
    drawn = axes.boxplot(
        [list(values[method]) for method in methods],
        orientation="horizontal",
        tick_labels=[name(method) for method in methods],
        patch_artist=True,
        showfliers=False,
        medianprops={"color": "black"},
    )
    for patch, method in zip(drawn["boxes"], methods, strict=True):
        patch.set(facecolor=COLOURS[method], alpha=0.8)
    axes.invert_yaxis()
    axes.locator_params(axis="x", nbins=4)
    axes.grid(axis="x", linewidth=0.4)
    axes.set_title(title, fontsize=10)


def curves(axes: Axes, table: Frame, x: str, y: str, *, name: Callable[[str], str]) -> None:
    """A line for each method."""
    for method, rows in table.groupby("method", sort=False):
        means = rows.groupby(x)[y].median()
        axes.plot(means.index, means, marker="o", color=COLOURS[str(method)], label=name(str(method)))
    axes.grid(linewidth=0.4)
