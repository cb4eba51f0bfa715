import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from exact_flows import problem

from gflowdag.errors import FileFormatError, TrainingError
from gflowdag.gflownet import trainer
from gflowdag.gflownet.checkpoint import load_checkpoint, save_checkpoint
from gflowdag.gflownet.learners.edges import EdgeLearner
from gflowdag.gflownet.stacked import Stacked, stacked_optimizer, unstack
from gflowdag.gflownet.trainer import Options, learning_rate, train

KEY = jax.random.key(0)


class Line(eqx.Module):
    """Fits a slope; its memory counts the iterations; its loss is NaN from iteration `fails_at`."""

    slope: jax.Array
    fails_at: int = eqx.field(static=True, default=10**9)

    def init(self, key):
        return {"slope": jax.random.normal(key, (), jnp.float32)}, jnp.zeros((), jnp.int32)

    def loss(self, params, target, memory, key, moment):
        x = jax.random.normal(key, (16,), jnp.float32)
        loss = jnp.mean((params["slope"] * x - self.slope * x) ** 2)
        broken = jnp.where(moment.step >= self.fails_at, jnp.nan, 0.0).astype(jnp.float32)
        return loss + broken, (memory + 1, {"count": memory, "target": target["slope"]})


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


def assert_same(first, second):
    for a, b in zip(leaves(first), leaves(second), strict=True):
        np.testing.assert_array_equal(a, b)


def test_training_fits_and_reports(tmp_path):
    seen = []
    learner = Line(jnp.float32(3.0))
    options = Options(learning_rate=0.1, warmup=1)
    result = train(
        learner,
        KEY,
        iterations=300,
        options=options,
        folder=tmp_path,
        progress=lambda *a, **f: seen.append((a, f)),
    )
    assert abs(float(result.params["slope"]) - 3.0) < 1e-2  # the data have no noise around the line
    assert result.iterations == 300
    assert seen[-1][0] == (300, 300)
    assert {"loss", "count", "it/s"} <= set(seen[-1][1])
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["step"] == 300


def test_a_killed_run_resumes_bit_for_bit(tmp_path):
    """Killed at a third of the way, by an exception from the host's side, as a signal would."""
    with jax.enable_x64(True):
        _, space = problem(3)
        learner = EdgeLearner(space, batch_size=8, width=8)
        options = Options(chunk_seconds=0.0, checkpoint_seconds=0.0)
        whole = train(learner, KEY, iterations=12, options=options)

        def killed(step, params):
            if step > 4:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            train(learner, KEY, iterations=12, options=options, folder=tmp_path, callback=killed)
        resumed = train(learner, KEY, iterations=12, options=options, folder=tmp_path, resume=True)
    assert_same(whole.params, resumed.params)
    steps = [json.loads(line)["step"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert steps == sorted(set(steps))
    assert steps[-1] == 12


def test_the_result_does_not_depend_on_the_chunks():
    learner = Line(jnp.float32(1.0))
    fine = train(learner, KEY, iterations=50, options=Options(chunk_seconds=0.0))
    coarse = train(learner, KEY, iterations=50, options=Options(chunk_seconds=10.0))
    assert len(fine.history) > len(coarse.history)
    assert_same(fine.params, coarse.params)


class Stopwatch:
    """A clock that stands still but for the iterations, at first of a hundredth of a second each."""

    def __init__(self):
        self.seconds, self.pace = 0.0, 0.01

    def perf_counter(self):
        return self.seconds


@pytest.fixture
def stopwatch(monkeypatch):
    """The trainer's clock, so that what a budget allows does not depend on the machine."""
    clock, compiled = Stopwatch(), trainer._compile

    def compile_counting(*arguments):
        run_chunk = compiled(*arguments)

        def run_and_count(arrays, size):
            clock.seconds += clock.pace * int(size)
            return run_chunk(arrays, size)

        return run_and_count

    monkeypatch.setattr(trainer, "time", clock)
    monkeypatch.setattr(trainer, "_compile", compile_counting)
    return clock


@pytest.mark.usefixtures("stopwatch")
def test_the_count_of_a_budget_run_reproduces_it():
    learner = Line(jnp.float32(1.0))
    timed = train(learner, KEY, budget=1.0)
    counted = train(learner, KEY, iterations=timed.iterations)
    assert timed.iterations > 10
    assert_same(timed.params, counted.params)


@pytest.mark.usefixtures("stopwatch")
def test_a_budget_run_cools_down_within_its_time():
    result = train(Line(jnp.float32(1.0)), KEY, budget=2.0, options=Options(cooldown=0.75))
    # The last is chosen at the end of a chunk; three of four iterations follow that choice.
    assert 1.9 < result.seconds < 2.1


@pytest.mark.usefixtures("stopwatch")
def test_of_a_number_and_a_budget_the_first_to_be_over_ends_the_run(tmp_path):
    learner = Line(jnp.float32(1.0))
    counted = train(learner, KEY, iterations=20)
    assert_same(counted.params, train(learner, KEY, iterations=20, budget=60.0).params)

    timed = train(learner, KEY, iterations=10**9, budget=1.0, folder=tmp_path)
    assert 10 < timed.iterations < 10**9
    assert timed.seconds < 1.1
    # It chose its end: neither more time nor a new call moves it.
    again = train(learner, KEY, iterations=10**9, budget=60.0, folder=tmp_path, resume=True)
    assert again.iterations == timed.iterations
    assert_same(timed.params, train(learner, KEY, iterations=timed.iterations).params)


class Planned(Line):
    """Tells the number of iterations that it was planned for."""

    plans_ahead = True

    def loss(self, params, target, memory, key, moment):
        loss, (memory, metrics) = super().loss(params, target, memory, key, moment)
        return loss, (memory, {**metrics, "planned": moment.planned})


@pytest.mark.usefixtures("stopwatch")
def test_a_learner_with_a_schedule_is_told_the_number_of_iterations_that_its_budget_allows(tmp_path):
    learner = Planned(jnp.float32(1.0))
    options = Options(cooldown=0.0)
    timed = train(learner, KEY, iterations=10**9, budget=3.0, options=options, folder=tmp_path)
    assert {row["planned"] for row in timed.history} == {timed.planned}
    assert 2.9 < timed.seconds < 3.05  # what measures the pace is paid from the budget
    counted = train(learner, KEY, iterations=timed.iterations, options=options)
    assert counted.planned == timed.iterations == timed.planned
    assert_same(timed.params, counted.params)
    few = train(learner, KEY, iterations=20, budget=60.0, options=options)
    assert few.planned == few.iterations == 20


def test_a_budget_ends_a_planned_run_that_becomes_slower(stopwatch, monkeypatch):
    planned = trainer._plan

    def plan_and_slow_down(*arguments):
        number = planned(*arguments)
        monkeypatch.setattr(stopwatch, "pace", 0.05)
        return number

    monkeypatch.setattr(trainer, "_plan", plan_and_slow_down)
    result = train(Planned(jnp.float32(1.0)), KEY, budget=10.0, options=Options(cooldown=0.0))
    assert result.seconds < 10.5
    assert result.iterations < 0.3 * result.planned


def test_training_without_an_end_is_refused():
    with pytest.raises(TrainingError, match="iterations or a budget"):
        train(Line(jnp.float32(1.0)), KEY)


def test_chunks_of_any_size_use_one_compilation(monkeypatch):
    traced = []
    original = trainer.step
    monkeypatch.setattr(trainer, "step", lambda *args: traced.append(1) or original(*args))
    train(Line(jnp.float32(1.0)), KEY, iterations=40, options=Options(chunk_seconds=0.0))
    assert len(traced) <= 2  # once for the shapes of the metrics, once for the loop


def test_nan_stops_and_keeps_the_last_good_checkpoint(tmp_path):
    options = Options(chunk_seconds=0.0, checkpoint_seconds=0.0)
    with pytest.raises(TrainingError, match="diverged at iteration"):
        train(Line(jnp.float32(1.0), fails_at=30), KEY, iterations=100, options=options, folder=tmp_path)
    with np.load(tmp_path / "checkpoint.npz", allow_pickle=False) as stored:
        values = [stored[name] for name in stored.files if name != "header"]
    assert all(np.isfinite(value).all() for value in values)


def test_the_target_is_copied_in_its_period():
    result = train(
        Line(jnp.float32(5.0)), KEY, iterations=9, options=Options(target_period=4, chunk_seconds=0.0)
    )
    targets = {row["step"]: row["target"] for row in result.history}
    assert targets[1] == targets[2] == targets[4]
    assert targets[5] != targets[4]
    assert targets[5] == targets[8]


def test_learning_rate_rises_holds_and_falls():
    options = Options(learning_rate=1.0, warmup=10, cooldown=0.25)
    rates = [float(learning_rate(jnp.asarray(s), jnp.asarray(100), options)) for s in (0, 9, 50, 75, 99)]
    np.testing.assert_allclose(rates, [0.1, 1.0, 1.0, 1.0, 0.04], rtol=1e-5)  # float32


def test_checkpoints_hold_typed_keys_and_refuse_strangers(tmp_path):
    state = {"key": jax.random.key(7), "x": jnp.arange(3)}
    save_checkpoint(tmp_path, state, "mine")
    loaded = load_checkpoint(tmp_path, state, "mine")
    assert loaded is not None
    np.testing.assert_array_equal(jax.random.key_data(loaded["key"]), jax.random.key_data(state["key"]))
    with pytest.raises(TrainingError, match="other settings"):
        load_checkpoint(tmp_path, state, "another")
    with pytest.raises(TrainingError, match="other settings"):
        load_checkpoint(tmp_path, {**state, "x": jnp.arange(4)}, "mine")
    (tmp_path / "checkpoint.npz").write_bytes(b"PK\x03\x04 nonsense")
    with pytest.raises(FileFormatError):
        load_checkpoint(tmp_path, state, "mine")


def test_stacked_problems_learn_as_if_alone():
    """Up to the rounding of a different order of summation: no problem's gradient leaks into another's."""
    slopes = [Line(jnp.float32(1.0)), Line(jnp.float32(100.0))]
    optimizer = optax.clip_by_global_norm(1.0)  # a joint norm would be that of the steep problem
    options = Options(learning_rate=0.05)
    together = train(
        Stacked(slopes), KEY, iterations=30, options=options, optimizer=stacked_optimizer(optimizer)
    ).params
    small = train(
        Stacked(slopes[:1] * 2), KEY, iterations=30, options=options, optimizer=stacked_optimizer(optimizer)
    ).params
    np.testing.assert_allclose(unstack(together, 0)["slope"], unstack(small, 0)["slope"], rtol=1e-5)


def saving_in(seconds, stopwatch, monkeypatch):
    """Have every checkpoint take so long; returns the list of the times at which they begin."""
    saved = []

    def save_slowly(folder, arrays, fingerprint):
        saved.append(stopwatch.seconds)
        stopwatch.seconds += seconds

    monkeypatch.setattr(trainer, "save_checkpoint", save_slowly)
    return saved


def test_slow_checkpoints_are_written_less_often(tmp_path, monkeypatch, stopwatch):
    """Of 1 s each, 2 % of 200 seconds allow four; the last comes at the end."""
    saved = saving_in(1.0, stopwatch, monkeypatch)
    trained = train(Line(jnp.float32(3.0)), KEY, iterations=20_000, folder=tmp_path)
    assert trained.seconds < 1.03 * 200  # the first is written before its cost is known
    assert len(saved) >= 4
    assert saved[-1] == pytest.approx(trained.seconds - 1.0)


def test_a_checkpoint_is_never_older_than_ten_seconds(tmp_path, monkeypatch, stopwatch):
    saved = saving_in(0.05, stopwatch, monkeypatch)
    train(Line(jnp.float32(3.0)), KEY, iterations=12_000, folder=tmp_path)
    assert max(np.diff([0.0, *saved])) <= 10.0 + 0.05
