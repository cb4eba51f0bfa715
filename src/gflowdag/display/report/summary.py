"""Tables about the run: its columns, the knowledge, the methods side by side, and where it came from."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import numpy as np

from gflowdag import __version__
from gflowdag.data import Dataset
from gflowdag.posterior import metrics
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.truth import Truth

_VERSIONED = ("numpy", "scipy", "pandas", "jax", "numba")
CITATION = (
    "T. Deleu, A. Góis, C. Emezue, M. Rankawat, S. Lacoste-Julien, S. Bauer and Y. Bengio. Bayesian "
    "Structure Learning with Generative Flow Networks. Uncertainty in Artificial Intelligence, 2022."
)


def column_rows(data: Dataset) -> list[dict[str, Any]]:
    """Name, kind, numbers in the original units or levels, and interventions of each column."""
    rows = []
    for index, column in enumerate(data.columns):
        values = data.values[:, index]
        gaps = int(np.isnan(values).sum())
        values = values[~np.isnan(values)]
        if column.levels is None:
            mean, deviation = column.scaling or (values.mean(), values.std(ddof=1))
            transform = "log: " if column.log else "ranks: " if column.scores is not None else ""
            detail = f"{transform}mean {mean:.4g}, standard deviation {deviation:.4g}"
        else:
            counts = np.bincount(values.astype(np.int64), minlength=len(column.levels))
            shown = [f"{level} ({count})" for level, count in zip(column.levels, counts, strict=True)][:8]
            more = f", and {len(column.levels) - 8} more" if len(column.levels) > 8 else ""
            detail = ", ".join(shown) + more
        detail += f"; {gaps} missing" if gaps else ""
        rows.append(
            {
                "name": column.name,
                "kind": column.kind,
                "detail": detail,
                "intervened": 0 if data.intervened is None else int(data.intervened[:, index].sum()),
            }
        )
    return rows


def kinds(data: Dataset) -> str:
    """How many columns are of which kind, to go after their number."""
    discrete = data.kinds.count("discrete")
    if not discrete:
        return ", continuous"
    if discrete == data.num_variables:
        return ", discrete"
    return f" ({data.num_variables - discrete} continuous, {discrete} discrete)"


def num_intervened(data: Dataset) -> int:
    """Rows in which some variable was set from outside."""
    return 0 if data.intervened is None else int(data.intervened.any(axis=1).sum())


def knowledge_rows(data: Dataset) -> list[tuple[str, str]]:
    """Prior knowledge as the user gave it: what, and which."""
    knowledge = data.knowledge
    if knowledge is None:
        return []
    rows = [
        ("Required edges", ", ".join(f"{source} → {target}" for source, target in knowledge.required)),
        ("Forbidden edges", ", ".join(f"{source} → {target}" for source, target in knowledge.forbidden)),
        ("Tiers, causes first", " | ".join(", ".join(tier) for tier in knowledge.tiers)),
        ("Without parents", ", ".join(knowledge.exogenous)),
        ("Most parents of a variable", "" if knowledge.max_parents is None else str(knowledge.max_parents)),
    ]
    return [(title, text) for title, text in rows if text]


def recovery(posterior: Posterior, truth: Truth) -> dict[str, float]:
    """Distance to the true graph."""
    return {
        "Expected SHD": metrics.expected_shd(posterior, truth),
        "AUROC": metrics.auroc(posterior, truth),
        "AUPRC": metrics.auprc(posterior, truth),
    }


def method_rows(
    posterior: Posterior, others: Mapping[str, Posterior], truth: Truth | None
) -> tuple[list[str], list[list[str]]]:
    """Headers and rows of the table of methods; the first row is the method of this report."""
    headers = ["Method", "Verdict", "Log evidence", "Edges expected", "Correlation", "Largest difference"]
    headers += ["Expected SHD", "AUROC", "AUPRC"] if truth is not None else []
    rows = []
    for name, other in {posterior.method: posterior, **others}.items():
        row = [
            name,
            other.diagnosis.verdict,
            "–" if other.log_evidence is None else f"{other.log_evidence:.3f}".replace("-", "−"),
            f"{metrics.expected_edges(other):.2f}",
        ]
        if other is posterior:
            row += ["reference", ""]
        else:
            correlation = metrics.feature_correlation(posterior, other)
            row += [f"{correlation:.4f}", f"{metrics.max_error(posterior, other):.3f}"]
        if truth is not None:
            row += [f"{value:.3f}" for value in recovery(other, truth).values()]
        rows.append(row)
    return headers, rows


def provenance_rows(
    posterior: Posterior, config: Mapping[str, Any], data: Dataset | None, manifest: Mapping[str, Any] | None
) -> list[tuple[str, str]]:
    """Command, seed, settings and versions: enough to do it again."""
    rows = [("Command", str(config.get("command", ""))), ("Seed", _text(config.get("seed")))]
    hidden = {"command", "seed", "data_sha256", "question_sha256", "knowledge", "truth"}
    settings = [
        f"{name} = {_text(value)}"
        for name, value in config.items()
        if name not in hidden and value not in (None, (), [], {})
    ]
    rows.append(("Settings", ", ".join(settings)))
    rows.append(("Method", posterior.method))
    if data is not None:
        rows.append(("SHA-256 of the data", data.sha256))
    if manifest is not None:
        versions = {"gflowdag": manifest.get("gflowdag"), "python": manifest.get("python")}
        versions |= manifest.get("versions", {})
        rows += [("Device", _text(manifest.get("device"))), ("Date", _text(manifest.get("time")))]
    else:
        versions = {"gflowdag": __version__, "python": platform.python_version()}
        versions |= {name: metadata.version(name) for name in _VERSIONED}
    rows.append(("Versions", ", ".join(f"{name} {version}" for name, version in versions.items())))
    return [(title, text) for title, text in rows if text]


def _text(value: Any) -> str:
    return "" if value is None else str(value)
