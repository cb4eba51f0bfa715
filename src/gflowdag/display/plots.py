"""Figures for papers, in matplotlib: each takes an Axes, or makes one, and returns it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle, pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from gflowdag.display.block_layout import BlockLayout, graph_layout
from gflowdag.display.curves import roc_points
from gflowdag.display.digest import OPEN_SHARE
from gflowdag.display.truncate import num_columns, truncated_names
from gflowdag.errors import DataError
from gflowdag.posterior import metrics
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.truth import Truth, align, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["against_exact", "agreement", "class_coverage", "graph", "heat_map", "roc", "traces"]

_BLUE, _GREEN, _ORANGE, _RED, _GREY = "#0e5fa8", "#17713f", "#b87400", "#b3261e", "#8a949e"
_FEATURES = {
    "edge": Posterior.edge_probabilities,
    "path": Posterior.path_probabilities,
    "markov blanket": Posterior.markov_blanket_probabilities,
}
# What a drawing takes in natural size.
_CHARACTER = 0.28  # in units of the layout
_UNIT, _LAYER = 0.3, 0.52  # inches
_MAX_LABEL = 18  # columns
_FONT_SIZE, _LEAST_FONT_SIZE = 10.0, 3.0
_LARGEST = 24.0  # side of a figure
_TICK_SPACING = 6.5  # least distance of two names along an axis


def heat_map(posterior: Posterior, *, ax: Axes | None = None, colour_bar: bool = True) -> Axes:
    """Edge probabilities, sources down and targets across, likely causes first.

    Beyond 40 variables those of one connected block stand side by side. Names that would overlap are
    left out.
    """
    p = posterior.edge_probabilities().to_numpy()
    size = float(np.clip(0.14 * len(p), 4.8, _LARGEST))
    ax = _axes(ax, (1.33 * size, size))
    layout, blocks = _layout(posterior, [1.0] * len(p))
    block_of = np.zeros(len(p))
    for place, block in enumerate(blocks):
        block_of[block.members] = place
    order = np.lexsort((layout.positions[:, 0], layout.positions[:, 1], block_of))
    image = ax.imshow(p[np.ix_(order, order)], vmin=0, vmax=1, cmap="Blues")
    width, height = _inches(ax)
    points = 72 * min(width, height) / len(p)
    shown = range(0, len(p), max(1, int(np.ceil(_TICK_SPACING / points))))
    names = [str(posterior.names[order[k]]) for k in shown]
    size = float(np.clip(0.85 * points * shown.step, 5.0, _FONT_SIZE))
    ax.set_xticks(shown, names, rotation=90, fontsize=size)
    ax.set_yticks(shown, names, fontsize=size)
    for tick in (*ax.get_xticklabels(), *ax.get_yticklabels()):
        tick.set_parse_math(False)
    ax.set(xlabel="target", ylabel="source")
    if colour_bar:
        ax.figure.colorbar(image, ax=ax, label="probability")
    return ax


def graph(
    posterior: Posterior, *, threshold: float = 0.5, truth: Truth | None = None, ax: Axes | None = None
) -> Axes:
    """The edges above `threshold`, causes above effects.

    The thicker, the more probable; a hollow head marks an edge whose direction is open (the reverse has a
    quarter of the probability or more). Beyond 40 variables those of one connected block are drawn
    together. A figure of its own is as large as the names need; in a given `ax` they become smaller.

    Args:
        posterior: what to draw.
        threshold: least probability of an edge.
        truth: a true graph: hits turn green, reversals orange, false edges red, missed ones dashed grey.
        ax: where to draw.
    """
    from matplotlib.patches import BoxStyle

    p = posterior.edge_probabilities().to_numpy()
    labels = truncated_names(posterior.names, _MAX_LABEL)
    widths = [max(1.0, _CHARACTER * num_columns(label) + 0.8) for label in labels]
    layout, blocks = _layout(posterior, widths)
    left, top, right, bottom = layout.extent(widths)
    natural = ((right - left + 1) * _UNIT, (bottom - top + 1.2) * _LAYER)
    shrunk = min(1.0, _LARGEST / max(natural))
    ax = _axes(ax, (max(6.4, natural[0] * shrunk), max(4.8, natural[1] * shrunk)))
    ax.set(xlim=(left - 0.5, right + 0.5), ylim=(-bottom - 0.6, -top + 0.6))
    ax.set_axis_off()
    scale = min(1.0, *(has / needs for has, needs in zip(_inches(ax), natural, strict=True)))
    for block in blocks:
        _draw_block(ax, block.box)
    true = None if truth is None else align(truth, posterior.names)
    shown = p > threshold
    for i, j in np.argwhere(shown):
        forward, reverse = float(p[i, j]), float(p[j, i])
        hollow = reverse >= OPEN_SHARE * (forward + reverse)
        colour = _BLUE if true is None else _GREEN if true[i, j] else _ORANGE if true[j, i] else _RED
        _draw_edge(ax, layout, i, j, colour, scale * (0.6 + 2 * forward), hollow, both=bool(shown[j, i]))
    if true is not None:
        for i, j in np.argwhere(true & ~shown & ~shown.T):
            _draw_edge(ax, layout, i, j, _GREY, scale, False, both=False, dashed=True)
    box = {"boxstyle": BoxStyle("round", pad=0.35), "facecolor": "#eef3f7", "edgecolor": "#9fb0bf"}
    style = {"fontsize": max(scale * _FONT_SIZE, _LEAST_FONT_SIZE), "linespacing": 1.0, "parse_math": False}
    for label, (x, y) in zip(labels, layout.positions, strict=True):
        ax.text(x, -y, label, ha="center", va="center", bbox={**box, "linewidth": scale}, zorder=3, **style)
    return ax


def _layout(posterior: Posterior, widths: Sequence[float]) -> BlockLayout:
    """Places of the variables; of many, in a drawing about as high as wide."""
    return graph_layout(
        posterior.consensus_graph(0.2).to_numpy(),
        widths=widths,
        weights=posterior.edge_probabilities().to_numpy(),
        layer_height=_LAYER / _UNIT,
        box=(20.0, 15.0),
        gap=0.8,
    )


def _draw_block(ax: Axes, box: Any) -> None:
    from matplotlib.patches import FancyBboxPatch

    left, top, right, bottom = box
    ax.add_patch(
        FancyBboxPatch(
            (left, -bottom),
            right - left,
            bottom - top,
            boxstyle="round,pad=0,rounding_size=0.3",
            facecolor="#f6f7f8",
            edgecolor="#d9dedf",
            linewidth=0.6,
            zorder=1,
        )
    )


def _inches(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    place = ax.get_position()
    width, height = figure.get_size_inches()
    return float(place.width * width), float(place.height * height)


def _draw_edge(
    ax: Axes,
    layout: Any,
    i: int,
    j: int,
    colour: str,
    width: float,
    hollow: bool,
    *,
    both: bool,
    dashed: bool = False,
) -> None:
    """A smooth arrow from i to j, through its bends; side-stepped where the reverse is drawn too."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    bends = layout.bends.get((i, j))
    if bends is None and (j, i) in layout.bends:
        bends = layout.bends[j, i][::-1]
    points = [layout.positions[i], *(() if bends is None else bends), layout.positions[j]]
    points = np.array(points) * [1, -1]
    side = 0.08 if both else 0.0
    points[:, 0] += side if i < j else -side
    down = np.sign(points[-1, 1] - points[0, 1])
    points[0, 1] += 0.18 * down
    points[-1, 1] -= 0.2 * down
    vertices, codes = [points[0]], [Path.MOVETO]
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2 if down else y0 + 0.45
        vertices += [(x0, middle), (x1, middle), (x1, y1)]
        codes += [Path.CURVE4] * 3
    ax.add_patch(
        FancyArrowPatch(
            path=Path(vertices, codes),
            arrowstyle="-|>",
            mutation_scale=5 + 8 * min(width, 1.0),
            linewidth=width,
            linestyle="--" if dashed else "-",
            edgecolor=colour,
            facecolor="white" if hollow else colour,
            zorder=2,
        )
    )


def against_exact(
    estimate: Posterior | Sequence[Posterior],
    exact: Posterior | Sequence[Posterior],
    *,
    feature: Literal["edge", "path", "markov blanket"] = "edge",
    ax: Axes | None = None,
) -> Axes:
    """Probabilities of features under an estimate against those of the exact posterior (paper, figure 3).

    Args:
        estimate: a posterior, or one for each of several data sets.
        exact: the exact posterior, or as many.
        feature: which feature.
        ax: where to draw; the Pearson correlation goes into its corner.
    """
    ax = _axes(ax)
    if feature not in _FEATURES:
        raise DataError(f"feature must be one of {', '.join(_FEATURES)}; got {feature!r}")
    estimates = [estimate] if isinstance(estimate, Posterior) else list(estimate)
    exacts = [exact] if isinstance(exact, Posterior) else list(exact)
    x, y = [], []
    for one, judge in zip(estimates, exacts, strict=True):
        names = list(judge.names)
        between = ~np.eye(len(names), dtype=bool)
        x.append(_FEATURES[feature](judge).to_numpy()[between])
        y.append(_FEATURES[feature](one).loc[names, names].to_numpy()[between])
    name = feature.replace("markov", "Markov")
    return agreement(np.concatenate(x), np.concatenate(y), label=f"estimate, {name}s", ax=ax)


def agreement(
    exact: ArrayLike,
    estimate: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    label: str = "estimate",
    ax: Axes | None = None,
) -> Axes:
    """Estimated probabilities against exact ones, one dot each, with their correlation in the corner.

    Args:
        exact: probabilities [n].
        estimate: of the same events [n].
        groups: names [n], such as those of data sets; each group has a colour and a correlation of its own.
        label: of the estimates.
        ax: where to draw.
    """
    ax, x, y = _axes(ax), np.asarray(exact), np.asarray(estimate)
    ax.plot([0, 1], [0, 1], color=_GREY, linewidth=0.8, zorder=1)
    names = np.full(len(x), "") if groups is None else np.asarray(groups)
    for line, (name, colour) in enumerate(zip(dict.fromkeys(names), cycle((_RED, _BLUE)), strict=False)):
        mine = names == name
        ax.scatter(x[mine], y[mine], s=9, color=colour, alpha=0.5, linewidths=0, zorder=2)
        said = f"{name}: r" if name else "r"
        style = {"color": colour, "fontsize": 8} if name else {}
        said += f" = {np.corrcoef(x[mine], y[mine])[0, 1]:.4f}"
        ax.text(0.97, 0.03 + 0.07 * line, said, ha="right", transform=ax.transAxes, **style)
    ax.set(xlabel="exact posterior", ylabel=label, aspect="equal")
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    return ax


def class_coverage(
    posteriors: Posterior | Mapping[str, Posterior | pd.DataFrame],
    *,
    log: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """The sampled Markov equivalence classes as bubbles: score across, probability up (paper, figure 5).

    The area of a bubble is the number of distinct graphs of the class that were sampled.

    Args:
        posteriors: one posterior, or several by name; their graphs need scores. In place of a posterior the
            table of its classes will do (`metrics.class_coverage`).
        log: logarithmic probabilities (paper, figure 8).
        ax: where to draw.
    """
    ax = _axes(ax)
    for index, (name, posterior) in enumerate(_by_name(posteriors).items()):
        classes = posterior if isinstance(posterior, pd.DataFrame) else _scored_classes(name, posterior)
        ax.scatter(
            classes["log_score"],
            classes["probability"],
            s=12 * classes["num_graphs"],
            color=f"C{index}",
            alpha=0.4,
            linewidths=0.5,
            edgecolors=f"C{index}",
            label=name,
        )
    if log:
        ax.set_yscale("log")
    ax.set(xlabel="log score of the class", ylabel="probability of the class")
    legend = ax.legend(frameon=False)
    for handle in legend.legend_handles:
        handle.set_sizes([30])  # type: ignore[union-attr]
    return ax


def _scored_classes(name: str, posterior: Posterior) -> pd.DataFrame:
    if posterior.log_scores is None:
        raise DataError(f"the graphs of {name} have no scores: pass a posterior with log_scores")
    return posterior.equivalence_classes(top=None)


def traces(
    history: Iterable[Mapping[str, Any]] | pd.DataFrame, *, value: str = "loss", ax: Axes | None = None
) -> Axes:
    """One value of a training run over its iterations.

    Args:
        history: rows with `step` and other values, such as the lines of `metrics.jsonl`.
        value: which of them.
        ax: where to draw.
    """
    ax = _axes(ax)
    table = history if isinstance(history, pd.DataFrame) else pd.DataFrame(list(history))
    if value not in table or "step" not in table:
        known = ", ".join(str(name) for name in table.columns if name != "step")
        raise DataError(f"the history has no value {value!r}; it has {known or 'none'}")
    table = table.dropna(subset=["step", value])
    ax.plot(table["step"], table[value], color=_BLUE, linewidth=1)
    ax.set(xlabel="iteration", ylabel=value.replace("_", " "))
    return ax


def roc(posteriors: Posterior | Mapping[str, Posterior], truth: Truth, *, ax: Axes | None = None) -> Axes:
    """ROC curves of the edge probabilities against a true graph, with their areas."""
    ax = _axes(ax)
    ax.plot([0, 1], [0, 1], color=_GREY, linewidth=0.8)
    shown = _by_name(posteriors)
    if shown:
        truth = named(truth, next(iter(shown.values())).names)
    for name, posterior in shown.items():
        rates = roc_points(posterior, truth)
        ax.plot(rates[:, 0], rates[:, 1], label=f"{name}: {metrics.auroc(posterior, truth):.3f}")
    ax.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal")
    ax.legend(title="area", frameon=False, loc="lower right")
    return ax


def _by_name(posteriors: Posterior | Mapping[str, Any]) -> Mapping[str, Any]:
    return {posteriors.method: posteriors} if isinstance(posteriors, Posterior) else posteriors


def _axes(ax: Axes | None, size: tuple[float, float] | None = None) -> Axes:
    """`ax`, or the only Axes of a new figure of this size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained", figsize=size)[1]
