"""What all checkpoints have in common: one `.npz` without pickle, whole or absent, for one problem alone."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from gflowdag.errors import FileFormatError, TrainingError
from gflowdag.runtime.files import atomic_write, file_size, read_npz
from gflowdag.runtime.strict_json import dumps

SCHEMA = 1
CHECKPOINT = "checkpoint.npz"
METRICS = "metrics.jsonl"  # the course of the training, beside it
SECONDS_BETWEEN = 10.0  # two checkpoints: the most work that a kill can cost, where writing is quick
SHARE_OF_TIME = 0.02  # of the time, at most, goes into writing them: those of large stacks have gigabytes
_BYTES_A_SECOND = 3e8  # of writing, until it was measured


class Stored(NamedTuple):
    """A checkpoint as it was read."""

    path: Path
    header: dict[str, Any]
    arrays: dict[str, np.ndarray]


class Pace:
    """When a checkpoint of some size is due, from the time that the last one took."""

    def __init__(self) -> None:
        self._last, self._rate = time.monotonic(), _BYTES_A_SECOND

    @contextmanager
    def when_due(self, num_bytes: int) -> Iterator[bool]:
        """Whether one of `num_bytes` is due, which is then to be written inside."""
        began = time.monotonic()
        is_due = began - self._last >= max(SECONDS_BETWEEN, num_bytes / self._rate / SHARE_OF_TIME)
        yield is_due
        if is_due:
            self._last = time.monotonic()
            self._rate = num_bytes / max(self._last - began, 1e-3)


def header_of(folder: str | Path) -> dict[str, Any]:
    """What the checkpoint in a folder says of itself; empty if there is none that can be read."""
    path = Path(folder) / CHECKPOINT
    try:
        with np.load(path, allow_pickle=False) as stored:  # reads no other array
            header = json.loads(str(stored["header"]))
    except (OSError, ValueError, KeyError, RecursionError, BadZipFile):
        return {}
    return header if isinstance(header, dict) else {}


def write_checkpoint(
    folder: str | Path, fingerprint: str, arrays: Mapping[str, np.ndarray], **header: Any
) -> None:
    """Write `arrays` to `folder/checkpoint.npz`, with `header` and the fingerprint of the problem."""
    text = dumps({"schema": SCHEMA, "fingerprint": fingerprint, **header})
    with atomic_write(Path(folder) / CHECKPOINT, "wb") as stream:
        np.savez(stream, allow_pickle=False, header=np.array(text), **arrays)


def read_checkpoint(folder: str | Path, fingerprint: str) -> Stored | None:
    """The checkpoint in a folder; None if there is none.

    Raises:
        FileFormatError: the file is damaged or was written by another version.
        TrainingError: the file belongs to another problem or to other settings.
    """
    path = Path(folder) / CHECKPOINT
    if not path.exists():
        return None
    arrays = read_npz(path, max_bytes=file_size(path))  # not compressed: nothing in it is larger than it
    try:
        header = json.loads(str(arrays["header"]))
        schema, written_for = header["schema"], header["fingerprint"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise damaged(path, error) from error
    if schema != SCHEMA:
        raise FileFormatError(f"{path} has schema {schema}, this version reads {SCHEMA}")
    if written_for != fingerprint:
        raise of_another_run(path)
    return Stored(path, header, arrays)


def damaged(path: Path, error: Exception) -> FileFormatError:
    """What to tell the user when the content of a checkpoint cannot be read."""
    return FileFormatError(f"{path} is damaged, or not a checkpoint: {error}")


def of_another_run(path: Path) -> TrainingError:
    """What to tell the user when a checkpoint answers another question."""
    return TrainingError(
        f"{path} belongs to a run with other data or other settings: "
        "resume with those of the first call, or choose another folder"
    )
