"""Run folders: what was asked, what came out, and enough to do it again.

A folder holds `config.json` (the question), `manifest.json` (versions, seed, data, device, seconds, status),
`posterior.npz`, `report.html`, and for methods that train `metrics.jsonl` and a checkpoint.
"""

from __future__ import annotations

import json
import platform
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from gflowdag import __version__
from gflowdag.errors import FileFormatError, GFlowDAGError
from gflowdag.files import write_json
from gflowdag.posterior import Posterior

CONFIG, MANIFEST, POSTERIOR, REPORT = "config.json", "manifest.json", "posterior.npz", "report.html"
METRICS = "metrics.jsonl"
_VERSIONED = ("jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "numba", "pandas", "scikit-learn")


@dataclass(frozen=True)
class Run:
    """A run folder that is being written."""

    folder: Path
    started: float

    @classmethod
    def start(cls, folder: str | Path, config: dict[str, Any], *, resume: bool = False) -> Run:
        """Claim `folder` for a question; refuse one that holds another question or an answer already."""
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            previous = read_config(folder) if (folder / CONFIG).exists() else None
            if previous is not None and not resume:
                raise GFlowDAGError(
                    f"{folder} already holds a run: choose another --out, or go on with it by --resume"
                )
            if previous is not None and _question(previous) != _question(config):
                raise GFlowDAGError(f"{folder} holds a run with other settings: resume it with the same ones")
            run = cls(folder, time.perf_counter())
            write_json(folder / CONFIG, config)
            run._write_manifest("running", {})
        except OSError as error:
            raise GFlowDAGError(f"cannot write to {folder}: {error.strerror or error}") from error
        return run

    def finish(self, posterior: Posterior, **facts: Any) -> Path:
        """Write the posterior and mark the run as done."""
        path = self.folder / POSTERIOR
        posterior.save(path)
        self._write_manifest("done", facts)
        return path

    def abandon(self, reason: str) -> None:
        """Record why the run ended early; checkpoints stay."""
        self._write_manifest("stopped", {"reason": reason})

    def _write_manifest(self, status: str, facts: dict[str, Any]) -> None:
        manifest = {
            "status": status,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - self.started, 3),
            "gflowdag": __version__,
            "python": platform.python_version(),
            "versions": {name: metadata.version(name) for name in _VERSIONED},
            "device": device_name(),
            **facts,
        }
        write_json(self.folder / MANIFEST, manifest)


def device_name() -> str:
    """The JAX device that computations run on, in words."""
    import jax

    device = jax.devices()[0]
    return f"{device.platform}: {device.device_kind}"


def free_folder(parent: str | Path, name: str) -> Path:
    """`parent/name`, or the first of `name-2`, `name-3`, … that does not exist yet."""
    parent, number = Path(parent), 2
    folder = parent / name
    while folder.exists():
        folder, number = parent / f"{name}-{number}", number + 1
    return folder


def read_config(folder: str | Path) -> dict[str, Any]:
    """The question of a run folder."""
    return _read_json(Path(folder) / CONFIG)


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """Versions, seed, data, device and status of a run folder."""
    return _read_json(Path(folder) / MANIFEST)


def read_metrics(folder: str | Path) -> list[dict[str, Any]]:
    """The rows of a training run's `metrics.jsonl`, none where there is no such file."""
    path = Path(folder) / METRICS
    if not path.exists():
        return []
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    except (OSError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{path} cannot be read: {error}") from error
    return [row for row in rows if isinstance(row, dict)]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FileFormatError(f"{path.parent} is not a run folder: it has no {path.name}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise FileFormatError(f"{path} does not hold a JSON object")
    return content


def _question(config: dict[str, Any]) -> dict[str, Any]:
    """The settings that decide the answer: all but those about where and how it is shown."""
    return {name: value for name, value in config.items() if name not in {"command", "out", "quiet", "json"}}
