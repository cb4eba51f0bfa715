"""Tables that come from elsewhere than a file: pipes and standard input are read, the rest is a sentence."""

from __future__ import annotations

import io
import json
import os
import socket
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gflowdag.cli import commands
from gflowdag.data import Dataset, Knowledge, contents
from gflowdag.errors import DataError, FileFormatError, KnowledgeError, ScoreError
from gflowdag.posterior.posterior import Posterior
from gflowdag.posterior.truth import read_edges
from gflowdag.score import ScoreFile

TEXT = "a,b\n" + "".join(f"{x},{y}\n" for x, y in np.random.default_rng(0).normal(size=(20, 2)))


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


class _StandardInput:
    def __init__(self, text: str, terminal: bool = False) -> None:
        self.buffer, self.terminal = io.BytesIO(text.encode()), terminal

    def isatty(self) -> bool:
        return self.terminal


def test_a_table_in_standard_input_or_a_pipe_is_that_of_the_file(
    pipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "table.csv").write_text(TEXT)
    expected = commands.load_table(str(tmp_path / "table.csv")).sha256
    monkeypatch.setattr(sys, "stdin", _StandardInput(TEXT))
    assert commands.load_table("-").sha256 == expected
    threading.Thread(target=pipe.write_text, args=(TEXT,)).start()
    assert commands.load_table(str(pipe)).sha256 == expected


def test_a_pipe_that_keeps_us_waiting_is_told_of(
    pipe: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(contents, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(contents, "_LONGEST_SECONDS", 280.0)
    told = threading.Event()
    monkeypatch.setattr(contents, "print", lambda *_, **__: told.set(), raising=False)

    def write_when_told() -> None:
        told.wait()
        pipe.write_text(TEXT)

    threading.Thread(target=write_when_told).start()
    assert commands.load_table(str(pipe)).num_rows == 20


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_LONGEST_SECONDS", 0.0)
    with pytest.raises(DataError, match=r"Cannot read .*pipe: nobody writes to this pipe; start"):
        commands.load_table(str(pipe))
    with pytest.raises(KnowledgeError, match="nobody writes to this pipe"):
        Knowledge.from_toml(pipe)
    with pytest.raises(FileFormatError, match="nobody writes to this pipe"):
        read_edges(pipe)
    with pytest.raises(ScoreError, match="nobody writes to this pipe"):
        ScoreFile(pipe)


def test_true_edges_and_local_scores_are_read_from_a_pipe(pipe: Path) -> None:
    threading.Thread(target=pipe.write_text, args=("source,target\na,b\n",)).start()
    assert read_edges(pipe).to_numpy().tolist() == [["a", "b"]]
    threading.Thread(target=pipe.write_text, args=("1\na 1\n-1.0 0\n",)).start()
    assert ScoreFile(pipe).bind(Dataset.from_frame(pd.DataFrame({"a": [0.0, 1.0, 2.5]}))).local(
        0, np.zeros((1, 1), bool)
    ) == [-1.0]


def test_a_pipe_with_a_slow_writer_is_read_to_its_end(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_LONGEST_SECONDS", 280.0)

    def write_in_pieces() -> None:
        with pipe.open("w") as stream:
            for start in range(0, len(TEXT), 100):
                time.sleep(0.01)
                stream.write(TEXT[start : start + 100])
                stream.flush()

    threading.Thread(target=write_in_pieces).start()
    assert commands.load_table(str(pipe)).num_rows == 20


def test_a_terminal_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", _StandardInput("", terminal=True))
    with pytest.raises(DataError, match=r"Cannot read -: it is a terminal; send"):
        commands.load_table("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="is a terminal"):
        commands.load_table("-")


def test_what_is_no_file_is_named_as_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for name, kind in {"socket": "socket", "/dev/zero": "device", ".": "folder"}.items():
            with pytest.raises(DataError, match=f"is a {kind}"):
                commands.load_table(name)
            with pytest.raises(KnowledgeError, match=f"is a {kind}"):
                Knowledge.from_toml(name)


def test_a_strangers_report_does_not_read_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Posterior(np.zeros((1, 2, 2)), ("a", "b")).save(tmp_path / "posterior.npz")
    (tmp_path / "manifest.json").write_text("{}")
    stdin = _StandardInput(TEXT)
    monkeypatch.setattr(sys, "stdin", stdin)
    for name in ("data", "knowledge", "truth"):
        config = {"data": "sachs", name: "-"}
        (tmp_path / "config.json").write_text(json.dumps(config))
        assert commands.rewrite_report(tmp_path, None).exists()
    assert stdin.buffer.tell() == 0
