"""A disk that fills up, or a process that dies, at the n-th thing that is done to files below a folder."""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from unittest import mock

Fault = Literal["full", "dead", "kill"]


class DiedError(BaseException):
    """The process would be dead here: nothing that follows reaches the disk, no tidying up either."""


class FaultyDisk:
    """Counts what is done to files whose path begins with `folder`: created, written, moved, removed.

    At the `moment`-th of these, by `fault`: "full", from then on nothing more can be written; "dead", half of
    what is being written arrives and nothing after it, as if the process were killed; "kill", it is killed.
    """

    def __init__(self, folder: Path, fault: Fault = "full", moment: int | None = None) -> None:
        self.folder, self.fault, self.moment = str(folder), fault, moment
        self.count, self.struck = 0, False
        self._paths: dict[int, str] = {}  # of the files that were opened by number

    def step(self, half: Callable[[], Any] = lambda: None) -> None:
        """Count one deed, before it is done; `half` does half of it."""
        self.count += 1
        if self.count == self.moment:
            self.struck = True
            half()
            if self.fault == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
        if self.struck:
            raise DiedError if self.fault == "dead" else OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def is_below(self, file: Any) -> bool:
        path = self._paths.get(file, "") if isinstance(file, int) else os.path.abspath(os.fspath(file))
        return path.startswith(self.folder)

    def counted(self, function: Callable[..., Any], removes: bool = False) -> Callable[..., Any]:
        """The function of `os` on a file, as a deed; from a full disk files can be removed."""

        def count_and_do(file: Any, *arguments: Any, **options: Any) -> Any:
            if self.is_below(file) and not (removes and self.fault == "full"):
                self.step()
            return function(file, *arguments, **options)

        return count_and_do

    def counted_open(self, function: Callable[..., int]) -> Callable[..., int]:
        def open_and_note(file: Any, flags: int, *arguments: Any, **options: Any) -> int:
            if flags & os.O_CREAT and self.is_below(file):
                self.step()
            number = function(file, flags, *arguments, **options)
            self._paths[number] = os.path.abspath(os.fspath(file))
            return number

        return open_and_note

    def counted_stream(self, function: Callable[..., Any]) -> Callable[..., Any]:
        disk = self

        class Raw(io.FileIO):
            def write(self, data: Any, /) -> int:
                content = bytes(data)
                disk.step(lambda: io.FileIO.write(self, content[: len(content) // 2]))
                return super().write(content)

        def open_counted(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if not set(mode) & set("wax") or not self.is_below(file):
                return function(file, mode, *arguments, **options)
            if not isinstance(file, int):
                self.step()
            stream = io.BufferedWriter(Raw(file, mode.replace("b", "").replace("t", "")))
            text = {name: options.get(name) for name in ("encoding", "errors", "newline")}
            return stream if "b" in mode else io.TextIOWrapper(stream, **text)

        return open_counted


@contextmanager
def faulty_disk(folder: Path, fault: Fault = "full", moment: int | None = None) -> Iterator[FaultyDisk]:
    """A block on such a disk; what dies in it has died where the block ends."""
    disk = FaultyDisk(folder, fault, moment)
    patches = [
        mock.patch.object(os, "replace", disk.counted(os.replace)),
        mock.patch.object(os, "link", disk.counted(os.link)),
        mock.patch.object(os, "mkdir", disk.counted(os.mkdir)),
        mock.patch.object(os, "fsync", disk.counted(os.fsync)),
        mock.patch.object(os, "unlink", disk.counted(os.unlink, removes=True)),
        mock.patch.object(os, "open", disk.counted_open(os.open)),
        mock.patch.object(io, "open", disk.counted_stream(io.open)),
        mock.patch.object(builtins, "open", disk.counted_stream(builtins.open)),
    ]
    for patch in patches:
        patch.start()
    try:
        yield disk
    except DiedError:
        pass
    finally:
        for patch in patches:
            patch.stop()
        if disk.struck and fault == "dead":
            _close_claims(folder)


def _close_claims(folder: Path) -> None:
    """Give back the locks that a dead process would no longer hold: descriptors of folders."""
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            path = os.readlink(f"/proc/self/fd/{number}")
            if path.startswith(str(folder)) and os.path.isdir(path):
                os.close(int(number))
