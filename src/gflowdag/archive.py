"""The file format of a `Posterior`: one `.npz` without pickle, checked before anything of it is believed."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from gflowdag.errors import FileFormatError
from gflowdag.files import plain, write_npz
from gflowdag.graph.closure import is_acyclic
from gflowdag.posterior import Posterior

SCHEMA = 1
MAX_BYTES = 4 * 2**30  # uncompressed: 40,000 graphs of 300 variables, and no zip bomb
_REQUIRED = ("adjacency", "log_weights", "names", "edge_probabilities", "meta")


def write_posterior(posterior: Posterior, path: str | Path) -> None:
    """Write `posterior` to `path`; see `read_posterior` for the members."""
    meta = {
        "schema": SCHEMA,
        "method": posterior.method,
        "log_evidence": posterior.log_evidence,
        "log_evidence_error": posterior.log_evidence_error,
        "marginals_given": posterior.marginals is not None,
        "diagnostics": posterior.diagnostics(),
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
    arrays = _read_arrays(path)
    try:
        meta = json.loads(str(arrays["meta"]))
    except ValueError as error:
        raise FileFormatError(f"{path}: the member 'meta' is not JSON: the file is damaged") from error
    _check(path, arrays, meta)
    best = arrays.get("best_graph")
    return Posterior(
        samples=arrays["adjacency"].astype(bool),
        names=tuple(str(name) for name in arrays["names"]),
        method=str(meta.get("method", "unknown")),
        log_weights=arrays["log_weights"].astype(np.float64),
        log_scores=arrays.get("log_scores"),
        marginals=arrays["edge_probabilities"].astype(np.float64) if meta.get("marginals_given") else None,
        path_marginals=arrays.get("path_probabilities"),
        best_graph=None if best is None else best.astype(bool),
        log_evidence=meta.get("log_evidence"),
        log_evidence_error=meta.get("log_evidence_error"),
        details=meta["diagnostics"],
    )


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > MAX_BYTES:
            raise FileFormatError(f"{path} would unpack to {size / 2**30:.1f} GiB: refused")
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except FileNotFoundError as error:
        raise FileFormatError(f"{path} does not exist") from error
    except FileFormatError:
        raise
    except Exception as error:  # whatever a hostile archive makes zipfile or NumPy raise
        raise FileFormatError(
            f"{path} is not a posterior file of gflowdag, or it is damaged ({error})"
        ) from error
    missing = [name for name in _REQUIRED if name not in arrays]
    if missing:
        raise FileFormatError(f"{path} is not a posterior file: it lacks {', '.join(missing)}")
    return arrays


def _check(path: Path, arrays: dict[str, np.ndarray], meta: Any) -> None:
    if not isinstance(meta, dict) or not isinstance(meta.get("diagnostics"), dict):
        raise FileFormatError(f"{path}: 'meta' does not describe a posterior")
    if meta.get("schema") != SCHEMA:
        raise FileFormatError(f"{path} has schema {meta.get('schema')!r}; this version reads schema {SCHEMA}")
    graphs, d = arrays["adjacency"], len(arrays["names"]) if arrays["names"].ndim == 1 else -1
    n = len(graphs) if graphs.ndim == 3 else -1
    shapes = {"adjacency": (n, d, d), "log_weights": (n,), "log_scores": (n,)}
    shapes |= dict.fromkeys(("edge_probabilities", "path_probabilities", "best_graph"), (d, d))
    for name, shape in shapes.items():
        if name in arrays and arrays[name].shape != shape:
            raise FileFormatError(f"{path}: {name} has shape {arrays[name].shape}, expected {shape}")
        if name in arrays and arrays[name].dtype.kind not in "uifb":
            raise FileFormatError(f"{path}: {name} does not hold numbers")
    if n < 1 or not np.isin(graphs, (0, 1)).all() or not np.all(is_acyclic(graphs.astype(bool))):
        raise FileFormatError(f"{path}: the graphs are not all acyclic 0/1 matrices")
    if np.isnan(arrays["log_weights"]).any() or not np.isfinite(arrays["log_weights"]).any():
        raise FileFormatError(f"{path}: the weights are not numbers")
    for name in ("edge_probabilities", "path_probabilities"):
        p = arrays.get(name, np.zeros(1))
        if not np.isfinite(p).all() or p.min(initial=0) < -1e-6 or p.max(initial=0) > 1 + 1e-6:
            raise FileFormatError(f"{path}: {name} holds numbers that are not probabilities")
