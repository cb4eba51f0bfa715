"""How far an answer repeats itself."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from gflowdag.posterior import Posterior, read_manifest, read_metrics
from gflowdag_lab.measurements.harness import Options, Row, case

_FITS = {  # on the 11 variables of the Sachs data
    "order-gflownet": ("--iterations", "500"),
    "dag-gflownet": ("--iterations", "200"),
    "order-mcmc": (),
    "mc3": (),
}


class _Kind(NamedTuple):
    """Where and how a fit is repeated."""

    device: str
    flags: tuple[str, ...] = ()


@case
def determinism(options: Options) -> Iterator[Row]:
    """Same seed twice, on a GPU with and without `--deterministic`, and on the CPU: bytes and differences."""
    kinds = [_Kind("cpu")]
    if jax.default_backend() != "cpu":
        kinds = [_Kind("gpu", ("--deterministic",)), _Kind("gpu"), *kinds]
    methods = options.extra.get("methods", ",".join(_FITS)).split(",")
    fits = {"order-gflownet": ("--iterations", "5")} if options.quick else {m: _FITS[m] for m in methods}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(options.extra.get("keep", scratch))
        for name, length in fits.items():
            # A processor repeats itself, which is shown where there is no GPU: there its answer is enough.
            repeats = {kind: 1 if kind.device == "cpu" and len(kinds) > 1 else 2 for kind in kinds}
            runs = {kind: [_folder(folder, name, kind, i) for i in range(repeats[kind])] for kind in kinds}
            with ThreadPoolExecutor(int(options.extra.get("at_once", 2))) as pool:
                fits_of = [(name, kind, length, run) for kind in kinds for run in runs[kind]]
                list(pool.map(lambda fit: _fit(*fit), fits_of))
            for kind in kinds:
                yield _repetition(name, kind, runs[kind])
            if len(kinds) > 1:
                yield _difference(name, *(Posterior.load(runs[kind][0]) for kind in kinds[1:]))


def _folder(parent: Path, method: str, kind: _Kind, repeat: int) -> Path:
    return parent / f"{method}-{kind.device}{''.join(kind.flags)}-{repeat}"


def _fit(method: str, kind: _Kind, length: tuple[str, ...], folder: Path) -> None:
    environment = {**os.environ, **({"JAX_PLATFORMS": "cpu"} if kind.device == "cpu" else {})}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)  # a program that is compiled again may become another
    command = [sys.executable, "-m", "gflowdag", "fit", "sachs", "--method", method, *length, *kind.flags]
    subprocess.run([*command, "--out", str(folder), "--quiet"], env=environment, check=True)


def _repetition(method: str, kind: _Kind, runs: list[Path]) -> Row:
    first, answers = runs[0], [(run / "posterior.npz").read_bytes() for run in runs]
    rows = read_metrics(first)
    row: Row = {
        "method": method,
        "device": read_manifest(first)["device"],
        "flags": " ".join(kind.flags),
        "same_bytes": answers[0] == answers[1] if len(answers) > 1 else "not repeated",
        "seconds": read_manifest(first)["timings"]["seconds"],
    }
    if len(rows) > 2:  # the first chunk includes compilation
        steps = rows[-1]["step"] - rows[0]["step"]
        row["iterations_per_s"] = steps / (rows[-1]["seconds"] - rows[0]["seconds"])
    return row


def _difference(method: str, one: Posterior, other: Posterior) -> Row:
    """Largest differences of two posteriors, also in units of the error that each states for itself."""
    gap = np.abs(one.edge_probabilities().to_numpy() - other.edge_probabilities().to_numpy())
    error = np.hypot(one.edge_errors(), other.edge_errors())
    evidence = [posterior.log_evidence for posterior in (one, other) if posterior.log_evidence is not None]
    return {
        "method": method,
        "device": "cpu against gpu",
        "largest_edge_difference": float(gap.max()),
        "in_standard_errors": float((gap[error > 0] / error[error > 0]).max(initial=0.0)),
        "log_evidence_difference": float(abs(evidence[0] - evidence[1])) if len(evidence) == 2 else None,
    }
