"""The file format of a `Posterior`: one `.npz` without pickle, checked before anything of it is believed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard, cast

import numpy as np

from gflowdag.data.description import TableDescription
from gflowdag.errors import FileFormatError, GFlowDAGError
from gflowdag.graph.closure import is_acyclic
from gflowdag.posterior.diagnostics import DIAGNOSTIC_NAMES, VERDICTS, Diagnostics
from gflowdag.posterior.imputation import Imputation, ImputedCells
from gflowdag.posterior.incomplete_table import IncompleteTable
from gflowdag.posterior.model_fit import ModelFit
from gflowdag.posterior.parameter_archive import parameter_members, read_parameters
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.files import is_object, read_npz, write_npz
from gflowdag.runtime.messages import CONTROL_CHARACTER
from gflowdag.runtime.strict_json import dumps, read_number
from gflowdag.score.conjugate import ParameterPosterior

SCHEMA = 2
VERSION_0_2 = 1  # its files are read too: all diagnostics were in one JSON dictionary, arrays as lists
MAX_BYTES = 4 * 2**30  # uncompressed: 40,000 graphs of 300 variables, and no zip bomb
TIMINGS = ("seconds", "phases")  # not stored: the same seed is to give the same bytes
_REQUIRED = ("adjacency", "log_weights", "names", "edge_probabilities", "meta")
_DROPPED = ("lost_mass",)  # in files of version 0.2, an estimate that no method makes any more
_WITHOUT_PRIOR_0_2 = ("bootstrap-ges", "bootstrap-pc", "bcd-nets")  # its files do not say so
_TEXTS = ("verdict", "explanation", "chosen")
_FLAGS = ("interventional", "knowledge", "uses_prior")
_NUMBERS = (
    "share_done",
    "iterations",
    "ess",
    "pareto_k",
    "r_hat",
    "effective_samples",
    "independent_samples",
    "unseen_share",
    "best_log_score",
)
_ARRAYS = {  # diagnostics that are members of their own, and their shapes for d variables; None: any size
    "assumed_directions": ("d", "d"),
    "edge_errors": ("d", "d"),
    "raw_edge_probabilities": ("d", "d"),
    "weighted_edge_probabilities": ("d", "d"),
    "score_traces": (None, None),
}
_GRAPHS_AT_ONCE = 4096  # whose transitive closure is in memory


def write_posterior(posterior: Posterior, path: str | Path) -> None:
    """Write `posterior` to `path`; see `read_posterior` for the members. Timings are left out."""
    if not all(map(_are_dags, _in_parts(posterior.samples))):
        raise GFlowDAGError("some samples have cycles: a posterior can hold acyclic graphs only")
    diagnosis = posterior.diagnosis
    stored = DIAGNOSTIC_NAMES - {*TIMINGS, *_ARRAYS, "model_fit", "imputation"}
    meta = {
        "schema": SCHEMA,
        "method": posterior.method,
        "log_evidence": posterior.log_evidence,
        "log_evidence_error": posterior.log_evidence_error,
        "marginals_given": posterior.marginals is not None,
        "diagnostics": {name: value for name, value in diagnosis.items() if name in stored},
        "extra": diagnosis.extra,
        "model_fit": None if diagnosis.model_fit is None else diagnosis.model_fit.to_dict(),
        "imputation": None if diagnosis.imputation is None else diagnosis.imputation.to_dict(),
        "table": None if posterior.table is None else posterior.table.to_dict(),
    }
    arrays = {
        "adjacency": posterior.samples.astype(np.uint8),
        "log_weights": posterior.log_weights,
        "names": np.array(posterior.names, dtype=np.str_),
        "edge_probabilities": posterior.edge_probabilities().to_numpy(dtype=np.float64),
        "meta": np.array(dumps(meta)),
    }
    if posterior.log_scores is not None:
        arrays["log_scores"] = np.asarray(posterior.log_scores, dtype=np.float64)
    if posterior.path_marginals is not None:
        arrays["path_probabilities"] = np.asarray(posterior.path_marginals, dtype=np.float64)
    if posterior.local_scores is not None:
        arrays["local_scores"] = np.asarray(posterior.local_scores, dtype=np.float64)
    if posterior.best_graph is not None:
        arrays["best_graph"] = np.asarray(posterior.best_graph, dtype=np.uint8)
    for name in _ARRAYS:
        if (values := getattr(diagnosis, name)) is not None:
            arrays[name] = np.asarray(values, dtype=np.float64)
    arrays |= parameter_members(posterior.parameters)
    if posterior.imputed_cells is not None:
        arrays |= posterior.imputed_cells.members()
        arrays |= {} if posterior.incomplete is None else posterior.incomplete.members()
    write_npz(path, arrays)


def read_posterior(path: str | Path) -> Posterior:
    """Read a posterior, or say why the file cannot be one.

    Members: `adjacency` uint8 [n, d, d], `log_weights` [n], `names` [d], `edge_probabilities` [d, d], `meta`
    (JSON with schema version, method, evidence and diagnostics), and where known `log_scores` [n],
    `path_probabilities` and `best_graph` [d, d], `local_scores` [d, 2^(d−1)], the diagnostics that
    are arrays, what effects need (`parameters_…`), draws of missing cells (`imputed_…`) and the table that
    they complete (`incomplete_…`). Files of version 0.2 are read too.
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
    _check_meta(path, meta)
    best = arrays.get("best_graph")
    table = _read_table(path, meta.get("table"), arrays["names"].tolist())
    cells = _read_imputed_cells(path, arrays)
    return Posterior(
        samples=arrays["adjacency"] != 0,
        names=tuple(str(name) for name in arrays["names"]),
        method=str(meta.get("method", "unknown")),
        log_weights=arrays["log_weights"].astype(np.float64),
        log_scores=_floats(arrays.get("log_scores")),
        marginals=_floats(arrays["edge_probabilities"]) if meta.get("marginals_given") else None,
        path_marginals=_floats(arrays.get("path_probabilities")),
        best_graph=None if best is None else best.astype(bool),
        log_evidence=_number(path, meta, "log_evidence"),
        log_evidence_error=_number(path, meta, "log_evidence_error"),
        local_scores=_read_local_scores(path, arrays),
        diagnosis=_read_diagnostics(path, meta, arrays),
        table=table,
        parameters=_read_parameters(path, arrays),
        imputed_cells=cells,
        incomplete=_read_incomplete(path, arrays, table, cells),
    )


def _check_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    names, graphs = arrays["names"], arrays["adjacency"]
    if names.ndim != 1 or names.dtype.kind != "U" or len(set(names.tolist())) < len(names):
        raise FileFormatError(f"{path}: the names are not distinct texts")
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


def _read_local_scores(path: Path, arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    scores, d = _floats(arrays.get("local_scores")), len(arrays["names"])
    if scores is None:
        return None
    # Before 2^(d−1) is computed, d is known to be small. Sets may be forbidden (−inf), but not all of a node.
    if scores.ndim != 2 or scores.shape[1].bit_length() != d or scores.shape != (d, 1 << (d - 1)):
        raise FileFormatError(
            f"{path}: local_scores has shape {scores.shape}, which is not that of {d} nodes"
        )
    if np.isnan(scores).any() or not np.isfinite(scores.max(axis=1)).all():
        raise FileFormatError(f"{path}: local_scores holds numbers that are not scores")
    return scores


def _in_parts(graphs: np.ndarray) -> list[np.ndarray]:
    return [graphs[start : start + _GRAPHS_AT_ONCE] for start in range(0, len(graphs), _GRAPHS_AT_ONCE)]


def _are_dags(graphs: np.ndarray) -> bool:
    return bool(((graphs == 0) | (graphs == 1)).all() and is_acyclic(graphs != 0).all())


def _check_meta(path: Path, meta: Any) -> None:
    if not is_object(meta) or not is_object(meta.get("diagnostics")):
        raise FileFormatError(f"{path}: 'meta' does not describe a posterior")
    if (schema := meta.get("schema")) not in (VERSION_0_2, SCHEMA):
        raise FileFormatError(
            f"{path} has schema {schema!r}; this version reads schemas {VERSION_0_2} and {SCHEMA}"
        )


def _read_diagnostics(path: Path, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Diagnostics:
    found: Mapping[str, Any] = meta["diagnostics"]
    extra: Any = meta.get("extra", {})
    if meta["schema"] == VERSION_0_2:
        extra = {name: value for name, value in found.items() if name not in {*DIAGNOSTIC_NAMES, *_DROPPED}}
        if meta.get("method") in _WITHOUT_PRIOR_0_2:
            found = {**found, "uses_prior": False}
    if not is_object(extra) or DIAGNOSTIC_NAMES & extra.keys():
        raise _damaged(path, "extra")
    values: dict[str, Any] = {name: _number(path, found, name) for name in _NUMBERS}
    if values["iterations"] is not None:
        values["iterations"] = int(values["iterations"])
    for names, kind in ((_TEXTS, str), (_FLAGS, bool)):
        values |= {name: _of_type(path, found, name, kind) for name in names}
    for name, shape in _ARRAYS.items():
        given = found.get(name) if meta["schema"] == VERSION_0_2 else arrays.get(name)
        values[name] = None if given is None else _array(path, name, given, shape, len(arrays["names"]))
    values["model_fit"] = _read_model_fit(path, meta.get("model_fit"))
    values["imputation"] = _read_imputation(path, meta.get("imputation"))
    if values["assumed_directions"] is not None:
        values["assumed_directions"] = values["assumed_directions"] != 0
    values["acceptance"] = _rates(path, found.get("acceptance"))
    notes = found.get("notes", [])
    if not _are_texts(notes):
        raise _damaged(path, "notes")
    if values["verdict"] not in (None, *VERDICTS):
        raise _damaged(path, "verdict")
    known = {name: value for name, value in values.items() if value is not None}
    return Diagnostics(**known, notes=tuple(notes), extra=extra)


def _read_table(path: Path, given: Any, names: list[str]) -> TableDescription | None:
    if given is None:
        return None
    try:
        description = TableDescription.from_dict(given)
    except ValueError as error:
        raise FileFormatError(f"{path}: the description of the table is damaged") from error
    if description.names != names:
        raise FileFormatError(f"{path}: the description of the table has other variables")
    return description


def _read_parameters(path: Path, arrays: Mapping[str, np.ndarray]) -> ParameterPosterior | None:
    try:
        return read_parameters(arrays, len(arrays["names"]))
    except ValueError as error:
        raise FileFormatError(f"{path}: what it holds for effects is damaged: {error}") from error


def _read_model_fit(path: Path, content: Any) -> ModelFit | None:
    try:
        return None if content is None else ModelFit.from_dict(content)
    except ValueError as error:
        raise _damaged(path, "model_fit") from error


def _read_imputation(path: Path, content: Any) -> Imputation | None:
    try:
        return None if content is None else Imputation.from_dict(content)
    except ValueError as error:
        raise _damaged(path, "imputation") from error


def _read_imputed_cells(path: Path, arrays: Mapping[str, np.ndarray]) -> ImputedCells | None:
    try:
        return ImputedCells.from_members(arrays)
    except ValueError as error:
        raise FileFormatError(f"{path}: what it holds of missing cells is damaged: {error}") from error


def _read_incomplete(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    table: TableDescription | None,
    cells: ImputedCells | None,
) -> IncompleteTable | None:
    try:
        return IncompleteTable.from_members(arrays, None if table is None else table.columns, cells)
    except ValueError as error:
        raise FileFormatError(f"{path}: its table with gaps is damaged: {error}") from error


def _number(path: Path, found: Mapping[str, Any], name: str) -> float | None:
    """A number, or None where it is absent or was none (null)."""
    try:
        value = read_number(found.get(name))
    except ValueError as error:
        raise _damaged(path, name) from error
    return None if np.isnan(value) else value


def _of_type(path: Path, found: Mapping[str, Any], name: str, kind: type) -> Any:
    value = found.get(name)
    if value is not None and not isinstance(value, kind):
        raise _damaged(path, name)
    return value


def _rates(path: Path, given: Any) -> float | dict[str, float] | None:
    """One rate, or one for each kind of move."""
    if not is_object(given):
        return _number(path, {"acceptance": given}, "acceptance")
    rates = {name: _number(path, given, name) for name in given}
    return {name: rate for name, rate in rates.items() if rate is not None}


def _array(path: Path, name: str, given: Any, shape: tuple[str | None, ...], d: int) -> np.ndarray:
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise _damaged(path, name) from error
    expected = [d if size == "d" else size for size in shape]
    if values.ndim != len(shape) or any(
        n not in (None, m) for n, m in zip(expected, values.shape, strict=True)
    ):
        raise _damaged(path, name)
    return values


def _are_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(text, str) for text in cast(list[object], value))


def _damaged(path: Path, name: str) -> FileFormatError:
    return FileFormatError(f"{path}: the diagnostics are damaged: {name}")


def _floats(values: np.ndarray | None) -> np.ndarray | None:
    return None if values is None else values.astype(np.float64)
