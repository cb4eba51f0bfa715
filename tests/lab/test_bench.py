"""The benchmark: rows are kept, ratios are right, and what got slower is seen."""

from __future__ import annotations

import io
import math
import time
from itertools import islice
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from gflowdag import exact
from gflowdag.cli.app import app
from gflowdag.errors import FileFormatError, GFlowDAGError
from gflowdag.estimators import REGISTRY, estimator_class
from gflowdag.posterior.posterior import Posterior
from gflowdag.runtime.precision import double_precision
from gflowdag_lab.bench import command, measure, process, ratios, speed_plot, summary
from gflowdag_lab.bench.compilation import compilation_seconds
from gflowdag_lab.bench.ladders import METHODS, is_installed, method_of, rungs
from gflowdag_lab.bench.measure import MEASUREMENTS
from gflowdag_lab.bench.samplers import SAMPLERS
from gflowdag_lab.bench.stored_rows import Results, Row
from gflowdag_lab.bench.tasks import KINDS, Task, plan
from gflowdag_lab.model import paper_score
from gflowdag_lab.paper.problems import linear_gaussian

ABOUT = {"processor": "one", "cores": 2}


def _row(subject: str, kind: str = "quality", d: int = 5, **values: Any) -> Row:
    task = Task(kind, subject, d)
    return {"name": task.name, **task.as_json(), **values}


def _quality(subject: str, seconds: float, error: float = 0.01, **more: Any) -> Row:
    rung = {"work": seconds, "compilation": 5.0, "error": error}
    reached = {"to_0.05_s": seconds, "to_0.02_s": seconds} if error < 0.02 else {}
    return _row(subject, rungs=[rung], best_error=error, **reached, **more)


def test_every_method_has_a_ladder() -> None:
    assert set(map(method_of, METHODS)) == set(REGISTRY) - {"auto"}


@pytest.mark.parametrize("method", METHODS)
def test_rungs_are_settings_of_the_estimator_and_double(method: str) -> None:
    first, *others = islice(rungs(method), 4)
    estimator_class(method_of(method))(**first)
    for low, high in zip([first, *others], others, strict=False):
        assert any(high[name] == 2 * low[name] for name in low)


def test_every_kind_is_planned_and_can_be_measured() -> None:
    tasks = plan(METHODS, [5], kinds=KINDS, cap=1, seed=0)
    assert {task.kind for task in tasks} == set(KINDS) == set(MEASUREMENTS)
    assert len({task.name for task in tasks}) == len(tasks)
    assert {task.subject for task in tasks if task.kind == "quality"} == set(filter(is_installed, METHODS))


def test_the_exact_posterior_reaches_every_goal_at_once(tmp_path: Path) -> None:
    (row,) = MEASUREMENTS["quality"](Task("quality", "exact", 4), tmp_path)
    assert row["best_error"] == 0
    assert row["to_0.05_s"] == row["to_0.02_s"] == row["rungs"][0]["work"]
    assert row["compilation_s"] >= 0


def _climb(
    fits: list[tuple[float, float]], cap: float, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Row]:
    """The rows of a climb whose fits have these seconds of work and errors; the first one compiles."""
    data = linear_gaussian(3, 50, 0, standardize=True).data
    truth = exact.posterior(paper_score(data).dense_table()).edge_probabilities
    done = iter(fits)

    def pretend(*_: Any) -> tuple[Posterior, measure.Spent]:
        work, error = next(done)
        wrong = truth.copy()
        wrong[0, 1] += error if wrong[0, 1] < 0.5 else -error
        compilation = 5.0 if work == fits[0][0] else 0.1
        return Posterior(np.zeros((1, 3, 3)), data.names, marginals=wrong), measure.Spent(work, compilation)

    monkeypatch.setattr(measure, "_fit", pretend)
    return list(MEASUREMENTS["quality"](Task("quality", "mc3", 3, num_rows=50, cap=cap), folder))


def test_a_method_climbs_until_it_is_good_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fits = [(1.0, 0.2), (2.0, 0.04), (4.0, 0.03), (8.0, 0.01), (16.0, 0.0)]
    rows = _climb(fits, 60.0, tmp_path, monkeypatch)
    assert [len(row["rungs"]) for row in rows] == [1, 2, 3, 4]
    assert (rows[-1]["to_0.05_s"], rows[-1]["to_0.02_s"]) == (2.0, 8.0)
    assert [row["compilation_s"] for row in rows] == [5.0] * 4
    assert rows[-1]["best_error"] == pytest.approx(0.01)


def test_nothing_longer_than_the_cap_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The fourth fit would take 8 s.
    rows = _climb([(1.0, 0.3), (2.0, 0.3), (4.0, 0.3)], 7.0, tmp_path, monkeypatch)
    assert len(rows) == 3
    assert not {"to_0.05_s", "to_0.02_s"} & set(rows[-1])


def test_set_up_does_not_count_as_growing_effort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Three seconds of set-up and 0.5, 1, 2 of effort: the next would take 7.
    rows = _climb([(3.5, 0.3), (4.0, 0.3), (5.0, 0.3), (7.0, 0.3)], 8.0, tmp_path, monkeypatch)
    assert len(rows) == 4


def test_compilation_is_counted_once() -> None:
    before, started = compilation_seconds(), time.perf_counter()

    @jax.jit
    def compiled(x: jax.Array) -> jax.Array:
        return jax.jit(lambda y: y @ y + 3)(x).sum()

    compiled(np.ones((3, 3)))
    spent = compilation_seconds() - before
    assert 0 < spent < time.perf_counter() - started
    compiled(np.ones((3, 3)))
    assert compilation_seconds() - before == spent


@pytest.mark.parametrize("method", SAMPLERS)
def test_samplers_draw_what_they_count(method: str) -> None:
    score = paper_score(linear_gaussian(4, 50, 0, standardize=True).data)
    assert double_precision(lambda: SAMPLERS[method](score, 0)())() >= 1000


@pytest.mark.parametrize("score", ["plain", "bge", "bdeu"])
def test_scores_have_a_rate(score: str, tmp_path: Path) -> None:
    *_, row = MEASUREMENTS["scores"](Task("scores", score, 4), tmp_path)
    assert all(value > 0 for value in row.values())


def test_a_measurement_of_its_own_process_knows_its_memory(tmp_path: Path) -> None:
    row = process.measure_apart(Task("exact", "exact", 4), tmp_path)
    assert "error" not in row
    assert row["posterior_s"] > 0
    assert row["peak_mib"] > 50  # an interpreter with NumPy and JAX
    assert row["device"].startswith("cpu")
    assert len(list(tmp_path.glob("exact-*.npz"))) == 1


def test_a_killed_measurement_is_a_row_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_PREPARATION", 0.2)
    row = process.measure_apart(Task("quality", "mc3", 20, cap=0.1), tmp_path)
    assert row["name"] == "quality mc3 d=20 N=100"
    assert row["error"].startswith("killed by signal 9")


def test_a_failed_measurement_is_a_row_with_the_last_line_of_its_message(tmp_path: Path) -> None:
    row = process.measure_apart(Task("exact", "exact", 1), tmp_path)
    assert "Error" in row["error"]


def _instead(monkeypatch: pytest.MonkeyPatch, seconds: float = 1.0) -> list[str]:
    """Measure nothing: every measure takes `seconds`; the list fills with what was asked for."""
    asked: list[str] = []

    def pretend(task: Task, _: Path) -> Row:
        asked.append(task.name)
        return {"name": task.name, **task.as_json(), "to_0.05_s": seconds, "device": "cpu: cpu"}

    monkeypatch.setattr(command, "measure_apart", pretend)
    return asked


def _here(monkeypatch: pytest.MonkeyPatch, **different: Any) -> None:
    """Measure on the machine of `ABOUT`, but for what is different."""
    monkeypatch.setattr(command, "circumstances", lambda: {**ABOUT, "commit": "unknown", **different})


def test_rows_that_are_there_are_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _instead(monkeypatch)
    out = tmp_path / "bench.json"
    options = {"methods": ["mc3", "exact"], "kinds": ["quality"]}
    assert command.run_bench(out, sizes=[5], **options)
    assert command.run_bench(out, sizes=[5, 6], **options)
    assert asked == [f"quality {method} d={d} N=100" for d in (5, 6) for method in ("mc3", "exact")]
    assert [row["name"] for row in Results.load(out).rows] == asked
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert "| 6 | 100 | exact |" in out.with_suffix(".md").read_text("utf-8")


def test_rows_of_several_commits_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _instead(monkeypatch)
    out = tmp_path / "bench.json"
    for commit, size in (("one", 5), ("two", 6), ("one", 7)):
        _here(monkeypatch, commit=commit)
        command.run_bench(out, methods=["mc3"], sizes=[size], kinds=["quality"])
    assert Results.load(out).about["commit"] == "one, two"


def test_files_of_one_machine_become_one_without_measuring_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _instead(monkeypatch)
    _here(monkeypatch, commit="one")
    parts = [tmp_path / "left.json", tmp_path / "right.json"]
    Results(parts[0], ABOUT | {"commit": "one"}).add(_quality("mc3", 1.0))
    Results(parts[1], ABOUT | {"commit": "two"}).add(_quality("exact", 2.0))
    options = {"methods": ["mc3", "exact"], "kinds": ["quality"]}
    command.run_bench(tmp_path / "both.json", sizes=[5], join=parts, **options)
    assert asked == []
    both = Results.load(tmp_path / "both.json")
    assert both.about == ABOUT | {"commit": "one, two"}
    assert [row["to_0.02_s"] for row in both.rows] == [2.0, 1.0]
    command.run_bench(tmp_path / "both.json", sizes=[6], join=parts, **options)
    assert len(Results.load(tmp_path / "both.json").rows) == 4


def test_rows_of_another_machine_do_not_enter_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _instead(monkeypatch)
    _here(monkeypatch, cores=1)
    out, other = tmp_path / "bench.json", tmp_path / "other.json"
    Results(out, ABOUT).add(_quality("mc3", 1.0))
    Results(other, ABOUT | {"processor": "two"}).add(_quality("exact", 1.0))
    options = {"methods": ["mc3"], "kinds": ["quality"]}
    command.run_bench(out, sizes=[5], **options)  # nothing is missing: tables can be made anywhere
    with pytest.raises(GFlowDAGError, match="one, 2 cores"):
        command.run_bench(out, sizes=[6], **options)
    with pytest.raises(GFlowDAGError, match="another file"):
        command.run_bench(out, sizes=[5], join=[other], **options)
    assert asked == []


def test_a_row_that_failed_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "bench.json"
    Results(out, ABOUT).add(_quality("mc3", 1.0) | {"error": "no memory"})
    asked = _instead(monkeypatch)
    _here(monkeypatch)
    command.run_bench(out, methods=["mc3"], sizes=[5], kinds=["quality"])
    assert asked == ["quality mc3 d=5 N=100"]
    assert [row.get("error") for row in Results.load(out).rows] == [None]


@pytest.mark.parametrize(("seconds", "code"), [(1.2, 0), (3.0, 1)], ids=["alike", "slower"])
def test_the_exit_code_says_that_something_got_slower(
    seconds: float, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _instead(monkeypatch)
    old = tmp_path / "old.json"
    command.run_bench(old, methods=["mc3"], sizes=[5], kinds=["quality"])
    _instead(monkeypatch, seconds)
    arguments = ["--methods", "mc3", "--sizes", "5", "--measure", "quality", "--compare", str(old)]
    answer = CliRunner().invoke(app, ["bench", "--out", str(tmp_path / "new.json"), *arguments])
    assert answer.exit_code == code
    assert ("3.00 × worse" in answer.output) == (code == 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"methods": ["auto"]},
        {"sizes": [21]},
        {"sizes": ["five"]},
        {"kinds": ["colour"]},
        {"tolerance": 0.5},
        {"baseline": "nobody"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_wrong_settings_are_refused_before_anything_is_measured(wrong: dict, tmp_path: Path) -> None:
    with pytest.raises(GFlowDAGError):
        command.run_bench(tmp_path / "bench.json", **wrong)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    for content in ("[]", '{"rows": [1]}', '{"rows": [], "schema": 1}', "{"):
        (tmp_path / "bench.json").write_text(content)
        with pytest.raises(FileFormatError):
            Results.load(tmp_path / "bench.json")


def test_ratios_are_times_better_than_the_baseline() -> None:
    rows = [_quality("mc3", 10.0), _quality("exact", 2.0), _quality("dibs", 20.0)]
    found = [ratios.to_baseline(rows, row, "to_0.02_s") for row in rows]
    assert [ratio and ratio.value for ratio in found] == [1.0, 5.0, 0.5]
    assert ratios.times_better("dags_per_s", 10.0, 5.0) == 2.0
    assert ratios.times_better("peak_mib", 10.0, 5.0) == 0.5


def test_a_baseline_that_did_not_arrive_gives_a_bound() -> None:
    rows = [_quality("mc3", 60.0, error=0.3), _quality("exact", 2.0)]
    assert ratios.to_baseline(rows, rows[1], "to_0.02_s") == ratios.Ratio(30.0, True)
    assert ratios.to_baseline(rows, rows[0], "to_0.02_s") is None


def test_another_machine_cancels() -> None:
    old = Results(None, ABOUT, [_quality("mc3", 10.0), _quality("exact", 1.0)])
    slow = Results(None, ABOUT | {"processor": "two"}, [_quality("mc3", 30.0), _quality("exact", 6.0)])
    worse = {change.name.split()[1]: change.times_worse for change in ratios.changes(slow, old)}
    assert worse == {"mc3": pytest.approx(1.0), "exact": pytest.approx(2.0)}
    slow.about = ABOUT
    worse = {change.name.split()[1]: change.times_worse for change in ratios.changes(slow, old)}
    assert worse == {"mc3": pytest.approx(3.0), "exact": pytest.approx(6.0)}


def test_a_goal_that_is_no_longer_reached_is_infinitely_worse() -> None:
    old = Results(None, ABOUT, [_quality("mc3", 10.0)])
    new = Results(None, ABOUT, [_quality("mc3", 10.0, error=0.3)])
    changes = list(ratios.changes(new, old))
    assert [change.times_worse for change in changes] == [math.inf, math.inf]
    assert "not reached" in summary.markdown(summary.comparison_grid(changes, 1.5))


def test_tables_and_figure_show_every_kind(tmp_path: Path) -> None:
    rows = [
        *(_quality(method, 3.0, peak_mib=400.0) for method in ("mc3", "exact")),
        _quality("dibs", 3.0, error=0.4),
        _row("exact", "exact", table_s=0.1, posterior_s=0.2),
        _row("mc3", "sampling", dags_per_s=1e5),
        _row("bge", "scores", local_per_s=1e6, table_per_s=1e7),
        _row("mc3", "variables", first_s=4.0, work_s=1.0),
        _row("mc3", "rows", first_s=4.0, work_s=1.0, error="killed"),
    ]
    grids = summary.grids(rows)
    assert len(grids) == len(KINDS)
    stream = io.StringIO()
    for grid in grids:
        Console(file=stream, width=200).print(summary.rich_table(grid))
        assert summary.markdown(grid).count("\n") == len(grid.rows) + 1
    assert "–" in stream.getvalue()  # DiBS did not arrive
    assert [line[2] for line in grids[1].rows] == ["exact", "mc3", "dibs"]  # whichever was measured first
    speed_plot.draw(rows, tmp_path / "bench.png")
    assert (tmp_path / "bench.png").stat().st_size > 10_000
