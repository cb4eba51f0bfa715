"""Write the golden file, or compare this version with it.

    python tests/golden/make.py             # fit every entry and write posteriors.npz
    python tests/golden/make.py --compare   # fit every entry again and say what differs
    python tests/golden/make.py --only exact-d3 dibs-d5 --compare

Writing some entries with `--only` leaves the others as they are. The file is made anew only where an answer
was meant to change, and the commit says why.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from entries import PROBLEMS
from problems import Problem, fit, table_digest

import gflowdag as gd

FILE = Path(__file__).with_name("posteriors.npz")
NUM_KEPT = 20  # graphs and log scores that are kept as they are, to see how far a difference goes

Record = dict[str, Any]


def record(problem: Problem, posterior: gd.Posterior) -> Record:
    """What is kept of a posterior."""
    samples = np.asarray(posterior.samples, bool)
    edges = posterior.edge_probabilities().to_numpy(np.float64)
    kept: Record = {
        "problem": as_json(problem),
        "machine": machine(),
        "table_sha256": table_digest(problem),
        "method": posterior.method,
        "shape": list(samples.shape),
        "samples_sha256": _digest(np.packbits(samples)),
        "log_weights_sha256": _digest(np.asarray(posterior.log_weights, "<f8")),
        "log_evidence": posterior.log_evidence,
        "expected_edges": float(edges.sum()),
        "edges": edges,
        "graphs": np.packbits(samples[:NUM_KEPT]),
        "log_scores": np.asarray(posterior.log_scores, np.float64)[:NUM_KEPT],
    }
    if problem.check == "exact":
        kept["paths"] = posterior.path_probabilities().to_numpy(np.float64)
    return kept


def first_graphs(kept: Record) -> np.ndarray:
    """The first sampled graphs of a record, bool [min(n, 20), d, d]."""
    n, d, _ = kept["shape"]
    n = min(n, NUM_KEPT)
    return np.unpackbits(kept["graphs"], count=n * d * d).reshape(n, d, d).astype(bool)


def as_json(problem: Problem) -> Any:
    """An entry as it is read back from a file."""
    return json.loads(json.dumps(asdict(problem)))


def machine() -> dict[str, str]:
    """What decides about the last bit of compiled floating-point code."""
    found = {name: importlib.metadata.version(name) for name in ("jax", "jaxlib", "numpy")}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {**found, "processor": _processor(), "cores": str(cores)}


def _processor() -> str:
    """Model of the processor, and a digest of what it can do."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    told = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = " ".join(sorted((told.get("flags") or told.get("Features") or "").split()))
    return f"{told.get('model name', platform.machine())} {_digest(flags.encode())[:12]}"


def _digest(content: Any) -> str:
    return hashlib.sha256(bytes(content) if isinstance(content, bytes) else content.tobytes()).hexdigest()


def read(path: Path = FILE) -> dict[str, Record]:
    """All records of a golden file, by the name of their entry."""
    with np.load(path, allow_pickle=False) as file:
        records = json.loads(str(file["records"]))
        for key in file.files:
            name, _, part = key.partition("/")
            if part:
                records[name][part] = file[key]
    return records


def write(records: Mapping[str, Record], path: Path = FILE) -> None:
    """Write a golden file; arrays have members of their own, all else is JSON."""
    arrays: dict[str, Any] = {}
    plain: dict[str, Record] = {}
    for name, kept in records.items():
        plain[name] = {part: value for part, value in kept.items() if not isinstance(value, np.ndarray)}
        arrays |= {f"{name}/{part}": value for part, value in kept.items() if isinstance(value, np.ndarray)}
    np.savez_compressed(path, allow_pickle=False, records=json.dumps(plain), **arrays)


def differences(before: Record, now: Record) -> dict[str, float]:
    """The largest difference of each kind of number; infinite where shapes differ or only one has it."""
    found = {part: _largest(before[part], now[part]) for part in ("edges", "log_scores")}
    if "paths" in before:
        found["paths"] = _largest(before["paths"], now["paths"])
    if before["log_evidence"] is not None or now["log_evidence"] is not None:
        found["log_evidence"] = _largest(before["log_evidence"], now["log_evidence"])
    return found


def _largest(before: Any, now: Any) -> float:
    if before is None or now is None or np.shape(before) != np.shape(now):
        return np.inf
    with np.errstate(invalid="ignore"):  # −inf in both
        gap = np.where(np.equal(before, now), 0.0, np.abs(np.subtract(before, now)))
    return float(np.max(gap, initial=0.0))


def same_bits(before: Record, now: Record) -> bool:
    """Whether all samples and weights are the same, bit for bit."""
    return all(before[part] == now[part] for part in ("shape", "samples_sha256", "log_weights_sha256"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--compare", action="store_true", help="compare with the file, write nothing")
    parser.add_argument(
        "--only", nargs="+", choices=list(PROBLEMS), metavar="NAME", help="these entries alone"
    )
    arguments = parser.parse_args()
    kept = read() if FILE.exists() else {}
    made = {name: kept[name] for name in PROBLEMS if name in kept}
    for name in arguments.only or PROBLEMS:
        needs = PROBLEMS[name].needs
        if needs is not None and importlib.util.find_spec(needs) is None:
            print(f"{name:45s} left as it is: {needs} is not installed", flush=True)
            continue
        started = time.perf_counter()
        now = record(PROBLEMS[name], fit(PROBLEMS[name]))
        made[name] = now
        line = f"{name:45s} {time.perf_counter() - started:5.1f} s"
        if name in kept:
            bits = "same samples" if same_bits(kept[name], now) else "OTHER SAMPLES"
            gaps = "  ".join(f"{part} {gap:.1e}" for part, gap in differences(kept[name], now).items())
            changed = [
                part for part in ("problem", "table_sha256", "method") if kept[name][part] != now[part]
            ]
            line += f"  {bits}  {gaps}" + "".join(f"  OTHER {part.upper()}" for part in changed)
        print(line, flush=True)
    if not arguments.compare:
        write({name: made[name] for name in PROBLEMS if name in made})
        print(f"{FILE.name}: {FILE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
