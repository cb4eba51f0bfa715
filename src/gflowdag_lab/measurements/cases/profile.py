"""How much of the machine the hot loops use, beside one large product and one large copy."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxprs_in_params

from gflowdag.estimators import order_space
from gflowdag.gflownet import (
    EdgeLearner,
    LikelihoodLearner,
    OrderLearner,
    PairPolicy,
    PaperLearner,
    Sizes,
    default_width,
    edge_space,
    sample,
    train,
)
from gflowdag.graph import erdos_renyi
from gflowdag.orders import order_problem
from gflowdag.score import Score
from gflowdag_lab.bench.compilation import compilation_seconds
from gflowdag_lab.bench.measure import units_per_s
from gflowdag_lab.bench.samplers import SAMPLERS, Draw, num_drawn
from gflowdag_lab.measurements.harness import Options, Row, case, in_double_precision
from gflowdag_lab.model import paper_score
from gflowdag_lab.paper import problems

_GRADIENT = 3  # passes of a network: forwards, and backwards to the inputs and to the weights
_TINY = Sizes(embedding=4, heads=1, head_size=4, hidden=8, shared_blocks=1, head_blocks=1)
Measurement = Callable[[Score, int, float], Row]


@case
def profile(options: Options) -> Iterator[Row]:
    """Hot loops beside what the machine does in one large product or copy; `loops` chooses some."""
    yield from in_double_precision(_profile, options)


def _profile(options: Options) -> Iterator[Row]:
    machine = machine_peaks(512 if options.quick else 4096)
    yield {"loop": "one large operation", **machine}
    seconds = 0.2 if options.quick else float(options.extra.get("seconds", 5.0))
    for name in options.extra.get("loops", ",".join(LOOPS)).split(","):
        loop = LOOPS[name]
        d, batch = (4, 16) if options.quick else (loop.variables, loop.batch)
        begun, compiled = time.perf_counter(), compilation_seconds()
        row = loop.measure(
            paper_score(problems.linear_gaussian(d, 100, 0, standardize=True).data), batch, seconds
        )
        if "gflops" in row:
            row["share_of_large_product"] = row["gflops"] / machine["gflops"]
        spent = {"compilation": compilation_seconds() - compiled, "seconds": time.perf_counter() - begun}
        yield {"loop": name, "variables": d, "batch": batch, **row, **spent}


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


def product_operations(function: Callable, *arguments: Any) -> float:
    """Floating-point operations of the matrix products in one call."""
    return _product_operations(jax.make_jaxpr(function)(*arguments).jaxpr)


def _product_operations(program: Any) -> float:
    total = 0.0
    for equation in program.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            total += 2.0 * equation.outvars[0].aval.size * math.prod(left[i] for i in contracted)
        total += sum(map(_product_operations, jaxprs_in_params(equation.params)))
    return total


class _Enough(Exception):
    """Ends a training that has been watched for long enough."""


def training_rate(learner: Any, seconds: float) -> dict[str, float]:
    """Iterations per second inside the compiled loop, and the values of its last chunk."""
    looks: list[tuple[int, float]] = []
    found: dict[str, float] = {}

    def look(step: int, params: Any) -> None:
        looks.append((step, time.perf_counter()))
        if looks[-1][1] > looks[0][1] + seconds:
            raise _Enough

    def listen(done: float, total: float, /, **values: float) -> None:
        found.update(values)

    with contextlib.suppress(_Enough):
        train(learner, jax.random.key(0), iterations=10**6, progress=listen, callback=look)
    (first, begun), (last, ended) = looks[(len(looks) - 1) // 2], looks[-1]
    return found | {"iterations_per_s": (last - first) / (ended - begun)}


def _order_training(score: Score, batch: int, seconds: float) -> Row:
    learner = OrderLearner(order_space(score, order_problem(score, seed=0)), batch=batch, untrained_every=8)
    rate = training_rate(learner, seconds)["iterations_per_s"]
    d = score.num_variables
    one = product_operations(_fresh_policy(learner), learner.space.observe(learner.space.start()))
    # An order has d states; each is walked through once and learnt from once.
    return {"iterations_per_s": rate, "gflops": 1e-9 * rate * d * batch * (1 + _GRADIENT) * one}


def _edge_training(score: Score, batch: int, seconds: float) -> Row:
    learner = EdgeLearner(edge_space(score), batch_size=batch, width=default_width(score.num_variables))
    found = training_rate(learner, seconds)
    rate, states = found["iterations_per_s"], (found["edges"] + 1.0) * batch
    gflops = 1e-9 * rate * states * (1 + _GRADIENT) * _edge_pass(learner)
    return {"iterations_per_s": rate, "edges": found["edges"], "gflops": gflops}


def _paper_training(score: Score, batch: int, seconds: float) -> Row:
    tiny = {"sizes": _TINY, "capacity": 100, "prefill": 2} if score.num_variables < 5 else {}
    learner = PaperLearner(edge_space(score), batch_size=batch, **tiny)
    rate = training_rate(learner, seconds)["iterations_per_s"]
    # A transition passes through the network with its gradient, and through the target network.
    passes = learner.num_environments + (1 + _GRADIENT) * batch
    return {"iterations_per_s": rate, "gflops": 1e-9 * rate * passes * _edge_pass(learner)}


def _chains_training(score: Score, batch: int, seconds: float) -> Row:
    d, rng = score.num_variables, np.random.default_rng(0)
    graphs = np.stack([erdos_renyi(d, d * (d - 1) / 8, rng) for _ in range(1000)])  # as dense as a posterior
    learner = LikelihoodLearner(
        edge_space(score),
        jnp.asarray(graphs, bool),
        jnp.zeros(len(graphs), jnp.float64),
        partial(PairPolicy, d, width=default_width(d), backward="uniform"),
        batch,
    )
    rate = training_rate(learner, seconds)["iterations_per_s"]
    return {"iterations_per_s": rate, "gflops": 1e-9 * rate * batch * _GRADIENT * _edge_pass(learner)}


def _order_sampling(score: Score, batch: int, seconds: float) -> Row:
    rate = drawing_rate(SAMPLERS["order-gflownet"](score, 0), seconds)
    d = score.num_variables
    learner = OrderLearner(order_space(score, order_problem(score, seed=0)))
    one = product_operations(_fresh_policy(learner), learner.space.observe(learner.space.start()))
    return {"dags_per_s": rate, "gflops": 1e-9 * rate * d * one}


def _edge_sampling(score: Score, batch: int, seconds: float) -> Row:
    learner = EdgeLearner(edge_space(score), width=default_width(score.num_variables))
    policy, count = _fresh_policy(learner), num_drawn()
    num_edges: list[float] = []

    def draw() -> int:
        num_edges.append(float(sample(learner.space, policy, jax.random.key(0), count).num_steps.mean()))
        return count

    rate = drawing_rate(draw, seconds)
    gflops = 1e-9 * rate * (num_edges[0] + 1.0) * _edge_pass(learner)
    return {"dags_per_s": rate, "edges": num_edges[0], "gflops": gflops}


def _edge_pass(learner: Any) -> float:
    observation = learner.space.observe(learner.space.start())
    return product_operations(_fresh_policy(learner), observation)


def _fresh_policy(learner: Any) -> Any:
    return learner.init(jax.random.key(0))[0]


def drawing_rate(draw: Draw, seconds: float) -> float:
    """Graphs per second over at least so many seconds."""
    draw()  # compiles
    return units_per_s(draw, seconds)


def _chain_sampling(method: str) -> Measurement:
    def measure(score: Score, batch: int, seconds: float) -> Row:
        return {"dags_per_s": drawing_rate(SAMPLERS[method](score, 0), seconds)}

    return measure


class Loop(NamedTuple):
    """A hot loop at the size at which it is watched."""

    measure: Measurement
    variables: int
    batch: int


LOOPS = {
    "order-20": Loop(_order_training, 20, 256),
    "fast-20": Loop(_edge_training, 20, 128),
    "paper-5": Loop(_paper_training, 5, 32),
    "paper-20": Loop(_paper_training, 20, 32),
    "order-20-large": Loop(_order_training, 20, 4096),
    "chains-20": Loop(_chains_training, 20, 2048),
    "order-sampling-20": Loop(_order_sampling, 20, 1000),
    "fast-sampling-20": Loop(_edge_sampling, 20, 1000),
    "order-mcmc-20": Loop(_chain_sampling("order-mcmc"), 20, 250),
    "mc3-20": Loop(_chain_sampling("mc3"), 20, 250),
}


def _seconds(function: Callable, argument: Any, calls: int = 10) -> float:
    jax.block_until_ready(function(argument))
    started = time.perf_counter()
    for _ in range(calls):
        out = function(argument)
    jax.block_until_ready(out)
    return (time.perf_counter() - started) / calls
