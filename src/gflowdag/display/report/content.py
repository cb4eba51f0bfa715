"""What the page's scripts draw, as plain numbers: one function for each panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gflowdag.display.curves import precision_recall_points, roc_points
from gflowdag.display.digest import is_vouched_for
from gflowdag.display.layout import layered_layout
from gflowdag.display.orientation import OrientingEvidence
from gflowdag.display.truncate import num_columns, truncated_names
from gflowdag.graph.equivalence import class_keys, class_size, cpdag
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.truth import Truth, align

LAYOUT_THRESHOLD = 0.2  # edges at least this probable shape the drawing
MAX_LABEL = 18  # columns of text in a node
_COLUMN_WIDTH, _NODE_PADDING, _NODE_GAP = 7.6, 22.0, 22.0  # pixels
_LAYER_HEIGHT = 84.0
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
    """Names, positions, and the probabilities [source][target] of edges, paths and Markov blankets."""
    labels = truncated_names(posterior.names, MAX_LABEL)
    widths = np.array([max(_COLUMN_WIDTH * num_columns(text), 14.0) for text in labels]) + _NODE_PADDING
    p = posterior.edge_probabilities().to_numpy()
    consensus = posterior.consensus_graph(LAYOUT_THRESHOLD).to_numpy()
    layout = layered_layout(consensus, widths=(widths + _NODE_GAP).tolist(), weights=p)
    scale = np.array([1.0, _LAYER_HEIGHT])
    return {
        "names": list(posterior.names),
        "labels": labels,
        "widths": numbers(widths, 4),
        "positions": numbers(layout.positions * scale, 5),
        "bends": [
            {"source": i, "target": j, "points": numbers(points * scale, 5)}
            for (i, j), points in sorted(layout.bends.items())
        ],
        "edges": numbers(p),
        "exact": posterior.diagnosis.verdict == "exact",
        "vouched": is_vouched_for(posterior),
        "errors": _errors(posterior.edge_errors(), posterior, 3),
        "paths": numbers(posterior.path_probabilities().to_numpy(), 4),
        "pathErrors": _errors(posterior.path_errors(), posterior, 2),
        "blankets": numbers(posterior.markov_blanket_probabilities().to_numpy(), 4),
        "blanketErrors": _errors(posterior.markov_blanket_errors(), posterior, 2),
        "unweighted": numbers(_unweighted(posterior)) if _has_two_estimates(posterior) else None,
    }


def _errors(errors: NDArray[np.float64], posterior: Posterior, digits: int) -> Any:
    """Monte-Carlo errors; nulls for chains that did not mix, whose errors say nothing."""
    return numbers(errors if posterior.diagnosis.has_errors else np.full_like(errors, np.nan), digits)


def _has_two_estimates(posterior: Posterior) -> bool:
    return posterior.diagnosis.raw_edge_probabilities is not None or bool(np.ptp(posterior.log_weights))


def _unweighted(posterior: Posterior) -> NDArray[np.float64]:
    """Edge probabilities before importance weights corrected them."""
    raw = posterior.diagnosis.raw_edge_probabilities
    return raw if raw is not None else posterior.edge_probabilities(weighted=False).to_numpy()


def pairs_content(posterior: Posterior) -> list[list[Any]]:
    """Rows of `Posterior.edge_table` as [source, target, →, ←, none, error, assumed], variables by index."""
    index = {name: i for i, name in enumerate(posterior.names)}
    columns = ["probability", "reverse", "absent"]
    has_errors = posterior.diagnosis.has_errors
    return [
        [
            index[row["source"]],
            index[row["target"]],
            *numbers([row[column] for column in columns]),
            numbers(row["error"]) if has_errors else None,
            bool(row["assumed"]),
        ]
        for row in posterior.edge_table().to_dict(orient="records")
    ]


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


def methods_content(posterior: Posterior, others: Mapping[str, Posterior]) -> list[dict[str, Any]]:
    """Edge probabilities of the other methods in the order of the variables of `posterior`."""
    names = list(posterior.names)
    return [
        {"name": name, "edges": numbers(other.edge_probabilities().loc[names, names].to_numpy())}
        for name, other in others.items()
    ]
