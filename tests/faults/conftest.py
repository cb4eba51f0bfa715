"""What the tests of faults share."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forked import Forker

from gflowdag.cli import commands


@pytest.fixture(scope="module")
def forker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forker]:
    """The command line, to be killed often."""
    forker = Forker(tmp_path_factory.mktemp("forked"))
    yield forker
    forker.close()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small table, for fits that are killed or interrupted."""
    path = tmp_path_factory.mktemp("data") / "table.csv"
    commands.run_simulation(path, "linear-gaussian", 4, 60, 1.0, "erdos-renyi", 3)
    return path


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it, and from then on nothing can be written."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return lambda: monkeypatch.setattr(os, "fsync", refuse)
