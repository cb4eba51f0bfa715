"""Whatever is being written when a disk fills up or a process dies: nothing is lost, nothing is half.

Between two deeds nothing changes on the disk, so a death at each deed in turn is a death at every moment.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from faulty_disk import Fault, faulty_disk
from tallies import Tally
from typer.main import get_command

from gflowdag.cli.app import app
from gflowdag.errors import FileFormatError, GFlowDAGError, TrainingError
from gflowdag.gflownet import trainer
from gflowdag.gflownet.checkpoint import load_checkpoint, save_checkpoint
from gflowdag.posterior import runs
from gflowdag.posterior.posterior import Posterior
from gflowdag_lab.paper.study import Task, run_tasks

FAULTS = pytest.mark.parametrize("fault", ["full", "dead"])
KINDS = {"full": "disk full at every deed", "dead": "death at every deed"}
# A stream that is closed when the process is dead complains where nobody can hear it.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


COMMANDS = get_command(app)  # made from the signatures once, not at every call


def gflowdag(*arguments: str | Path) -> None:
    COMMANDS.main([str(argument) for argument in arguments], standalone_mode=False)


def at_every_deed(
    folder: Path, fault: Fault, act: Callable[[], object], check: Callable[[], object], least: int
) -> int:
    """Let `act` meet the fault at its first deed, its second, … and `check` what is left; how many deeds."""
    for moment in count(1):
        with faulty_disk(folder, fault, moment) as disk:
            if fault == "dead":
                act()
            else:
                try:
                    act()
                except GFlowDAGError as error:
                    assert "No space left" in str(error)  # noqa: PT017
        check()
        if not disk.struck:
            break
    assert moment > least
    return moment - 1


@FAULTS
def test_a_fit_that_meets_a_fault_at_any_deed_is_done_again_to_the_same_bytes(
    fault: Fault, table: Path, tmp_path: Path, tally: Tally
) -> None:
    command = ("fit", table, "--method", "exact", "--samples", "20", "-q", "--out")
    gflowdag(*command, tmp_path / "undisturbed")
    expected = (tmp_path / "undisturbed" / "posterior.npz").read_bytes()
    number = count()
    folder = tmp_path

    def fit() -> None:
        nonlocal folder
        folder = tmp_path / f"run{next(number)}"
        gflowdag(*command, folder)

    def check() -> None:
        for name in (runs.CONFIG, runs.MANIFEST):
            if (folder / name).exists():
                json.loads((folder / name).read_text())
        if (folder / runs.POSTERIOR).exists():
            assert (folder / runs.POSTERIOR).read_bytes() == expected
        if fault == "full":
            assert not list(folder.glob(".*.part"))
        if not (folder / runs.REPORT).exists():
            gflowdag(*command, folder, "--resume")
        assert (folder / runs.POSTERIOR).read_bytes() == expected
        assert (folder / runs.REPORT).read_text().rstrip().endswith("</html>")
        assert runs.read_manifest(folder)["status"] == "done"
        assert not list(folder.glob(".*.part"))

    deeds = at_every_deed(tmp_path / "run", fault, fit, check, least=20)
    tally(KINDS[fault], "fit, exact", tried=deeds)


@pytest.fixture
def answer(table: Path, tmp_path: Path) -> Path:
    gflowdag("fit", table, "--method", "exact", "--samples", "20", "-q", "--out", tmp_path / "answer")
    return tmp_path / "answer"


@FAULTS
@pytest.mark.parametrize("command", ["export", "report", "compare"])
def test_a_file_that_is_replaced_is_the_old_or_the_new_one(
    fault: Fault, command: str, answer: Path, table: Path, tmp_path: Path, tally: Tally
) -> None:
    path = tmp_path / "written" / "file"
    arguments = {
        "export": ("export", answer, "--to", path, "--format", "csv"),
        "report": ("report", answer, "--to", path),
        "compare": ("compare", table, "--methods", "exact", "--samples", "20", "-q", "--report", path),
    }[command]
    end = "</html>" if command != "export" else gflowdag_text(arguments, path)[-20:]

    def check() -> None:
        text = path.read_text()
        assert text == "old" or text.endswith(end) or text.rstrip().endswith(end)
        assert fault == "dead" or len(list(path.parent.iterdir())) == 1

    path.parent.mkdir(exist_ok=True)
    path.write_text("old")
    deeds = at_every_deed(path.parent, fault, lambda: gflowdag(*arguments), check, least=4)
    tally(KINDS[fault], command, tried=deeds)


def gflowdag_text(arguments: tuple, path: Path) -> str:
    gflowdag(*arguments)
    return path.read_text()


class Line(eqx.Module):
    """Fits a slope."""

    slope: float = eqx.field(static=True)

    def init(self, key):
        return {"slope": jax.random.normal(key, (), jnp.float32)}, jnp.zeros((), jnp.int32)

    def loss(self, params, target, memory, key, moment):
        x = jax.random.normal(key, (16,), jnp.float32)
        return jnp.mean((params["slope"] * x - self.slope * x) ** 2), (memory + 1, {})


def only_once(function: Callable) -> Callable:
    """The function, which answers every call as the first: training of one shape is compiled once.

    Arrays are copied, since training overwrites those that it is given.
    """
    answer = cache(lambda: function(*first))
    first: list = []

    def answer_as_before(*arguments: object) -> object:
        first.extend(() if first else arguments)
        return jax.tree.map(lambda leaf: leaf.copy() if eqx.is_array(leaf) else leaf, answer())

    return answer_as_before


@FAULTS
def test_training_that_meets_a_fault_at_any_deed_ends_in_the_same_numbers(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    options = trainer.Options(chunk_seconds=0.0, checkpoint_seconds=0.0)
    monkeypatch.setattr(trainer, "_compile", only_once(trainer._compile))
    monkeypatch.setattr(trainer, "_fresh_state", only_once(trainer._fresh_state))

    def train(folder: Path, resume: bool = False) -> float:
        trained = trainer.train(
            Line(3.0), jax.random.key(0), iterations=3, options=options, folder=folder, resume=resume
        )
        return float(trained.params["slope"])

    expected = train(tmp_path / "undisturbed")
    number = count()
    folder = tmp_path

    def begin() -> None:
        nonlocal folder
        folder = tmp_path / f"run{next(number)}"
        train(folder)

    def check() -> None:
        assert train(folder, resume=True) == expected
        steps = [row["step"] for row in runs.read_metrics(folder)]
        assert steps == [1, 2, 3]

    deeds = at_every_deed(tmp_path / "run", fault, begin, check, least=20)
    tally(KINDS[fault], "training", tried=deeds)


def square(folder: Path, number: int) -> dict[str, int]:
    return {"square": number**2}


@FAULTS
def test_a_study_that_meets_a_fault_at_any_deed_keeps_its_rows(
    fault: Fault, tmp_path: Path, tally: Tally
) -> None:
    tasks = [Task(f"square-{n}", f"{__name__}:square", {"number": n}) for n in range(3)]
    number = count()
    folder = tmp_path

    def begin() -> None:
        nonlocal folder
        folder = tmp_path / f"study{next(number)}"
        run_tasks(tasks, folder)

    def check() -> None:
        kept = {path: path.read_text() for path in folder.glob("tasks/*.json")}
        assert [row["square"] for row in run_tasks(tasks, folder)] == [0, 1, 4]
        assert all(path.read_text() == text for path, text in kept.items())

    deeds = at_every_deed(tmp_path / "study", fault, begin, check, least=10)
    tally(KINDS[fault], "reproduce", tried=deeds)


def flipped(content: bytes, position: int) -> bytes:
    """`content` with one bit of the byte at `position` turned over."""
    changed = content[position] ^ 1 << position % 8
    return content[:position] + bytes([changed]) + content[position + 1 :]


def test_a_flipped_bit_of_a_checkpoint_is_refused_or_changes_nothing(tmp_path: Path, tally: Tally) -> None:
    state = {"key": jax.random.key(7), "x": jnp.arange(3.0), "step": jnp.array(5)}
    save_checkpoint(tmp_path, state, "print")
    path = tmp_path / "checkpoint.npz"
    content, refused = path.read_bytes(), 0
    for position in range(len(content)):
        path.write_bytes(flipped(content, position))
        try:
            loaded = load_checkpoint(tmp_path, state, "print")
        except (FileFormatError, TrainingError):
            refused += 1
            continue
        assert loaded is not None
        assert (loaded["x"] == state["x"]).all()
        assert int(loaded["step"]) == 5
        assert (jax.random.key_data(loaded["key"]) == jax.random.key_data(state["key"])).all()
    assert refused > len(content) / 2
    tally("flipped bits", "checkpoint", tried=len(content))


def test_a_flipped_bit_of_a_posterior_is_refused_or_changes_nothing(tmp_path: Path, tally: Tally) -> None:
    posterior = Posterior(np.tri(3, k=-1, dtype=bool)[None].repeat(4, 0), "abc", log_scores=np.arange(4.0))
    posterior.save(tmp_path / "posterior.npz")
    content, refused = (tmp_path / "posterior.npz").read_bytes(), 0
    for position in range(len(content)):
        (tmp_path / "flipped.npz").write_bytes(flipped(content, position))
        try:
            loaded = Posterior.load(tmp_path / "flipped.npz")
        except GFlowDAGError:
            refused += 1
            continue
        assert (loaded.samples == posterior.samples).all()
        assert loaded.log_scores is not None
        assert loaded.log_scores.tolist() == [0, 1, 2, 3]
        assert loaded.names == posterior.names
    assert refused > len(content) / 2
    tally("flipped bits", "posterior", tried=len(content))


def test_a_clock_that_jumps_changes_no_answer(
    table: Path, answer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    monkeypatch.setattr(time, "time", lambda: float(rng.uniform(0, 4e9)))
    monkeypatch.setattr(time, "time_ns", lambda: int(rng.uniform(0, 4e18)))
    gflowdag("fit", table, "--method", "exact", "--samples", "20", "-q", "--out", tmp_path / "run")
    assert (tmp_path / "run" / "posterior.npz").read_bytes() == (answer / "posterior.npz").read_bytes()
    assert 0 <= runs.read_manifest(tmp_path / "run")["seconds"] < 3600
