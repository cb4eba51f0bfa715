"""Files that are either whole or absent: every write of the library goes through `atomic_write`."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np


@contextmanager
def atomic_write(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file beside `path` and move it there when the block ends without an error.

    A reader sees the old file or the new one, never half of one, also after a crash.

    Args:
        path: destination; its folder is created.
        mode: `"w"` for UTF-8 text, `"wb"` for bytes.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, mode, encoding=None if "b" in mode else "utf-8") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_json(path: str | Path, content: Any) -> None:
    """Write `content` as indented JSON; NumPy scalars and arrays become plain numbers and lists."""
    with atomic_write(path) as stream:
        json.dump(content, stream, indent=2, ensure_ascii=False, default=plain)
        stream.write("\n")


def write_npz(path: str | Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays as a compressed `.npz`, without pickle and with reproducible bytes."""
    with atomic_write(path, "wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)


def plain(value: Any) -> Any:
    """The plain Python value of a NumPy scalar or array, a path or a tuple-like (for `json.dump`)."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
