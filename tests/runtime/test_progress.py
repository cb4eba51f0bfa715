"""Progress: the phase is named, a notebook without widgets gets a line, and a file gets nothing."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator

import pytest
import rich.console
from rich.progress import Progress as RichProgress

import gflowdag as gd
from gflowdag.runtime import progress
from gflowdag.runtime.progress import begin_phase, progress_bar, silent


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A notebook without widgets; the texts that its output has shown, one after another."""
    seen: list[str] = []

    class Handle:
        def update(self, content: dict[str, str], raw: bool) -> None:
            seen.append(content["text/plain"])

    def display(content: dict[str, str], raw: bool, display_id: bool) -> Handle:
        seen.append(content["text/plain"])
        return Handle()

    module = types.ModuleType("IPython.display")
    module.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    monkeypatch.setattr(progress.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(progress, "_NOTEBOOK_SECONDS", 0.0)
    return seen


@pytest.fixture
def labels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A terminal; the labels of the bars that it has shown."""
    seen: list[str] = []
    add_task = RichProgress.add_task

    def noting(self, description, **options):
        seen.append(description)
        return add_task(self, description, **options)

    monkeypatch.setenv("FORCE_COLOR", "1")  # what rich takes as a terminal
    monkeypatch.setattr(RichProgress, "add_task", noting)
    return seen


def test_a_notebook_without_widgets_shows_one_line_and_no_warning(notebook, recwarn) -> None:
    with progress_bar("mc3") as listener:
        listener(1, 4, log_score=-3.0)
        begin_phase(listener, "sampling")
        listener(2, 4)
    assert notebook == [
        "mc3",
        "mc3  25%  0 s  log_score -3",
        "mc3 · sampling  0 s",
        "mc3 · sampling  50%  0 s",
        "mc3  0 s",
    ]
    assert not recwarn.list


def test_the_line_of_a_notebook_ends_also_where_the_work_fails(notebook) -> None:
    with pytest.raises(ValueError, match="diverged"), progress_bar("mc3"):
        raise ValueError("diverged")
    assert notebook[-1] == "mc3  0 s"


def test_a_file_is_told_nothing(capfd) -> None:
    with progress_bar("mc3") as listener:
        assert listener is silent
        listener(1, 2)
    assert capfd.readouterr() == ("", "")


def test_the_bar_of_a_new_phase_starts_empty_and_says_its_name(labels) -> None:
    with progress_bar("auto") as listener:
        begin_phase(listener, "chains")
        listener(5, 5)
        begin_phase(listener, "training")
        (task,) = listener.bar.tasks  # type: ignore[attr-defined]
        assert (task.description, task.completed, task.total) == ("auto · training", 0, None)
    begin_phase(silent, "training")  # who does not care is not told
    assert labels == ["auto", "auto · chains", "auto · training"]


def test_the_order_gflownet_names_what_takes_its_time(labels) -> None:
    frame = gd.simulate.linear_gaussian(4, 40, random_state=0).frame
    gd.OrderGFlowNet(iterations=2, width=8, depth=1, batch_size=8, verbose=True, random_state=0).fit(frame)
    assert labels == [f"order-gflownet{phase}" for phase in ("", " · tables", " · training", " · sampling")]
