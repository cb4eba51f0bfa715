"""Every door through which a file comes in: an intact file for it, and what is done with one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from gflowdag.cli import commands, export
from gflowdag.data import Dataset, Knowledge
from gflowdag.data.bif import parse_bif
from gflowdag.data.reading import read_text
from gflowdag.errors import FileFormatError, GFlowDAGError
from gflowdag.gflownet.checkpoint import load_checkpoint, save_checkpoint, truncate_metrics
from gflowdag.posterior import runs
from gflowdag.posterior.diagnostics import Diagnostics
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.truth import align, read_edges
from gflowdag_lab.bench import ratios, summary
from gflowdag_lab.bench.stored_rows import Results
from gflowdag_lab.bench.tasks import Task

NAMES = ("a", "b", "c")
STATE = {"step": jnp.zeros((), jnp.int32), "weights": jnp.ones((3, 2), jnp.float32)}


def good_files(folder: Path) -> dict[str, bytes]:
    """The content of an intact file for each door; `folder` is for drafts."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(12, 3))
    table = "a,b,c\n" + "\n".join(",".join(f"{x:.4f}" for x in row) for row in values) + "\n"
    labels = "a,b,c,target\n" + "\n".join(
        ",".join(rng.choice(["yes", "no"], 3)) + "," + rng.choice(["", "a", "b+c"]) for _ in range(12)
    )
    samples = np.triu(rng.integers(0, 2, (4, 3, 3)), 1)
    diagnosis = Diagnostics(
        "trusted",
        "ok",
        chosen="this",
        notes=("n",),
        iterations=5,
        **dict.fromkeys(("ess", "pareto_k", "r_hat", "effective_samples", "acceptance"), 0.5),
        **dict.fromkeys(("edge_errors", "raw_edge_probabilities", "score_traces"), np.eye(3)),
        extra={"num_chains": 4},
    )
    Posterior(samples, NAMES, log_scores=np.zeros(4), log_evidence=-3.0, diagnosis=diagnosis).save(
        folder / "p.npz"
    )
    save_checkpoint(folder, STATE, "print")
    config = {
        "data": "nowhere.csv",
        "method": "exact",
        "samples": 10,
        "seed": 0,
        "knowledge": None,
        "truth": None,
    }
    bif = (
        "network n { }\nvariable a { type discrete [ 2 ] { yes, no }; }\n"
        "variable b { type discrete [ 2 ] { yes, no }; }\nprobability ( a ) { table 0.2, 0.8; }\n"
        "probability ( b | a ) { (yes) 0.1, 0.9; (no) 0.5, 0.5; }\n"
    )
    toml = (
        'required = [["a", "b"]]\nforbidden = [["c", "re:[ab]"]]\ntiers = [["a"], ["b", "c"]]\n'
        "max_parents = 2\n"
    )
    task = Task("quality", "mc3", 5)
    rung = {"seconds": 1.0, "work": 0.5, "error": 0.01}
    Results(folder / "bench.json", {"cores": 2}).add(
        {"name": task.name, **task.as_json(), "to_0.05_s": 1.0, "peak_mib": 400.0, "rungs": [rung]}
    )
    return {
        "bench": (folder / "bench.json").read_bytes(),
        "csv": table.encode(),
        "labels": labels.encode(),
        "truth": b"source,target\na,b\nb,c\n",
        "toml": toml.encode(),
        "bif": bif.encode(),
        "posterior": (folder / "p.npz").read_bytes(),
        "config": json.dumps(config).encode(),
        "metrics": b'{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0}\n',
        "checkpoint": (folder / "checkpoint.npz").read_bytes(),
    }


def _read_run(folder: Path, good: dict[str, bytes], **changed: bytes) -> None:
    """What `gflowdag report` and `query` do with a stranger's run folder."""
    files = {"config.json": "config", "metrics.jsonl": "metrics", "posterior.npz": "posterior"}
    for name, door in files.items():
        (folder / name).write_bytes(changed.get(door, good[door]))
    (folder / "manifest.json").write_bytes(changed.get("config", b"{}"))
    posterior = Posterior.load(folder)
    commands.rewrite_report(folder, folder / "report.html")
    for question in ("edge", "path", "blanket"):
        export.answer(posterior, question, posterior.names[0], None)
    export.export_text(posterior, "graphml", 0.0)


def _read_checkpoint(path: Path) -> None:
    (path.parent / "checkpoint.npz").write_bytes(path.read_bytes())
    load_checkpoint(path.parent, STATE, "print")


def _read_metrics(path: Path) -> None:
    (path.parent / "metrics.jsonl").write_bytes(path.read_bytes())
    truncate_metrics(path.parent, 1)
    runs.read_metrics(path.parent)


def _read_bench(path: Path) -> None:
    results = Results.load(path)
    summary.page(results)
    summary.comparison_grid(list(ratios.changes(results, results)), 1.5)


DOORS: dict[str, Callable[[Path], object]] = {
    "csv": Dataset.from_csv,
    "labels": lambda path: Dataset.from_csv(path, interventions="target"),
    "truth": lambda path: align(read_edges(path), NAMES),
    "toml": lambda path: Knowledge.from_toml(path).resolve(NAMES),
    "bif": lambda path: parse_bif(read_text(path, FileFormatError), str(path)),
    "checkpoint": _read_checkpoint,
    "metrics": _read_metrics,
    "bench": _read_bench,
}
ALL_DOORS = (*DOORS, "posterior", "config")
SLOW_DOORS = ("posterior", "config")  # they end in a report, a tenth of a second each


def knock(door: str, content: bytes, good: dict[str, bytes], folder: Path) -> bool:
    """Present a file; whether it was taken for good. Anything but a `GFlowDAGError` is raised."""
    path = folder / f"{door}.file"
    path.write_bytes(content)
    try:
        if door in DOORS:
            DOORS[door](path)
        else:
            _read_run(folder, good, **{door: content})
    except GFlowDAGError:
        return False
    return True
