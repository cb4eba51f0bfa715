"""The file format of a `Posterior`: one `.npz` without pickle, checked before anything of it is believed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from gflowdag.errors import FileFormatError, GFlowDAGError
from gflowdag.graph.closure import is_acyclic
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.files import plain, read_npz, write_npz
from gflowdag.runtime.messages import CONTROL_CHARACTER

SCHEMA = 1
MAX_BYTES = 4 * 2**30  # uncompressed: 40,000 graphs of 300 variables, and no zip bomb
TIMINGS = ("seconds", "phases")  # not stored: the same seed is to give the same bytes
_REQUIRED = ("adjacency", "log_weights", "names", "edge_probabilities", "meta")
_MATRICES = ("edge_errors", "raw_edge_probabilities")  # diagnostics that are [d, d]
_NUMBERS = ("ess", "pareto_k", "r_hat", "effective_samples", "iterations", "best_log_score")
_GRAPHS_AT_ONCE = 4096  # whose transitive closure is in memory


def write_posterior(posterior: Posterior, path: str | Path) -> None:
    """Write `posterior` to `path`; see `read_posterior` for the members. Timings are left out."""
    if not all(map(_are_dags, _in_parts(posterior.samples))):
        raise GFlowDAGError("a posterior is about acyclic graphs, and some of its samples have cycles")
    diagnostics = {name: value for name, value in posterior.diagnostics().items() if name not in TIMINGS}
    meta = {
        "schema": SCHEMA,
        "method": posterior.method,
        "log_evidence": posterior.log_evidence,
        "log_evidence_error": posterior.log_evidence_error,
        "marginals_given": posterior.marginals is not None,
        "diagnostics": diagnostics,
    }
    arrays = {
        "adjacency": posterior.samples.astype(np.uint8),
        "log_weights": posterior.log_weights,
        "names": np.array(posterior.names, dtype=np.str_),
        "edge_probabilities": posterior.edge_probabilities().to_numpy(dtype=np.float64),
        "meta": np.array(json.dumps(meta, default=plain, ensure_ascii=False)),
    }
    if posterior.log_scores is not None:
        arrays["log_scores"] = np.asarray(posterior.log_scores, dtype=np.float64)
    if posterior.path_marginals is not None:
        arrays["path_probabilities"] = np.asarray(posterior.path_marginals, dtype=np.float64)
    if posterior.best_graph is not None:
        arrays["best_graph"] = np.asarray(posterior.best_graph, dtype=np.uint8)
    write_npz(path, arrays)


def read_posterior(path: str | Path) -> Posterior:
    """Read a posterior, or say why the file cannot be one.

    Members: `adjacency` uint8 [n, d, d], `log_weights` [n], `names` [d], `edge_probabilities` [d, d], `meta`
    (JSON with schema version, method, evidence and diagnostics), and where known `log_scores` [n] and
    `path_probabilities` and `best_graph` [d, d].
    """
    path = Path(path)
    if path.is_dir():
        path = path / "posterior.npz"
        if not path.exists():
            raise FileFormatError(
                f"{path.parent} holds no posterior.npz: it is not a run folder, or its run did not finish"
            )
    arrays = read_npz(path, max_bytes=MAX_BYTES)
    missing = [name for name in _REQUIRED if name not in arrays]
    if missing:
        raise FileFormatError(f"{path} is not a posterior file: it lacks {', '.join(missing)}")
    try:
        meta = json.loads(str(arrays["meta"]))
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: the member 'meta' is not JSON: the file is damaged") from error
    _check_arrays(path, arrays)
    _check_meta(path, meta, len(arrays["names"]))
    best = arrays.get("best_graph")
    return Posterior(
        samples=arrays["adjacency"] != 0,
        names=tuple(str(name) for name in arrays["names"]),
        method=str(meta.get("method", "unknown")),
        log_weights=arrays["log_weights"].astype(np.float64),
        log_scores=_floats(arrays.get("log_scores")),
        marginals=_floats(arrays["edge_probabilities"]) if meta.get("marginals_given") else None,
        path_marginals=_floats(arrays.get("path_probabilities")),
        best_graph=None if best is None else best.astype(bool),
        log_evidence=meta.get("log_evidence"),
        log_evidence_error=meta.get("log_evidence_error"),
        details=meta["diagnostics"],
    )


def _check_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    names, graphs = arrays["names"], arrays["adjacency"]
    if names.ndim != 1 or names.dtype.kind != "U" or len(set(names.tolist())) < len(names):
        raise FileFormatError(f"{path}: the names are not texts that all differ")
    if any(CONTROL_CHARACTER.search(name) for name in names.tolist()):
        raise FileFormatError(f"{path}: a name holds characters that cannot be printed")
    d, n = len(names), len(graphs) if graphs.ndim == 3 else -1
    shapes = {"adjacency": (n, d, d), "log_weights": (n,), "log_scores": (n,)}
    shapes |= dict.fromkeys(("edge_probabilities", "path_probabilities", "best_graph"), (d, d))
    for name, shape in shapes.items():
        if name in arrays and arrays[name].shape != shape:
            raise FileFormatError(f"{path}: {name} has shape {arrays[name].shape}, expected {shape}")
        if name in arrays and arrays[name].dtype.kind not in "uifb":
            raise FileFormatError(f"{path}: {name} does not hold numbers")
    if min(n, d) < 1 or not all(map(_are_dags, _in_parts(graphs))):
        raise FileFormatError(f"{path}: the graphs are not all acyclic 0/1 matrices")
    if np.isnan(arrays["log_weights"]).any() or not np.isfinite(arrays["log_weights"].max()):
        raise FileFormatError(f"{path}: the weights are not numbers")
    if np.isnan(arrays.get("log_scores", 0.0)).any():
        raise FileFormatError(f"{path}: the scores are not numbers")
    for name in ("edge_probabilities", "path_probabilities"):
        p = arrays.get(name, np.zeros(1))
        if not np.isfinite(p).all() or p.min(initial=0) < -1e-6 or p.max(initial=0) > 1 + 1e-6:
            raise FileFormatError(f"{path}: {name} holds numbers that are not probabilities")


def _in_parts(graphs: np.ndarray) -> list[np.ndarray]:
    return [graphs[start : start + _GRAPHS_AT_ONCE] for start in range(0, len(graphs), _GRAPHS_AT_ONCE)]


def _are_dags(graphs: np.ndarray) -> bool:
    return bool(((graphs == 0) | (graphs == 1)).all() and is_acyclic(graphs != 0).all())


def _check_meta(path: Path, meta: Any, num_variables: int) -> None:
    facts = meta.get("diagnostics") if isinstance(meta, dict) else None
    if not isinstance(facts, dict):
        raise FileFormatError(f"{path}: 'meta' does not describe a posterior")
    if meta.get("schema") != SCHEMA:
        raise FileFormatError(f"{path} has schema {meta.get('schema')!r}; this version reads schema {SCHEMA}")
    figures = {name: facts.get(name) for name in _NUMBERS}
    figures |= {name: meta.get(name) for name in ("log_evidence", "log_evidence_error")}
    texts = [facts.get(name, "") for name in ("verdict", "explanation", "chosen")]
    wrong = [name for name, value in figures.items() if not _is_number(value)]
    wrong += [name for name in _MATRICES if not _is_matrix(facts.get(name), num_variables)]
    wrong += [] if _is_matrix(facts.get("score_traces"), None) else ["score_traces"]
    rates = facts.get("acceptance", {})  # one rate, or one for each kind of move
    wrong += (
        [] if all(map(_is_number, rates.values() if isinstance(rates, dict) else [rates])) else ["acceptance"]
    )
    if wrong or not isinstance(facts.get("notes", []), list) or not all(isinstance(t, str) for t in texts):
        raise FileFormatError(f"{path}: the diagnostics are damaged {', '.join(wrong)}".rstrip())


def _is_number(value: Any) -> bool:
    """Whether a figure is absent, or a number that fits a float."""
    return value is None or isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**63)


def _is_matrix(value: Any, size: int | None) -> bool:
    """Whether a diagnostic is absent, or a matrix of numbers, with `size` rows and columns where given."""
    if value is None:
        return True
    try:
        matrix = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return False
    return matrix.ndim == 2 and size in (None, *matrix.shape[:1]) and size in (None, *matrix.shape[1:])


def _floats(values: np.ndarray | None) -> np.ndarray | None:
    return None if values is None else values.astype(np.float64)
