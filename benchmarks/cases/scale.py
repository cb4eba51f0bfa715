"""How far an answer repeats itself, and how much of the machine the hot loops use."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from gflowdag.estimators.order_gflownet import order_space
from gflowdag.experiments import problems
from gflowdag.gflownet.edge_learner import EdgeLearner
from gflowdag.gflownet.edge_policy import default_width
from gflowdag.gflownet.edges import edge_space
from gflowdag.gflownet.order_learner import OrderLearner
from gflowdag.gflownet.trainer import train
from gflowdag.mcmc import orders as order_mcmc
from gflowdag.posterior import Posterior
from gflowdag.runs import read_manifest, read_metrics
from gflowdag.score import make_score
from gflowdag.score.order_problem import order_problem
from harness import Options, Row, case, in_double_precision

_FITS = {  # on the 11 variables of the Sachs data
    "order-gflownet": ("--iterations", "500"),
    "dag-gflownet": ("--iterations", "200"),
    "order-mcmc": (),
    "mc3": (),
}
_PASSES = 4  # of the network for each state: one to walk, one forwards and two backwards for the gradient


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
    evidence = [posterior.log_evidence for posterior in (one, other)]
    return {
        "method": method,
        "device": "cpu against gpu",
        "largest_edge_difference": float(gap.max()),
        "in_standard_errors": float((gap[error > 0] / error[error > 0]).max(initial=0.0)),
        "log_evidence_difference": None if None in evidence else float(abs(evidence[0] - evidence[1])),
    }


@case
def profile(options: Options) -> Iterator[Row]:
    """Hot loops beside what the machine does in one large product or copy."""
    yield from in_double_precision(_profile, options)


def _profile(options: Options) -> Iterator[Row]:
    machine = machine_peaks(512 if options.quick else 4096)
    yield {"loop": "one large operation", **machine}
    d = 5 if options.quick else int(options.extra.get("d", 20))
    seconds = 0.5 if options.quick else float(options.extra.get("seconds", 8.0))
    score = make_score(problems.linear_gaussian(d, 100, 0, standardize=True).data)
    orders = order_problem(score, seed=0)
    space = order_space(score, orders)
    large = (256,) if jax.default_backend() == "cpu" else (256, 4096)
    for batch in (16,) if options.quick else large:
        found = training_rate(OrderLearner(space, batch=batch, untrained_every=8), seconds)
        states = d * batch * found["iterations_per_s"]
        yield {"loop": "order GFlowNet", "d": d, "batch": batch, **_used(found, states, machine)}
    for batch in (16,) if options.quick else (128,):
        learner = EdgeLearner(edge_space(score), batch_size=batch, width=default_width(d))
        found = training_rate(learner, seconds)
        states = (found["edges"] + 1.0) * batch * found["iterations_per_s"]
        yield {"loop": "DAG-GFlowNet", "d": d, "batch": batch, **_used(found, states, machine)}
    for chains in (16,) if options.quick else (64, 1024):
        yield {"loop": "order MCMC", "d": d, "batch": chains, **_chain_rate(orders, chains, options.quick)}


def machine_peaks(size: int) -> Row:
    """What one large float32 product and one large copy reach, in 10⁹ operations and bytes per second."""
    left = jnp.ones((size, size), jnp.float32)
    product = jax.jit(lambda x: x @ x)
    exact_product = jax.jit(lambda x: jnp.matmul(x, x, precision="highest"))
    block = jnp.ones((32 * size**2,) if jax.default_backend() != "cpu" else (4 * size**2,), jnp.float32)
    copy = jax.jit(lambda x: x + 1.0)
    return {
        "device": jax.devices()[0].device_kind,
        "gflops": 2e-9 * size**3 / _seconds(product, left),
        "gflops_full_precision": 2e-9 * size**3 / _seconds(exact_product, left),
        "gbytes_per_s": 2e-9 * block.nbytes / _seconds(copy, block),
    }


class _Enough(Exception):
    """Ends a training that has been watched for long enough."""


def training_rate(learner: Any, seconds: float) -> dict[str, float]:
    """Iterations per second inside the compiled loop, the figures of its last chunk, and its parameters."""
    looks: list[tuple[int, float]] = []
    found: dict[str, float] = {}

    def look(step: int, params: Any) -> None:
        weights = jax.tree.leaves(eqx.filter(params, eqx.is_array))
        found["multiplications"] = float(sum(leaf.size for leaf in weights if leaf.ndim == 2))
        looks.append((step, time.perf_counter()))
        if looks[-1][1] > looks[0][1] + seconds:
            raise _Enough

    def listen(done: float, total: float, /, **figures: float) -> None:
        found.update(figures)

    with contextlib.suppress(_Enough):
        train(learner, jax.random.key(0), iterations=10**6, progress=listen, callback=look)
    (first, begun), (last, ended) = looks[len(looks) // 2], looks[-1]
    return found | {"iterations_per_s": (last - first) / (ended - begun)}


def _used(found: dict[str, float], states_per_s: float, machine: Row) -> Row:
    """Operations of the network's layers, each weight once for each state and pass."""
    gflops = 2e-9 * _PASSES * found["multiplications"] * states_per_s
    return {
        "iterations_per_s": found["iterations_per_s"],
        "states_per_s": states_per_s,
        "gflops": gflops,
        "share_of_large_product": gflops / machine["gflops"],
        "gradient_bytes": 4 * found["multiplications"],
    }


def _chain_rate(problem: Any, chains: int, quick: bool) -> Row:
    def run(key: jax.Array) -> Any:
        return order_mcmc.sample(
            problem.weights,
            problem.labels,
            key,
            num_chains=chains,
            num_records=2 if quick else 10,
            thinning=10 if quick else 100,
            burn_in=0,
        ).log_weights

    steps = chains * (20 if quick else 1000)
    return {"steps_per_s": steps / _seconds(run, jax.random.key(0), calls=1)}


def _seconds(function: Callable, argument: Any, calls: int = 10) -> float:
    jax.block_until_ready(function(argument))
    started = time.perf_counter()
    for _ in range(calls):
        out = function(argument)
    jax.block_until_ready(out)
    return (time.perf_counter() - started) / calls
