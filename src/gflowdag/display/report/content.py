"""What the page's scripts draw, as plain numbers: one function for each panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.display.block_layout import MAX_LAYERED, graph_layout
from gflowdag.display.curves import precision_recall_points, roc_points
from gflowdag.display.digest import is_vouched_for
from gflowdag.display.orientation import OrientingEvidence
from gflowdag.display.report.matrices import packed
from gflowdag.display.truncate import num_columns, truncated_names
from gflowdag.graph.equivalence import class_keys, class_size, cpdag
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.truth import Truth, align

LAYOUT_THRESHOLD = 0.2  # edges at least this probable shape the drawing
MAX_LABEL, MAX_SHORT_LABEL = 18, 14  # columns of text in a node; fewer where there are many nodes
_COLUMN_WIDTH, _NODE_PADDING, _NODE_GAP = 7.6, 22.0, 22.0  # pixels
_LAYER_HEIGHT, _BLOCK_LAYER_HEIGHT = 84.0, 58.0
_BOX, _WIDE_BOX = (830.0, 720.0), (1150.0, 760.0)  # where the drawing is shown on a large screen
_DIGITS, _FEWER_DIGITS, _LARGEST_FINE = 6, 4, 150  # of probabilities, up to so many variables and beyond
_AFFORDABLE, _LEAST_GRAPHS = 4e9, 200  # graphs times cubed variables, for paths and Markov blankets
_MAX_CLASSES, _LARGE = 6, 24  # half as many drawings beyond so many variables
_FEW_DRAWS = 20  # of a class: fewer often point the same way by chance
_MAX_TRACE_POINTS = 400
_LEAST_SPREAD = 1e-7  # of log scores, as a share of the largest, for a histogram with visible ends


def numbers(values: ArrayLike, digits: int = 6) -> Any:
    """Nested lists of floats with `digits` significant digits; what is not finite becomes None."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim == 0:
        return float(f"{values:.{digits}g}") if np.isfinite(values) else None
    return [numbers(part, digits) for part in values]


def graph_content(posterior: Posterior) -> dict[str, Any]:
    """Names, and the drawing: places of the variables, bends of the edges, blocks."""
    many = posterior.num_variables > MAX_LAYERED
    labels = truncated_names(posterior.names, MAX_SHORT_LABEL if many else MAX_LABEL)
    widths = np.array([max(_COLUMN_WIDTH * num_columns(text), 14.0) for text in labels]) + _NODE_PADDING
    height = _BLOCK_LAYER_HEIGHT if many else _LAYER_HEIGHT
    layout, blocks = graph_layout(
        posterior.consensus_graph(LAYOUT_THRESHOLD).to_numpy(),
        widths=widths + (_NODE_GAP / 2 if many else _NODE_GAP),
        weights=posterior.edge_probabilities().to_numpy(),
        layer_height=height,
        box=_WIDE_BOX if many else _BOX,
    )
    scale = np.array([1.0, height])
    return {
        "names": list(posterior.names),
        "labels": labels,
        "widths": numbers(widths, 4),
        "positions": numbers(layout.positions * scale, 5),
        "bends": [
            {"source": i, "target": j, "points": numbers(points * scale, 5)}
            for (i, j), points in sorted(layout.bends.items())
        ],
        "blocks": [
            {
                "members": block.members.tolist(),
                "box": numbers(block.box * np.tile(scale, 2), 5),
                "connected": block.connected,
            }
            for block in blocks
        ],
        "digits": _digits(posterior),
        "exact": posterior.diagnosis.verdict == "exact",
        "vouched": is_vouched_for(posterior),
    }


def matrices_content(posterior: Posterior, others: Mapping[str, Posterior]) -> dict[str, str | None]:
    """Probabilities [source, target] of edges, paths and Markov blankets and their errors, packed.

    Those of chains that did not mix have no errors that say anything: None. The edges of other methods are
    under the names that `methods_content` gives.
    """
    features = with_fewer_graphs(posterior)
    has_errors = posterior.diagnosis.has_errors
    fine = _digits(posterior)
    paths, blankets = features.path_probabilities(), features.markov_blanket_probabilities()
    return {
        "edges": packed(posterior.edge_probabilities(), fine),
        "errors": packed(posterior.edge_errors(), 3) if has_errors else None,
        "paths": packed(paths, 3),
        "pathErrors": packed(features.path_errors(), 2) if has_errors else None,
        "blankets": packed(blankets, 3),
        "blanketErrors": packed(features.markov_blanket_errors(), 2) if has_errors else None,
        "unweighted": packed(_unweighted(posterior), fine) if _has_two_estimates(posterior) else None,
    } | {
        _matrix_of(place): packed(other.edge_probabilities().loc[names, names], fine)
        for names in [list(posterior.names)]
        for place, other in enumerate(others.values())
    }


def _digits(posterior: Posterior) -> int:
    return _DIGITS if posterior.num_variables <= _LARGEST_FINE else _FEWER_DIGITS


def with_fewer_graphs(posterior: Posterior) -> Posterior:
    """The posterior, or of very many variables as many of its graphs as paths are quickly found in."""
    affordable = max(_LEAST_GRAPHS, int(_AFFORDABLE / posterior.num_variables**3))
    if posterior.num_samples <= affordable:
        return posterior
    return posterior.resample(affordable, random_state=0)


def _matrix_of(place: int) -> str:
    return f"method{place}"


def _has_two_estimates(posterior: Posterior) -> bool:
    return posterior.diagnosis.raw_edge_probabilities is not None or bool(np.ptp(posterior.log_weights))


def _unweighted(posterior: Posterior) -> NDArray[np.float64]:
    """Edge probabilities before importance weights corrected them."""
    raw = posterior.diagnosis.raw_edge_probabilities
    return raw if raw is not None else posterior.edge_probabilities(weighted=False).to_numpy()


def assumed_content(posterior: Posterior) -> list[list[int]]:
    """The pairs, by index, whose direction the score took for granted."""
    assumed = posterior.diagnosis.assumed_directions
    return [] if assumed is None else np.argwhere(np.triu(assumed | assumed.T)).tolist()


def classes_content(posterior: Posterior, orienting: OrientingEvidence) -> dict[str, Any]:
    """The most probable Markov equivalence classes as lists of index pairs."""
    keys = class_keys(posterior.samples) if str(orienting) else None
    table = posterior.equivalence_classes(top=None)
    top = table.head(_MAX_CLASSES if posterior.num_variables <= _LARGE else _MAX_CLASSES // 2)
    shown = []
    for row in top.to_dict(orient="records"):
        completed = cpdag(posterior.samples[row["sample"]])
        basis, graphs = "class", completed[None]
        if keys is not None:
            drawn = posterior.samples[keys == keys[row["sample"]]]
            basis, graphs = _chosen_members(drawn, completed, orienting)
        graph = graphs.any(axis=0)
        both = graph & graph.T
        shown.append(
            {
                "probability": numbers(row["probability"]),
                "logScore": numbers(row["log_score"], 8),
                "sampled": int(row["num_graphs"]),
                "members": str(class_size(completed)),  # may exceed what JavaScript counts exactly
                "basis": basis,
                "graphs": len(graphs),
                "maybeChance": basis == "sampled" and len(graphs) < _FEW_DRAWS,
                "directed": np.argwhere(graph & ~both).tolist(),
                "undirected": np.argwhere(np.triu(both)).tolist(),
            }
        )
    return {"shown": shown, "total": len(table), "mass": numbers(top["probability"].sum())}


def _chosen_members(
    drawn: NDArray[np.bool_], completed: NDArray[np.bool_], orienting: OrientingEvidence
) -> tuple[str, NDArray[np.bool_]]:
    """Which members of a class its drawing shows where something tells them apart, and these graphs.

    These are all that the knowledge allows ("allowed"), sampled or not. Where there were interventions, or
    the allowed graphs cannot be listed, they are the sampled ones ("sampled"). Where the samples leave open
    every edge that the class leaves open, they stand for the whole class ("class").

    Args:
        drawn: the samples of the class, bool [m, d, d].
        completed: its CPDAG, bool [d, d].
        orienting: the interventions and the knowledge of the posterior.
    """
    if (allowed := orienting.allowed_members(completed)) is not None:
        return "allowed", allowed
    return ("class" if (drawn.any(axis=0) == completed).all() else "sampled"), drawn


def distributions_content(posterior: Posterior) -> dict[str, Any]:
    """Posterior distributions of the number of edges and, where scores are known, of the log score."""
    counts = posterior.samples.sum(axis=(1, 2))
    mass = np.bincount(counts, weights=posterior.weights)
    first = int(counts.min())
    content: dict[str, Any] = {
        "edges": {"first": first, "mass": numbers(mass[first:]), "mean": numbers(mass @ np.arange(len(mass)))}
    }
    scores = posterior.log_scores
    if scores is not None and np.isfinite(scores).all() and _differ(scores):
        bins = int(np.clip(np.sqrt(posterior.num_samples), 5, 40))
        heights, ends = np.histogram(scores, bins=bins, weights=posterior.weights)
        best = posterior.diagnosis.best_log_score
        content["scores"] = {
            "ends": numbers(ends, 9),
            "mass": numbers(heights),
            "mean": numbers(posterior.weights @ scores, 9),
            "best": numbers(scores.max() if best is None else best, 9),
        }
    return content


def _differ(scores: NDArray[np.float64]) -> bool:
    """Whether log scores differ by enough for a histogram; those of many rows may differ by rounding."""
    return bool(np.ptp(scores) > _LEAST_SPREAD * np.abs(scores).max())


def traces_content(posterior: Posterior, history: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
    """Values over the iterations of training, and log scores along chains (`score_traces` [c, t])."""
    traces = []
    rows = [row for row in history or () if isinstance(row.get("step"), Real)]
    names = dict.fromkeys(name for row in rows for name in row if name not in ("step", "seconds"))
    for name in names:
        points = [(row["step"], row[name]) for row in rows if isinstance(row.get(name), Real)]
        if len(points) >= 2:
            steps, values = np.array(points, dtype=np.float64).T
            kept = _thinned(len(points))
            traces.append(
                {
                    "title": name.replace("_", " "),
                    "axis": "iteration",
                    "x": numbers(steps[kept]),
                    "lines": [numbers(values[kept])],
                }
            )
    chains = posterior.diagnosis.score_traces
    if chains is not None:
        kept = _thinned(chains.shape[1])
        traces.append(
            {
                "title": "log score of each chain",
                "axis": "kept state",
                "x": numbers(kept),
                "lines": numbers(chains[:, kept], 8),
            }
        )
    return traces


def _thinned(length: int) -> NDArray[np.int64]:
    """At most `_MAX_TRACE_POINTS` positions, evenly spread, both ends among them."""
    return np.unique(np.linspace(0, length - 1, min(length, _MAX_TRACE_POINTS)).round().astype(np.int64))


def truth_content(posteriors: Mapping[str, Posterior], truth: Truth | None) -> dict[str, Any] | None:
    """The true graph as index pairs, and the ROC and precision–recall curves of every method."""
    if truth is None:
        return None
    first = next(iter(posteriors.values()))
    true = align(truth, first.names)
    if not true.any():
        return None
    return {
        "edges": np.argwhere(true).tolist(),
        "base": numbers(true.sum() / (true.size - len(true))),
        "roc": [{"name": name, "points": numbers(roc_points(p, truth), 4)} for name, p in posteriors.items()],
        "pr": [
            {"name": name, "points": numbers(precision_recall_points(p, truth), 4)}
            for name, p in posteriors.items()
        ],
    }


def methods_content(others: Mapping[str, Posterior]) -> list[dict[str, Any]]:
    """The other methods, and which of the matrices are theirs."""
    return [{"name": name, "matrix": _matrix_of(place)} for place, name in enumerate(others)]
