"""The bytes and the text of a file: from a disk, a pipe or standard input, compressed or not."""

from __future__ import annotations

import bz2
import errno
import gzip
import importlib
import io
import lzma
import os
import stat
import sys
import threading
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from gflowdag.errors import GFlowDAGError, MissingExtraError
from gflowdag.runtime.memory import total_memory

STANDARD_INPUT = Path("-")
_PATIENCE_SECONDS = 3.0  # with a pipe, before the user is told what is waited for
_LONGEST_SECONDS = 10.0  # until somebody has to write to a pipe
_PIPE_SECONDS = 0.02  # between two looks at it
_LARGEST = 1 << 34  # bytes, whatever the memory
_PIECE = 1 << 24  # bytes that are read at once
_COPIES = 4  # of a file in memory while it is read: bytes, text, cells, numbers
_DAMAGE = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError)


def most_bytes() -> int:
    """The largest file, uncompressed, that is read on a machine with this memory."""
    return min(_LARGEST, total_memory() // _COPIES)


def read_bytes(path: Path, error: type[GFlowDAGError]) -> bytes:
    """What a file holds, without its compression; whatever prevents it is raised as an `error`.

    gzip, bzip2, xz, Zstandard, and zip archives of one file are taken apart. `-` is standard input. Pipes are
    read to their end; folders, sockets, devices and pipes that nobody writes to are refused.
    """
    try:
        content = _standard_input() if path == STANDARD_INPUT else _file_or_pipe(path)
    except (OSError, ValueError) as problem:  # ValueError: a null character in the path
        raise error(f"Cannot read {path}: {getattr(problem, 'strerror', problem)}.") from problem
    for name, (start, opened) in _COMPRESSIONS.items():
        if not content.startswith(start) or (name == "zip" and _is_office_file(content)):
            continue
        try:
            with opened(io.BytesIO(content)) as stream:
                content = _up_to_the_limit(stream)
        except GFlowDAGError as problem:
            raise error(f"{path} {problem}") from problem
        except _DAMAGE as problem:
            raise error(f"{path} is a damaged {name} file: {problem}.") from problem
        break
    if len(content) > most_bytes():
        raise error(
            f"{path} holds more than {most_bytes() >> 20:,} MiB. Reading it takes {_COPIES} times as much "
            f"memory, and this machine has {total_memory() >> 20:,} MiB. Read a part of it yourself and pass "
            "the DataFrame."
        )
    return content


def read_text(path: Path, error: type[GFlowDAGError]) -> str:
    """The text of a file in UTF-8; arguments as for `read_bytes`."""
    return decoded(path, read_bytes(path, error), error)


def decoded(path: Path, content: bytes, error: type[GFlowDAGError]) -> str:
    """Bytes as the text that they hold; UTF-16 with the mark that Windows writes is text too."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError:
            pass
    if b"\x00" in content:
        raise error(f"{path} is a binary file, not text. Export the table as CSV.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise error(
            f"{path} is not UTF-8 text (line {line}). Save it as UTF-8 (in Excel: CSV UTF-8)."
        ) from problem


def _up_to_the_limit(stream: Any) -> bytes:
    """What is left in a stream, or one byte more than is ever read.

    In pieces: asked for all at once, Python takes memory for the largest file first.
    """
    pieces, left = [], most_bytes() + 1
    while left and (piece := stream.read(min(left, _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _opened_zip(stream: Any) -> Any:
    """The one file of a zip archive; those that a Macintosh adds do not count."""
    archive = zipfile.ZipFile(stream)
    files = [
        entry.filename
        for entry in archive.infolist()
        if not entry.is_dir() and not entry.filename.startswith("__MACOSX/")
    ]
    if len(files) != 1:
        raise GFlowDAGError(f"is a zip archive of {len(files)} files. Unpack it and name the table in it.")
    return archive.open(files[0])


def _opened_zstandard(stream: Any) -> Any:
    for module in ("compression.zstd", "zstandard"):  # the first from Python 3.14 on
        try:
            return importlib.import_module(module).open(stream, "rb")
        except ImportError:
            continue
    raise MissingExtraError("is compressed by Zstandard: pip install zstandard, or decompress it (zstd -d).")


_COMPRESSIONS: dict[str, tuple[bytes, Callable[[Any], Any]]] = {
    "gzip": (b"\x1f\x8b", gzip.open),
    "bzip2": (b"BZh", bz2.open),
    "xz": (b"\xfd7zXZ\x00", lzma.open),
    "Zstandard": (b"\x28\xb5\x2f\xfd", _opened_zstandard),
    "zip": (b"PK\x03\x04", _opened_zip),
}


def _is_office_file(content: bytes) -> bool:
    """Whether a zip archive is a spreadsheet, of Excel or in the open format."""
    try:
        names = zipfile.ZipFile(io.BytesIO(content)).namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return False
    return "[Content_Types].xml" in names or names[:1] == ["mimetype"]


def _file_or_pipe(path: Path) -> bytes:
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder, name a file in it")
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        kind = "socket" if stat.S_ISSOCK(mode) else "device"
        raise OSError(errno.EINVAL, f"it is a {kind}, not a file; save its output in a file first")
    if stat.S_ISREG(mode):
        with path.open("rb") as stream:
            return _up_to_the_limit(stream)
    with _told_while_waiting(str(path)):
        first, rest = _begun_pipe(path)
        with rest as stream:
            return first + _up_to_the_limit(stream)


def _begun_pipe(path: Path) -> tuple[bytes, BinaryIO]:
    """The first bytes of a pipe, and a stream of those that follow; refused if nobody writes to it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # does not wait for somebody who writes
    stream = open(descriptor, "rb")  # noqa: SIM115 (the caller closes it)
    deadline = time.monotonic() + _LONGEST_SECONDS
    while True:
        try:
            first = os.read(descriptor, _PIECE)
        except BlockingIOError:  # somebody is there, and has written nothing yet
            first = None
        if first != b"":
            os.set_blocking(descriptor, True)
            return first or b"", stream
        if time.monotonic() > deadline:
            stream.close()
            raise OSError(
                errno.EPIPE, "nobody writes to this pipe; start the program that writes to it first"
            )
        time.sleep(_PIPE_SECONDS)


def _standard_input() -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        raise OSError(errno.EINVAL, "it is a terminal; send a file there, as in gflowdag check - < TABLE.csv")
    with _told_while_waiting("standard input"):
        return _up_to_the_limit(sys.stdin.buffer)


@contextmanager
def _told_while_waiting(source: str) -> Iterator[None]:
    """Say after some seconds what the block waits for."""
    sentence = f"gflowdag: waiting for the end of {source}; press Ctrl-C to give up"
    timer = threading.Timer(_PATIENCE_SECONDS, lambda: print(sentence, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
