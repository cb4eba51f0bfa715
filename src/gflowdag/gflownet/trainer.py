"""The one training loop of every GFlowNet: it knows gradients, time and files, never the state space.

A *learner* (a state space with its policy and objective) brings two pure functions, `init` and `loss`. The
loop over iterations runs inside one compiled `while`; the host sees it once a second or so, to report
progress, to write a checkpoint and to stop a run that has diverged. Every iteration's randomness is
`fold_in(key, step)`, so the result depends on the seed and the number of iterations alone, not on where the
run was cut into chunks.

Inside `devices.data_parallel` the learner's batch is split over the devices and the parameters are copies;
several processes run this loop in step, with the clock of the first.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from gflowdag.errors import TrainingError
from gflowdag.gflownet.checkpoint import append_metrics, load_checkpoint, save_checkpoint, truncate_metrics
from gflowdag.runtime.checkpoints import SECONDS_BETWEEN, SHARE_OF_TIME
from gflowdag.runtime.devices import gathered, layout, replicated
from gflowdag.runtime.processes import agreed, is_leader
from gflowdag.runtime.progress import Progress, silent

_SHARE_OF_PLANNING = 0.02  # of a budget, for iterations that only measure the pace
_OPEN_END = np.iinfo(np.int32).max  # horizon of a run that has a budget alone, until it chooses its end


class Moment(NamedTuple):
    """Where a run is, for the schedules of a learner."""

    step: Array  # int32 [], number of the iteration, from 0
    planned: Array  # int32 [], number of iterations that the run is planned for


class Learner(Protocol):
    """What the trainer asks of a state space. Array leaves of a learner that is a pytree are traced.

    A learner whose schedules follow `Moment.planned` says so by an attribute `plans_ahead = True`: a run with
    a budget then measures its pace and plans the number of iterations before it begins.
    """

    def init(self, key: Array) -> tuple[Any, Any]:
        """Fresh `(params, memory)`: what is learnt by gradients, and whatever else the loss carries on."""
        ...

    def loss(
        self, params: Any, target: Any, memory: Any, key: Array, moment: Moment
    ) -> tuple[Array, tuple[Any, dict]]:
        """`(loss, (memory, metrics))` of one iteration; `target` is an older copy of `params`.

        Metrics are scalars; their mean over a chunk goes to the progress and the metrics file.
        """
        ...


class Options(NamedTuple):
    """How a learner is optimised: Adam with warm-up, constant rate and a linear cool-down at the end."""

    learning_rate: float = 1e-3
    warmup: int = 100  # iterations of linear growth of the rate
    clip: float = 10.0  # largest norm of a gradient
    target_period: int = 1  # iterations between copies into the target; 1: the target is the present copy
    cooldown: float = 0.25  # share of the iterations, at the end, in which the rate falls to zero
    chunk_seconds: float = 1.0  # how often the host looks in
    checkpoint_seconds: float = SECONDS_BETWEEN
    divergence: float = 1e4  # a mean loss this many times the least of a chunk so far is a divergence


class TrainState(NamedTuple):
    """Everything that an iteration reads and writes: what a checkpoint holds."""

    params: Any
    target: Any
    optimizer: Any
    memory: Any
    step: Array  # int32 []
    planned: Array  # int32 [], number of iterations that the schedules of the learner follow
    horizon: Array  # int32 [], number of the last iteration


class Trained(NamedTuple):
    """The outcome of a run."""

    params: Any
    iterations: int  # giving this number reproduces the run, also one that was given a budget
    seconds: float  # of this call, compilation included
    history: list[dict[str, float]]  # one row per chunk: step, seconds, loss, metrics
    planned: int  # more than `iterations` where the budget was over before


def train(
    learner: Learner,
    key: Array,
    *,
    iterations: int | None = None,
    budget: float | None = None,
    options: Options = Options(),  # noqa: B008 (immutable)
    optimizer: optax.GradientTransformation | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    fingerprint: str = "",
    progress: Progress = silent,
    callback: Callable[[int, Any], None] | None = None,
) -> Trained:
    """Train `learner` for a number of iterations or for some time, or until the first of the two is over.

    A run with a budget chooses its last iteration when the time that is left just suffices, at the present
    pace, to cool down the learning rate; the number it chose is returned and reproduces the run. Where the
    learner plans ahead, the number is chosen at the start, from the pace of some iterations that are thrown
    away; if the pace falls, the budget still ends the run.

    Args:
        learner: `init` and `loss`, pure.
        key: typed PRNG key; one key and one number of iterations give one result.
        iterations: number of gradient steps, at most.
        budget: seconds of this call, compilation included. One of the two has to be given.
        options: of the optimisation.
        optimizer: gradient transformation *without* the learning rate; by default clipping and Adam.
        folder: where `checkpoint.npz` and `metrics.jsonl` are written; nothing is written without one.
        resume: continue from the checkpoint in `folder`, if there is one.
        fingerprint: of data and configuration; a checkpoint with another one is refused.
        progress: told `(done, total, loss=…, …)` after every chunk.
        callback: called with `(step, params)` after every chunk; the params are only valid during the call.

    Raises:
        TrainingError: the loss is not finite or has diverged. The last checkpoint, written before, stays.
    """
    if iterations is None and budget is None:
        raise TrainingError("training needs a number of iterations or a budget in seconds")
    started = time.perf_counter()
    optimizer = optimizer or clipped_adam(options)
    init_key, loop_key = jax.random.split(key)
    learner = replicated(learner)

    state = _fresh_state(learner, optimizer, init_key, iterations or _OPEN_END)
    arrays, static = eqx.partition(state, eqx.is_array)
    if folder is not None:
        arrays = _prepare_folder(Path(folder), arrays, resume, fingerprint, iterations, budget)
    run_chunk = _compile(learner, static, optimizer, options, arrays, loop_key)

    clock = _Clock(started, options)
    history: list[dict[str, float]] = []
    step, planned, horizon = int(arrays.step), int(arrays.planned), int(arrays.horizon)
    if budget is not None and step == 0 and getattr(learner, "plans_ahead", False):
        planned = horizon = _plan(run_chunk, arrays, clock, budget, planned)
        number = jnp.asarray(planned, jnp.int32)
        arrays = arrays._replace(planned=number, horizon=number.copy())
    saved_at, pause, limit = clock.seconds, options.checkpoint_seconds, math.inf
    try:
        while step < horizon:
            time_decides = budget if horizon == planned else None  # until it has chosen the end
            size = clock.chunk_size(step, horizon, time_decides)
            arrays, means = run_chunk(arrays, np.int32(size))
            metrics = {name: float(value) for name, value in jax.device_get(means).items()}  # waits for it
            step += size
            clock.chunk_done(size)
            limit = min(limit, options.divergence * (abs(metrics["loss"]) + 1.0))
            if not metrics["loss"] < limit:  # also catches NaN
                raise TrainingError(_divergence_message(metrics["loss"], step, folder))

            history.append({"step": step, "seconds": clock.seconds, **metrics})
            if folder is not None and is_leader():
                append_metrics(folder, history[-1])
            _report(progress, clock, step, horizon, budget, metrics)
            if callback is not None:
                callback(step, eqx.combine(arrays.params, static.params))
            if time_decides is not None and clock.seconds_to_cooldown(step, time_decides) <= 0:
                horizon = min(horizon, max(step + 1, math.ceil(step / (1 - options.cooldown))))
                arrays = arrays._replace(horizon=jnp.asarray(horizon, jnp.int32))
            age = clock.seconds - saved_at + options.chunk_seconds  # of the checkpoint, at the next look
            if folder is not None and (step >= horizon or age > pause):
                save_checkpoint(folder, arrays, fingerprint)
                pause = max(options.checkpoint_seconds, clock.leave_out() / SHARE_OF_TIME)
                saved_at = clock.seconds
    except KeyboardInterrupt:
        # Not if it was donated to a chunk just begun, nor if other processes hold a part of it.
        if folder is not None and not arrays.step.is_deleted() and jax.process_count() == 1:
            save_checkpoint(folder, arrays, fingerprint)
        raise
    seconds = time.perf_counter() - started
    return Trained(eqx.combine(arrays.params, static.params), step, seconds, history, planned)


def _plan(run_chunk: Any, arrays: TrainState, clock: _Clock, budget: float, most: int) -> int:
    """Number of iterations that the time allows, at the pace of some that are made on a copy."""
    copy = jax.tree.map(jnp.copy, arrays)
    ends = clock.seconds + _SHARE_OF_PLANNING * (budget - clock.seconds)
    rounds = 0
    while rounds < 2 or clock.seconds < ends:
        size = clock.chunk_size(0, most, ends if rounds else None)
        copy, means = run_chunk(copy, np.int32(size))
        jax.block_until_ready(means)
        clock.chunk_done(size)
        rounds += 1
    return max(1, min(most, int(clock.iterations_per_second * (budget - clock.seconds))))


def clipped_adam(options: Options) -> optax.GradientTransformation:
    """The default optimiser, without the learning rate."""
    clip = optax.clip_by_global_norm(options.clip) if math.isfinite(options.clip) else optax.identity()
    return optax.chain(clip, optax.scale_by_adam())


def learning_rate(step: Array, horizon: Array, options: Options) -> Array:
    """Warm-up, a constant rate, then a linear fall to zero over the last `cooldown` of the horizon."""
    step, horizon = step.astype(jnp.float32), horizon.astype(jnp.float32)
    rise = (step + 1.0) / max(options.warmup, 1)
    fall = (horizon - step) / jnp.maximum(options.cooldown * horizon, 1.0)
    return options.learning_rate * jnp.clip(jnp.minimum(rise, fall), 0.0, 1.0)


def _fresh_state(learner: Learner, optimizer: Any, key: Array, horizon: int) -> TrainState:
    def init(learner: Learner, key: Array) -> tuple[Any, Any]:
        params, memory = learner.init(key)
        return gathered(params), memory

    params, memory = eqx.filter_jit(init)(learner, key)
    # The loop's buffers are donated, so no two leaves of the state may share one: hence the copies.
    target = jax.tree.map(lambda leaf: leaf.copy() if eqx.is_array(leaf) else leaf, params)
    opt_state = jax.tree.map(
        lambda leaf: jnp.array(leaf) if eqx.is_array(leaf) else leaf,
        optimizer.init(eqx.filter(params, eqx.is_inexact_array)),
    )
    step, planned, last = (jnp.asarray(number, jnp.int32) for number in (0, horizon, horizon))
    return TrainState(params, target, opt_state, memory, step, planned, last)


def _compile(learner, static, optimizer, options: Options, arrays, loop_key: Array):
    """The compiled chunk `(state, number of iterations) -> (state, mean loss and metrics)`."""
    learner_arrays, learner_static = eqx.partition(learner, eqx.is_array)

    def chunk(learner_arrays, key: Array, arrays: TrainState, size: Array):
        learner = eqx.combine(learner_arrays, learner_static)

        def one_step(arrays):
            state = eqx.combine(arrays, static)
            state, metrics = step(learner, optimizer, options, key, state)
            return eqx.filter(state, eqx.is_array), metrics

        def body(_, carry):
            arrays, sums = carry
            arrays, metrics = one_step(arrays)
            return arrays, jax.tree.map(jnp.add, sums, metrics)

        shapes = jax.eval_shape(one_step, arrays)[1]
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        arrays, sums = jax.lax.fori_loop(0, size, body, (arrays, zeros))
        return arrays, jax.tree.map(lambda total: total / size, sums)

    jitted = jax.jit(chunk, donate_argnums=2, out_shardings=(layout(arrays), None))
    compiled = jitted.lower(learner_arrays, loop_key, arrays, np.int32(1)).compile()
    return lambda arrays, size: compiled(learner_arrays, loop_key, arrays, size)


def step(
    learner: Learner, optimizer: optax.GradientTransformation, options: Options, key: Array, state: TrainState
) -> tuple[TrainState, dict[str, Array]]:
    """One iteration: gradient, optimiser, target copy."""
    objective = eqx.filter_value_and_grad(learner.loss, has_aux=True)
    (loss, (memory, metrics)), gradient = objective(
        state.params,
        state.target,
        state.memory,
        jax.random.fold_in(key, state.step),
        Moment(state.step, state.planned),
    )
    updates, opt_state = optimizer.update(
        gradient, state.optimizer, eqx.filter(state.params, eqx.is_inexact_array)
    )
    rate = learning_rate(state.step, state.horizon, options)
    params = eqx.apply_updates(state.params, jax.tree.map(lambda u: (-rate * u).astype(u.dtype), updates))
    copy = (state.step + 1) % options.target_period == 0
    target = jax.tree.map(
        lambda new, old: jnp.where(copy, new, old) if eqx.is_array(new) else new, params, state.target
    )
    metrics = {"loss": loss, **metrics}
    metrics = {name: jnp.asarray(value, jnp.float32) for name, value in metrics.items()}
    advanced = state._replace(
        params=params, target=target, optimizer=opt_state, memory=memory, step=state.step + 1
    )
    return advanced, metrics


class _Clock:
    """Wall-clock time of a run as of the last look, and from it the size of the next chunk.

    All processes look at the clock of the first, so that they choose the same sizes.
    """

    def __init__(self, started: float, options: Options):
        self._started, self._options = started, options
        self._chunks: deque[tuple[int, float]] = deque(maxlen=8)  # iterations and seconds of the last ones
        self.seconds = self._look()

    def _look(self) -> float:
        return float(agreed(time.perf_counter() - self._started))

    @property
    def iterations_per_second(self) -> float:
        iterations, seconds = (sum(values) for values in zip(*self._chunks, strict=True))
        return iterations / max(seconds, 1e-6)

    def seconds_to_cooldown(self, step: int, budget: float) -> float:
        """When the cool-down has to begin, so that it ends with the budget."""
        share = self._options.cooldown
        return (1 - share) * (budget - self.seconds) - share * step / self.iterations_per_second

    def chunk_size(self, step: int, horizon: int, budget: float | None) -> int:
        """Iterations until the host looks in again; with a budget, no later than the cool-down begins."""
        if not self._chunks:
            return 1
        wanted = self._options.chunk_seconds
        if budget is not None:
            wanted = min(wanted, max(self.seconds_to_cooldown(step, budget), 0.0))
        size = math.ceil(wanted * self.iterations_per_second)
        return int(min(max(size, 1), 8 * self._chunks[-1][0], horizon - step))

    def leave_out(self) -> float:
        """Count the time since the last look for no chunk; returns it, in seconds."""
        before, self.seconds = self.seconds, self._look()
        return self.seconds - before

    def chunk_done(self, size: int) -> None:
        now = self._look()
        self._chunks.append((size, now - self.seconds))
        self.seconds = now


def _prepare_folder(
    folder: Path, arrays, resume: bool, fingerprint: str, iterations: int | None, budget: float | None
):
    """The state of the checkpoint in `folder` when resuming, else `arrays`; metrics cut to that point."""
    loaded = load_checkpoint(folder, arrays, fingerprint) if resume else None
    if loaded is not None:
        arrays = loaded
        planned = int(arrays.horizon)
        ended_by_time = budget is not None and planned < (iterations or _OPEN_END)
        if iterations is not None and planned != iterations and not ended_by_time:
            raise TrainingError(
                f"the run in {folder} was planned for {planned} iterations, not {iterations}: "
                "resume it with the same number, or start a new run"
            )
    if is_leader():
        truncate_metrics(folder, int(arrays.step))
    return arrays


def _report(
    progress: Progress, clock: _Clock, step: int, horizon: int, budget: float | None, metrics: dict
) -> None:
    rate = {"it/s": clock.iterations_per_second}
    if budget is None:
        progress(step, horizon, **metrics, **rate)
    else:
        done = max(clock.seconds, budget * step / horizon)
        progress(min(done, budget), budget, **metrics, **rate)


def _divergence_message(loss: float, step: int, folder: str | Path | None) -> str:
    kept = f"; the last good checkpoint is in {folder}" if folder is not None else ""
    return f"training diverged at iteration {step} (mean loss {loss:.3g}){kept}. Lower the learning rate."
